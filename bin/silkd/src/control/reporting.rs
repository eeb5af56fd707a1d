//! `silk paths` at the control thread: collects what the executors say. Meanwhile everybody else is served, and however many
//! ask, one report is collected at a time: who asks before it is whole gets the next, together with all others who did.

use crate::between::command::Command;
use crate::between::names::Holder;
use crate::control::server::Server;
use rustix::event::epoll::EventFlags;
use silk_control::{Reply, Report, ThreadReport, UnservedReport};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How long an executor may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Who waits for a report, and the one that is being collected.
#[derive(Debug, Default)]
pub(crate) struct Reporting {
    /// Who gets that, and who the next.
    waiting: BTreeSet<u64>,
    later: BTreeSet<u64>,
    /// Its number.
    round: u64,
    /// What of it has come, and from how many executors the rest is still to come.
    whole: Report,
    missing: usize,
    /// Until when they are waited for; `None`: none is being collected.
    until: Option<Instant>,
}

impl Reporting {
    /// Until when executors are waited for, if any are.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.until
    }
}

impl Server {
    /// A lifeline asks for a report, and is not heard until it has it.
    pub(crate) fn report(&mut self, number: u64) {
        self.heed(number, EventFlags::empty());
        if self.reporting.until.is_some() {
            self.reporting.later.insert(number);
        } else {
            self.reporting.waiting.insert(number);
            self.begin_report();
        }
    }

    fn begin_report(&mut self) {
        let round = self.reporting.round.wrapping_add(1);
        self.reporting.round = round;
        self.reporting.whole = Report::default();
        self.reporting.missing = self.orders.len();
        self.reporting.until = Some(Instant::now() + PATIENCE);
        self.tell_all(|| Command::Report { round });
        self.look_at_report();
    }

    /// An executor's part of a report.
    pub(crate) fn take_report(&mut self, round: u64, mut part: Report, holders: Vec<Holder>) {
        if self.reporting.until.is_none() || round != self.reporting.round {
            return;
        }
        for (path, (family, process)) in part.paths.iter_mut().zip(holders) {
            let process = self.families.get(&family).and_then(|f| f.processes.get(&process));
            path.pid = process.and_then(|p| p.pid).unwrap_or(0);
        }
        self.reporting.whole.add(part);
        self.reporting.missing -= 1;
        self.look_at_report();
    }

    /// A report that is whole is told, and so is one of which an executor has not told its part in time: that is left out, and it is
    /// said.
    pub(crate) fn look_at_report(&mut self) {
        let Some(until) = self.reporting.until else { return };
        if self.reporting.missing > 0 && Instant::now() < until {
            return;
        }
        self.reporting.until = None;
        let mut whole = std::mem::take(&mut self.reporting.whole);
        whole.silent = self.reporting.missing as u32;
        let whole = self.with_own(whole);
        let next = std::mem::take(&mut self.reporting.later);
        for number in std::mem::replace(&mut self.reporting.waiting, next) {
            self.heed(number, EventFlags::IN);
            self.tell_report(number, whole.clone());
        }
        if !self.reporting.waiting.is_empty() {
            self.begin_report();
        }
    }

    /// Sends a report in parts that fit a message.
    fn tell_report(&mut self, number: u64, whole: Report) {
        let mut parts = parts(whole).peekable();
        while let Some(part) = parts.next() {
            let more = parts.peek().is_some();
            self.reply(number, &Reply::Report { part: Box::new(part), more }, &[]);
        }
    }

    /// With what the control thread itself knows.
    fn with_own(&self, mut whole: Report) -> Report {
        for demotion in self.watched.demotions() {
            let demoted = demotion.why.to_owned();
            whole.threads.push(ThreadReport { tid: demotion.tid, priority: 0, demoted });
        }
        whole.receivers = self.receiving.report(&self.settings);
        whole.drops.extend(self.gate.drops(self.settings.classes.domains()));
        self.families.values().for_each(|family| family.arena.measure());
        whole.arena_used = self.budget.used();
        whole.arena_bytes = self.families.values().map(|f| f.arena.rings_in_use()).sum();
        whole.file_bytes = self.families.values().map(|family| family.files.bytes()).sum();
        whole.unserved = self
            .unserved
            .iter()
            .map(|((program, what), count)| UnservedReport {
                program: program.clone(),
                what: what.clone(),
                count: *count,
            })
            .collect();
        whole
    }
}

/// A report in parts, each of which fits a message.
fn parts(mut whole: Report) -> impl Iterator<Item = Report> {
    let mut paths = std::mem::take(&mut whole.paths).into_iter().peekable();
    let mut threads = std::mem::take(&mut whole.threads).into_iter().peekable();
    let mut unserved = std::mem::take(&mut whole.unserved).into_iter().peekable();
    // There is one part even if there is nothing in it.
    let mut rest = Some(whole);
    std::iter::from_fn(move || {
        let more = paths.peek().is_some() || threads.peek().is_some() || unserved.peek().is_some();
        let part = rest.take().or_else(|| more.then(Report::default))?;
        Some(Report {
            paths: paths.by_ref().take(48).collect(),
            threads: threads.by_ref().take(256).collect(),
            unserved: unserved.by_ref().take(16).collect(),
            ..part
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::server::tests::with_executor;
    use crate::legible::LEGIBLE;
    use silk_control::{Lifeline, Request};
    use silk_stream::mail::Receiver;

    /// The rounds that an executor has been asked for.
    fn asked(orders: &mut Receiver<Command>) -> Vec<u64> {
        let round = |command| match command {
            Command::Report { round } => round,
            _ => panic!("another order"),
        };
        std::iter::from_fn(|| orders.receive().ok()).map(round).collect()
    }

    #[test]
    fn however_many_ask_one_report_is_collected_at_a_time_and_nobody_waits_for_an_executor_in_vain() {
        let folder = tempfile::tempdir().unwrap();
        let (mut server, mut executor) = with_executor(folder.path());
        let peers = [(); 4].map(|()| server.adopt_peer());
        let ask = |server: &mut Server, (number, line): &(u64, Lifeline)| {
            line.try_send(&Request::Report, &[]).unwrap();
            server.hear(*number);
        };
        let silent = |line: &Lifeline| match line.try_receive::<Reply>() {
            Ok(got) => match got.message {
                Reply::Report { part, more: false } => Some(part.silent),
                _ => None,
            },
            Err(_) => None,
        };
        peers[..3].iter().for_each(|peer| ask(&mut server, peer));
        assert_eq!(asked(&mut executor), [1]);
        // Somebody else is served meanwhile.
        peers[3].1.try_send(&Request::Found, &[]).unwrap();
        server.hear(peers[3].0);
        assert!(matches!(peers[3].1.try_receive::<Reply>().unwrap().message, Reply::Family { .. }));
        assert!(matches!(executor.receive(), Ok(Command::Family { .. })));
        server.take_report(7, Report::default(), Vec::new());
        assert_eq!(silent(&peers[0].1), None, "of another round");
        server.take_report(1, Report::default(), Vec::new());
        assert_eq!([0, 1, 2].map(|n: usize| silent(&peers[n].1)), [Some(0), None, None]);
        assert_eq!(asked(&mut executor), [2], "for both who came later");
        // The executor says nothing.
        server.look_at_report();
        assert_eq!(silent(&peers[1].1), None);
        server.reporting.until = Some(Instant::now());
        server.look_at_report();
        assert_eq!([1, 2].map(|n: usize| silent(&peers[n].1)), [Some(1); 2]);
        assert!(server.reporting.until().is_none() && asked(&mut executor).is_empty());
    }

    #[test]
    fn a_report_of_whatever_length_is_told_in_messages_and_arrives_whole() {
        let unserved = |n: u64| UnservedReport {
            program: "\u{2028}".repeat(LEGIBLE),
            what: "\u{2028}".repeat(LEGIBLE),
            count: n,
        };
        let whole = Report {
            unserved: (0..1024).map(unserved).collect(),
            threads: (0..4000).map(|tid| ThreadReport { tid, ..ThreadReport::default() }).collect(),
            arena_bytes: 7,
            ..Report::default()
        };
        let (ours, theirs) = Lifeline::pair().unwrap();
        let mut heard = Report::default();
        for part in parts(whole.clone()) {
            ours.try_send(&Reply::Report { part: Box::new(part), more: true }, &[]).unwrap();
            let Reply::Report { part, .. } = theirs.receive().unwrap().message else { panic!("no report") };
            heard.add(*part);
        }
        assert_eq!(heard, whole);
        assert_eq!(parts(Report::default()).count(), 1);
    }
}
