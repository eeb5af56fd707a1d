//! How programs on a stage end, what they have said, and what is kept of a run that hangs: the state of
//! everything that takes part, written down while it still hangs and before it is torn down. A fault that comes once in a hundred runs is found by what the one
//! run shows, or not at all.

use super::stage::Stage;
use super::{Failure, apache, napi, programs, silkd};
use silk_control::SOCKET_VARIABLE;
use silk_testkit::netns::{Host, Running, output};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

/// Threads are looked at twice, so far apart: what moves in between is not what hangs.
const APART: Duration = Duration::from_secs(1);

/// So much longer than planned, and a phase hangs. Less than `ab` waits for an answer (30 s): what it waits
/// for is still there to be looked at.
const PATIENCE: Duration = Duration::from_secs(10);

impl Stage<'_> {
    /// What silkd and the servers have said.
    pub fn said(&self) -> String {
        let served = fs::read_to_string(self.scratch.path().join("serve.txt")).unwrap_or_default();
        silkd::log(self) + &apache::log(self) + &served
    }

    /// Waits for the end of a program that is to take `time`. Where it takes much longer it hangs: then the
    /// state of everything is kept, and the failure names the folder.
    pub fn ends(&self, program: &mut Running, time: Duration, what: &str) -> Result<ExitStatus, Failure> {
        if let Some(status) = self.watch.wait(program, time + PATIENCE)? {
            return Ok(status);
        }
        let kept = keep(self);
        self.watch.check()?;
        Err(Failure::Hangs { what: what.to_owned(), kept: kept.map_err(|why| why.to_string()) })
    }
}

/// Writes down how everything on the stage is, into a new folder, and says which. What cannot be found out
/// is written down as the reason why not: half of the evidence is better than none.
fn keep(stage: &Stage) -> Result<PathBuf, Failure> {
    let folder = stage.scratch.evidence().folder()?;
    let write = |name: &str, text: String| {
        let file = folder.join(name);
        fs::write(&file, text).map_err(Failure::file(file))
    };
    write("threads.txt", threads(stage))?;
    write("paths.json", paths(stage))?;
    for (name, host) in [("server", &stage.rig.server), ("client", &stage.rig.client)] {
        for (what, program, arguments) in HOST {
            write(&format!("{name}-{what}.txt"), said(host, program, arguments))?;
        }
    }
    write("log.txt", stage.said())?;
    stage.watch.pause(APART)?;
    write("threads-later.txt", threads(stage))?;
    write("paths-later.json", paths(stage))?;
    Ok(folder)
}

/// What is asked on each host.
const HOST: [(&str, &str, &[&str]); 4] = [
    ("sockets", "ss", &["-tnoiae"]),
    ("interfaces", "cat", &["/proc/net/dev"]),
    ("counters", "nstat", &["-asz"]),
    ("softnet", "cat", &["/proc/net/softnet_stat"]),
];

fn said(host: &Host, program: &str, arguments: &[&str]) -> String {
    host.run(program, arguments).unwrap_or_else(|error| error.to_string())
}

/// What the daemon tells of its paths. One that hangs itself is not waited for.
fn paths(stage: &Stage) -> String {
    let mut command = Command::new("timeout");
    command.arg("5").arg(programs::beside("silk")).args(["paths", "--json"]);
    command.env(SOCKET_VARIABLE, silkd::socket(stage));
    output(&mut command).unwrap_or_else(|error| error.to_string())
}

/// A line for each thread of both hosts, and for the kernel's that receive.
fn threads(stage: &Stage) -> String {
    let hosts = [&stage.rig.server, &stage.rig.client];
    let listed = hosts.map(|host| output(Command::new("ip").args(["netns", "pids", host.namespace()])));
    let listed = listed.map(Result::unwrap_or_default).concat();
    let processes = listed.split_whitespace().filter_map(|process| process.parse().ok());
    let mut text =
        "process thread name state policy rt_priority nice cpu | schedstat (ns on a CPU, ns waiting, \
                    slices) | wchan | syscall | switches\n"
            .to_owned();
    for process in processes.chain(napi::threads()) {
        text += &process_lines(process);
    }
    text
}

fn process_lines(process: u32) -> String {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    tasks.map(|task| line(process, &task.path()) + "\n").collect()
}

/// One thread; it may end while it is looked at.
fn line(process: u32, task: &Path) -> String {
    let read = |name: &str| match fs::read_to_string(task.join(name)) {
        Ok(text) => text.trim().to_owned(),
        Err(error) => error.to_string(),
    };
    let thread = task.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let status = read("status");
    let switches: Vec<&str> = status.lines().filter(|line| line.contains("ctxt_switches")).collect();
    let scheduled = scheduled(&read("stat")).unwrap_or_else(|| "?".to_owned());
    format!(
        "{process} {thread} {} {scheduled} | {} | {} | {} | {}",
        read("comm"),
        read("schedstat"),
        read("wchan"),
        read("syscall"),
        switches.join(" ").replace('\t', " ")
    )
}

/// State, policy, real-time priority, niceness and last CPU, from a `stat` file (proc(5)). A thread's name
/// may contain anything, so the fields are counted from behind its last parenthesis: the state is the third.
fn scheduled(stat: &str) -> Option<String> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    Some([field(3)?, field(41)?, field(40)?, field(19)?, field(39)?].join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_described_whatever_it_is_called() {
        let numbers: Vec<String> = (4..=52).map(|number| number.to_string()).collect();
        let stat = format!("7 (a) b (c) S {}", numbers.join(" "));
        assert_eq!(scheduled(&stat).as_deref(), Some("S 41 40 19 39"));
        assert_eq!(scheduled("7 (cut short) S 1 2"), None);
    }

    #[test]
    fn this_process_has_a_line_for_each_thread() {
        let lines = process_lines(std::process::id());
        assert!(lines.lines().count() >= 1 && lines.lines().all(|line| line.contains(" | ")), "{lines}");
    }
}
