//! What TCP knows of each connection, two lines for each in the manner of `ss -tin`.

use silk_control::{PathReport, Report, TcpReport};
use std::fmt::Write;

use super::table::{id, plain, silence};

/// The connections over silk's own TCP.
pub fn connections(report: &Report) -> String {
    let known = report.paths.iter().filter_map(|path| Some((path, path.tcp.as_deref()?)));
    let mut out: String = known.map(|(path, tcp)| connection(path, tcp)).collect();
    if out.is_empty() {
        out.push_str("there are no connections\n");
    }
    out + &silence(report)
}

fn connection(path: &PathReport, tcp: &TcpReport) -> String {
    format!(
        "{}  {}  {} {} {}\n\t{}\n",
        id(path.id),
        plain(&path.class),
        plain(&path.state),
        plain(&path.local),
        plain(&path.peer),
        facts(tcp)
    )
}

/// The words of `ss`, in its order; as there, what is zero is left out where that says nothing.
fn facts(tcp: &TcpReport) -> String {
    let mut out = String::new();
    for (on, name) in [(tcp.timestamps, "ts "), (tcp.sack, "sack "), (tcp.ecn, "ecn ")] {
        out.push_str(if on { name } else { "" });
    }
    out.push_str(&plain(&tcp.congestion));
    if let Some([peers, ours]) = tcp.window_shifts {
        let _ = write!(out, " wscale:{peers},{ours}");
    }
    let millis = |micros: u32| f64::from(micros) / 1e3;
    let _ = write!(out, " rto:{}", millis(tcp.rto_us));
    some(&mut out, "backoff", tcp.backoff.into());
    let _ = write!(out, " rtt:{}/{}", millis(tcp.rtt_us), millis(tcp.rttvar_us));
    let _ = write!(out, " ato:{} mss:{} pmtu:{}", millis(tcp.ato_us), tcp.mss, tcp.pmtu);
    let _ = write!(out, " rcvmss:{} advmss:{} cwnd:{}", tcp.rcv_mss, tcp.advmss, tcp.cwnd);
    some(&mut out, "ssthresh", tcp.ssthresh.unwrap_or(0).into());
    some(&mut out, "bytes_sent", tcp.bytes_sent);
    some(&mut out, "bytes_retrans", tcp.bytes_retrans);
    some(&mut out, "bytes_acked", tcp.bytes_acked);
    some(&mut out, "bytes_received", tcp.bytes_received);
    for (name, count) in [
        ("segs_out", tcp.segs_out),
        ("segs_in", tcp.segs_in),
        ("data_segs_out", tcp.data_segs_out),
        ("data_segs_in", tcp.data_segs_in),
        ("lastsnd", tcp.last_sent_ms),
        ("lastrcv", tcp.last_received_ms),
        ("lastack", tcp.last_ack_ms),
    ] {
        some(&mut out, name, count.into());
    }
    if let Some(model) = tcp.model {
        let gain = |hundredths: u16| f64::from(hundredths) / 100.0;
        let (rtt, pacing, window) =
            (model.min_rtt_us as f64 / 1e3, gain(model.pacing_gain), gain(model.window_gain));
        let bits = model.bandwidth.saturating_mul(8);
        let _ = write!(out, " bbr:(bw:{bits}bps,mrtt:{rtt},pacing_gain:{pacing},cwnd_gain:{window})");
    }
    rate(&mut out, "send", window_rate(tcp));
    rate(&mut out, "pacing_rate", tcp.pacing_rate);
    rate(&mut out, "delivery_rate", tcp.delivery_rate);
    some(&mut out, "delivered", tcp.delivered.into());
    some(&mut out, "delivered_ce", tcp.delivered_ce.into());
    out.push_str(if tcp.app_limited { " app_limited" } else { "" });
    busy(&mut out, tcp);
    some(&mut out, "unacked", tcp.unacked.into());
    let [now, all] = tcp.retrans;
    if all > 0 {
        let _ = write!(out, " retrans:{now}/{all}");
    }
    for (name, count) in [
        ("timeouts", tcp.timeouts.into()),
        ("lost", tcp.lost.into()),
        ("sacked", tcp.sacked.into()),
        ("dsack_dups", tcp.dsack_dups.into()),
        ("reord_seen", tcp.reord_seen.into()),
        ("rcv_ooopack", tcp.rcv_ooopack.into()),
    ] {
        some(&mut out, name, count);
    }
    if tcp.rcv_rtt_us > 0 {
        let _ = write!(out, " rcv_rtt:{}", millis(tcp.rcv_rtt_us));
    }
    some(&mut out, "rcv_space", tcp.rcv_space.into());
    some(&mut out, "notsent", tcp.notsent_bytes.into());
    if tcp.min_rtt_us > 0 {
        let _ = write!(out, " minrtt:{}", millis(tcp.min_rtt_us));
    }
    let _ = write!(out, " snd_wnd:{} rcv_wnd:{}", tcp.snd_wnd, tcp.rcv_wnd);
    out
}

/// Bytes per second that the congestion window lets go.
fn window_rate(tcp: &TcpReport) -> u64 {
    let window = u64::from(tcp.cwnd) * u64::from(tcp.mss);
    (window * 1_000_000).checked_div(tcp.rtt_us.into()).unwrap_or(0)
}

/// How long there was text to send, and which part of that it waited for somebody else than the network.
fn busy(out: &mut String, tcp: &TcpReport) {
    if tcp.busy_us == 0 {
        return;
    }
    let millis = |micros: u64| micros as f64 / 1e3;
    let _ = write!(out, " busy:{}ms", millis(tcp.busy_us));
    for (name, time) in [("rwnd_limited", tcp.rwnd_limited_us), ("sndbuf_limited", tcp.sndbuf_limited_us)] {
        if time > 0 {
            let part = time as f64 * 100.0 / tcp.busy_us as f64;
            let _ = write!(out, " {name}:{}ms({part:.1}%)", millis(time));
        }
    }
}

fn some(out: &mut String, name: &str, value: u64) {
    if value > 0 {
        let _ = write!(out, " {name}:{value}");
    }
}

/// Bytes per second, shown as bits.
fn rate(out: &mut String, name: &str, bytes: u64) {
    if bytes > 0 {
        let _ = write!(out, " {name} {}bps", bytes.saturating_mul(8));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use silk_control::ModelReport;

    #[test]
    fn a_connection_is_shown_as_ss_shows_it() {
        let tcp = TcpReport {
            congestion: "bbr".into(),
            model: Some(ModelReport {
                bandwidth: 500,
                min_rtt_us: 1_250,
                pacing_gain: 125,
                window_gain: 200,
            }),
            timestamps: true,
            sack: true,
            window_shifts: Some([7, 8]),
            rto_us: 200_000,
            ato_us: 40_000,
            rtt_us: 1_500,
            rttvar_us: 250,
            mss: 1448,
            pmtu: 1500,
            rcv_mss: 536,
            advmss: 1448,
            cwnd: 10,
            bytes_acked: 17,
            retrans: [0, 2],
            delivery_rate: 1000,
            delivered: 3,
            app_limited: true,
            busy_us: 12_500,
            rwnd_limited_us: 2_500,
            rcv_rtt_us: 1_500,
            ..TcpReport::default()
        };
        let path = PathReport {
            id: 3 << 32 | 17,
            class: "standard".into(),
            state: "ESTABLISHED".into(),
            local: "10.0.0.2:80".into(),
            peer: "10.0.0.3:4242".into(),
            tcp: Some(Box::new(tcp)),
            ..PathReport::default()
        };
        let report = Report { paths: vec![PathReport::default(), path], ..Report::default() };
        assert_eq!(
            connections(&report),
            "0.17.3  standard  ESTABLISHED 10.0.0.2:80 10.0.0.3:4242\n\tts sack bbr wscale:7,8 rto:200 \
             rtt:1.5/0.25 ato:40 mss:1448 pmtu:1500 rcvmss:536 advmss:1448 cwnd:10 bytes_acked:17 \
             bbr:(bw:4000bps,mrtt:1.25,pacing_gain:1.25,cwnd_gain:2) send 77226664bps \
             delivery_rate 8000bps delivered:3 app_limited busy:12.5ms rwnd_limited:2.5ms(20.0%) retrans:0/2 \
             rcv_rtt:1.5 snd_wnd:0 rcv_wnd:0\n"
        );
        assert_eq!(connections(&Report::default()), "there are no connections\n");
    }
}
