//! A report of the daemon as tables for people. Names in it come from configuration and
//! programs: nothing of them reaches the terminal as a command.

use silk_control::{DropCount, PathReport, Report};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The paths, the highest priority first, and below them what concerns them all.
pub fn paths(report: &Report) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    let mut paths: Vec<&PathReport> = report.paths.iter().collect();
    paths
        .sort_by_key(|path| (std::cmp::Reverse(path.priority), std::cmp::Reverse(path.cpu_path_ns), path.id));
    let devices: BTreeSet<&str> =
        paths.iter().map(|path| &*path.device).filter(|name| !name.is_empty()).collect();
    let several = devices.len() > 1;
    rows.extend(paths.into_iter().map(|path| row(path, several)));
    let mut out = aligned(&rows);
    let memory: u64 = report.paths.iter().map(|path| path.memory).sum();
    let paths = counted(report.paths.len() as u64, "path");
    let files = match report.file_bytes {
        0 => String::new(),
        kept => format!(", {} in files that are sent by reference", bytes(kept)),
    };
    let rings = bytes(report.arena_bytes);
    let used = match report.arena_used {
        0 => String::new(),
        used => format!(" ({} of memory)", bytes(used)),
    };
    let _ = writeln!(out, "\n{paths}, {} charged to them, {rings} in rings{used}{files}", bytes(memory));
    if !report.classes.is_empty() {
        let _ = write!(out, "\nsince the start, paths that are gone included:\n{}", classes(report));
    }
    if !report.drops.is_empty() {
        let _ = writeln!(out, "\ndrops of no path, or of paths that are gone: {}", drops(&report.drops));
    }
    if !report.receivers.is_empty() {
        let _ = write!(out, "\nthreads that receive:\n{}", receivers(report));
    }
    let mut rest = String::new();
    for thread in report.threads.iter().filter(|thread| !thread.demoted.is_empty()) {
        let _ = writeln!(rest, "thread {} was demoted: {}", thread.tid, plain(&thread.demoted));
    }
    for row in report.unblock_ns.iter().filter(|row| row.count > 0) {
        let _ = writeln!(
            rest,
            "threads of class {}: {} from unblocked to running on average, {} at p99, {} at most",
            plain(&row.class),
            time(row.mean),
            time(row.p99),
            time(row.max)
        );
    }
    if !report.unserved.is_empty() {
        let calls = report.unserved.iter().map(|unserved| unserved.count).sum();
        let _ = writeln!(
            rest,
            "{} left to Linux: `silk paths --not-accelerated` says which",
            counted(calls, "call")
        );
    }
    rest += &silence(report);
    if !rest.is_empty() {
        let _ = write!(out, "\n{rest}");
    }
    out
}

/// That something is missing, where an executor has not answered: in the middle of an overload its paths would seem to be gone.
pub fn silence(report: &Report) -> String {
    match report.silent {
        0 => String::new(),
        silent => format!(
            "{} got no processor in time: of its paths and counts nothing is shown\n",
            counted(silent.into(), "executor")
        ),
    }
}

/// What each class has used.
fn classes(report: &Report) -> String {
    let mut rows = vec![CLASS_HEADINGS.map(str::to_owned)];
    rows.extend(report.classes.iter().map(|class| {
        [
            plain(&class.class),
            class.paths.to_string(),
            match &class.refused_by[..] {
                [] => class.refused.to_string(),
                limits => format!("{} ({})", class.refused, drops(limits)),
            },
            time(class.cpu_path_ns),
            time(class.cpu_program_ns),
            bytes(class.bytes[0]),
            bytes(class.bytes[1]),
            bytes(class.memory),
        ]
    }));
    aligned(&rows)
}

/// How the threads that receive are scheduled.
fn receivers(report: &Report) -> String {
    let mut rows = vec![["DEVICE", "QUEUE", "THREAD", "MANNER", "CPU"].map(str::to_owned)];
    rows.extend(report.receivers.iter().map(|receiver| {
        [
            plain(&receiver.device),
            receiver.queue.map_or_else(|| "-".to_owned(), |queue| queue.to_string()),
            receiver.tid.to_string(),
            plain(&receiver.manner),
            time(receiver.cpu_ns),
        ]
    }));
    aligned(&rows)
}

/// What was left to Linux.
pub fn unserved(report: &Report) -> String {
    if report.unserved.is_empty() {
        return "nothing was left to Linux\n".to_owned();
    }
    let mut rows = vec![["PROGRAM", "TIMES", "WHAT"].map(str::to_owned)];
    for unserved in &report.unserved {
        rows.push([plain(&unserved.program), unserved.count.to_string(), plain(&unserved.what)]);
    }
    aligned(&rows)
}

const HEADINGS: [&str; 14] = [
    "PATH", "CLASS", "PRI", "STATE", "LOCAL", "PEER", "PID", "QUEUED", "CPU", "PROGRAM", "IN", "OUT",
    "MEMORY", "MODULES",
];

const CLASS_HEADINGS: [&str; 8] = ["CLASS", "PATHS NOW", "REFUSED", "CPU", "PROGRAMS", "IN", "OUT", "MEMORY"];

/// A path; with `several` interfaces, its own before its modules.
fn row(path: &PathReport, several: bool) -> [String; 14] {
    let device = Some(format!("{}:", plain(&path.device))).filter(|_| several && !path.device.is_empty());
    let modules = path.modules.iter().map(|module| plain(module));
    let mut last = device.into_iter().chain(modules).collect::<Vec<_>>().join(" ");
    if !path.drops.is_empty() {
        let _ = write!(last, "  drops: {}", drops(&path.drops));
    }
    [
        id(path.id),
        plain(&path.class),
        path.priority.to_string(),
        or_dash(&path.state),
        or_dash(&path.local),
        or_dash(&path.peer),
        if path.pid == 0 { "-".to_owned() } else { path.pid.to_string() },
        format!("{}/{}", path.queue[0], bytes(path.queue[1])),
        time(path.cpu_path_ns),
        time(path.cpu_program_ns),
        bytes(path.bytes[0]),
        bytes(path.bytes[1]),
        bytes(path.memory),
        last,
    ]
}

/// Domain, index and generation.
pub fn id(id: u64) -> String {
    format!("{}.{}.{}", id >> 24 & 0xff, id & 0xff_ffff, id >> 32)
}

fn drops(drops: &[DropCount]) -> String {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for drop in drops {
        *sums.entry(&drop.reason).or_default() += drop.count;
    }
    let told: Vec<String> =
        sums.into_iter().map(|(reason, count)| format!("{} {count}", plain(reason))).collect();
    told.join(", ")
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { plain(text) }
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// In the largest unit in which it is at least 1.
fn bytes(bytes: u64) -> String {
    scaled(bytes as f64, &[("G", 1024.0 * 1024.0 * 1024.0), ("M", 1024.0 * 1024.0), ("K", 1024.0), ("", 1.0)])
}

/// Nanoseconds in the largest unit in which they are at least 1.
fn time(nanos: u64) -> String {
    scaled(nanos as f64, &[("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)])
}

fn scaled(value: f64, units: &[(&str, f64)]) -> String {
    let (name, unit) = units.iter().find(|(_, unit)| value >= *unit).unwrap_or(&units[units.len() - 1]);
    let value = value / unit;
    if *unit == 1.0 || value >= 100.0 { format!("{value:.0}{name}") } else { format!("{value:.1}{name}") }
}

/// A text that commands no terminal.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Columns as wide as what is in them; the last as it is.
fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let mut out = String::new();
    let widths: [usize; N] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    for row in rows {
        for (cell, width) in row[..N - 1].iter().zip(widths) {
            let _ = write!(out, "{cell:<width$}  ");
        }
        let _ = writeln!(out, "{}", row[N - 1]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use silk_control::{ClassReport, ReceiverReport, ThreadReport, UnblockReport, UnservedReport};

    fn drop(reason: &str, count: u64) -> DropCount {
        DropCount { reason: reason.to_owned(), count }
    }

    fn report() -> Report {
        let tcp = ["vnet", "eth", "ip", "tcp", "socket"].map(str::to_owned).to_vec();
        let standard =
            PathReport { id: 5, class: "standard".into(), modules: tcp.clone(), ..Default::default() };
        let preferred = PathReport {
            id: 3 << 32 | 1 << 24 | 17,
            class: "preferred".into(),
            priority: 2,
            modules: tcp,
            local: "10.0.0.2:80".into(),
            peer: "10.0.0.3:4242".into(),
            pid: 1234,
            state: "ESTABLISHED".into(),
            queue: [1, 2048],
            cpu_path_ns: 123_456,
            cpu_program_ns: 2_000_000,
            bytes: [100, 500 << 10],
            memory: 65536,
            drops: vec![drop("queue full", 2)],
            ..Default::default()
        };
        Report { paths: vec![standard, preferred], ..Default::default() }
    }

    #[test]
    fn the_highest_priority_comes_first_and_columns_are_as_wide_as_needed() {
        assert_eq!(
            paths(&report()),
            "\
PATH    CLASS      PRI  STATE        LOCAL        PEER           PID   QUEUED  CPU    PROGRAM  IN   OUT   MEMORY  MODULES
1.17.3  preferred  2    ESTABLISHED  10.0.0.2:80  10.0.0.3:4242  1234  1/2.0K  123us  2.0ms    100  500K  64.0K   vnet eth ip tcp socket  drops: queue full 2
0.5.0   standard   0    -            -            -              -     0/0     0ns    0ns      0    0     0       vnet eth ip tcp socket

2 paths, 64.0K charged to them, 0 in rings
"
        );
    }

    #[test]
    fn of_several_interfaces_each_path_says_its_own() {
        let mut report = report();
        let last = |report: &Report| {
            let told = paths(report);
            told.lines()
                .skip(1)
                .take(3)
                .map(|line| line.rsplit("  ").next().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        report.paths[1].drops.clear();
        report.paths.push(PathReport {
            modules: report.paths[0].modules.clone(),
            id: 6,
            ..Default::default()
        });
        let modules = "vnet eth ip tcp socket";
        report.paths[0].device = "eth0".into();
        assert_eq!(last(&report), [modules; 3]);
        report.paths[1].device = "eth1".into();
        assert_eq!(last(&report), [&format!("eth1: {modules}"), &format!("eth0: {modules}"), modules]);
    }

    #[test]
    fn what_concerns_all_stands_below() {
        let report = Report {
            classes: vec![ClassReport {
                class: "gold".into(),
                paths: 3,
                refused: 3,
                refused_by: vec![drop("paths", 2), drop("memory", 1)],
                cpu_path_ns: 2_000,
                bytes: [1024, 0],
                ..Default::default()
            }],
            drops: vec![drop("bad checksum", 1), drop("bad checksum", 2), drop("\x1b[2J", 1)],
            receivers: vec![
                ReceiverReport {
                    device: "eth0".into(),
                    queue: Some(1),
                    tid: 7,
                    manner: "prompt".into(),
                    cpu_ns: 900,
                },
                ReceiverReport {
                    device: "eth1".into(),
                    queue: None,
                    tid: 8,
                    manner: "held back".into(),
                    cpu_ns: 0,
                },
            ],
            threads: vec![ThreadReport { tid: 9, priority: 2, demoted: "it never slept".into() }],
            unserved: vec![UnservedReport { program: "nginx".into(), what: "AF_INET6".into(), count: 4 }],
            unblock_ns: vec![UnblockReport {
                class: "gold".into(),
                count: 1,
                mean: 1500,
                p50: 1,
                p99: 2000,
                max: 3000,
            }],
            silent: 1,
            ..Default::default()
        };
        let told = paths(&report);
        let rest: Vec<&str> = told.lines().skip(2).collect();
        assert_eq!(
            rest,
            [
                "0 paths, 0 charged to them, 0 in rings",
                "",
                "since the start, paths that are gone included:",
                "CLASS  PATHS NOW  REFUSED                CPU    PROGRAMS  IN    OUT  MEMORY",
                "gold   3          3 (memory 1, paths 2)  2.0us  0ns       1.0K  0    0",
                "",
                "drops of no path, or of paths that are gone: \u{fffd}[2J 1, bad checksum 3",
                "",
                "threads that receive:",
                "DEVICE  QUEUE  THREAD  MANNER     CPU",
                "eth0    1      7       prompt     900ns",
                "eth1    -      8       held back  0ns",
                "",
                "thread 9 was demoted: it never slept",
                "threads of class gold: 1.5us from unblocked to running on average, 2.0us at p99, 3.0us at most",
                "4 calls left to Linux: `silk paths --not-accelerated` says which",
                "1 executor got no processor in time: of its paths and counts nothing is shown",
            ]
        );
        assert_eq!(unserved(&report), "PROGRAM  TIMES  WHAT\nnginx    4      AF_INET6\n");
        assert_eq!(unserved(&Report::default()), "nothing was left to Linux\n");
    }
}
