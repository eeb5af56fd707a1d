//! What a player tells people of its streams.

use silk_media::Missed;
use silk_media::deadline::Bottleneck;
use silk_player::{Figures, Words};
use std::fmt::Write;
use std::time::Duration;

/// One stream in a few lines.
pub fn described(figures: &Figures) -> String {
    let Figures { name, state, shown, decoded, account, .. } = figures;
    let mut text =
        format!("{name} ({state}): {} shown, {} missed, {} lost", shown.shown, shown.missed, shown.lost);
    let also = [
        (shown.skipped, "skipped"),
        (shown.concealed, "concealed"),
        (shown.repeated, "repeated"),
        (shown.overflowed, "found the output queue full"),
        (shown.restarts, "restarts of the clock"),
        (figures.discarded, "packets discarded where they are classified"),
        (decoded.skipped, "packets skipped"),
        (decoded.too_late, "packets too late to decode"),
        (decoded.damaged, "packets damaged"),
        (decoded.no_memory, "packets and pictures without memory"),
        (figures.dropped.0, "packets found the input queue full"),
        (figures.dropped.1, "packets dropped otherwise"),
    ];
    for (count, what) in also.into_iter().filter(|(count, _)| *count > 0) {
        let _ = write!(text, ", {count} {what}");
    }
    if figures.cut_at_slices == Some(false) {
        text.push_str("; its sender does not cut at slices: what is lost costs more than its packet");
    }
    let pictures = decoded.pictures.max(1) as f64;
    let cpu = Duration::from_nanos(account.cpu_path).as_secs_f64();
    let _ = write!(
        text,
        "\n  {} pictures in {} packets; {:.3} ms of CPU a picture, {:.3} ms of it decoding; display at most \
         {:.1} ms behind",
        decoded.pictures,
        account.packets_in,
        cpu * 1e3 / pictures,
        decoded.time as f64 / 1e6 / pictures,
        shown.behind_most as f64 / 1e6
    );
    let _ = write!(text, "\n  {}", budget(figures));
    let _ = write!(
        text,
        "\n  queues: {} of {} packets, {} of {} pictures; round trip {:.2} ms; bottleneck: {}",
        figures.input.0,
        figures.input.1,
        figures.output.0,
        figures.output.1,
        figures.round_trip.as_secs_f64() * 1e3,
        match figures.bottleneck {
            Some(Bottleneck::Execution) => "decoding (output queue)",
            Some(Bottleneck::Network) => "network (input queue)",
            None => "not known yet",
        }
    );
    text
}

/// What a stream uses, and what it was promised.
fn budget(figures: &Figures) -> String {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let used = figures.used.map_or_else(|| "not known".into(), percent);
    let promised = match (figures.refused, figures.on_trial) {
        (true, _) => "refused: it does not fit".into(),
        (_, true) => "on trial: nothing is promised yet".into(),
        _ => format!("promised {}", percent(figures.promised.share)),
    };
    let account = &figures.account;
    let mut text = format!(
        "CPU at its rate: {used}, {promised}; memory: {:.1} MiB, at most {:.1}, may have {:.1}",
        mebibytes(account.memory()),
        mebibytes(account.memory_peak),
        mebibytes(account.memory_limit())
    );
    if figures.promised.offer.is_less() {
        let _ = write!(text, "; with {}", Words(figures.promised.offer));
    }
    text
}

/// How long after it was due a picture was ready to be seen.
pub(super) fn late(missed: &Missed) -> Duration {
    missed.trace.ready.since(missed.due) + missed.display
}

/// The last missed deadlines of a stream, and where the time of each went, in milliseconds.
pub fn misses(figures: &Figures) -> String {
    if figures.misses.is_empty() {
        return format!("{}: no deadline was missed\n", figures.name);
    }
    let mut text = format!(
        "{}: {} missed; the last, in milliseconds:\n{:>10} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n",
        figures.name, figures.shown.missed, "picture", "late", "network", "queue", "CPU", "decode", "display"
    );
    for missed in &figures.misses {
        let trace = &missed.trace;
        let parts = [late(missed), trace.network, trace.queue, trace.processor, trace.decode, missed.display];
        let _ = write!(text, "{:>10}", missed.stamp);
        for part in parts {
            let _ = write!(text, " {:>8.2}", part.as_secs_f64() * 1e3);
        }
        text.push('\n');
    }
    text
}
