//! `silk paths` at the control thread: collects what the executors say.

use crate::between::command::Command;
use crate::control::server::Server;
use silk_control::{Reply, Report, ThreadReport, UnservedReport};
use silk_stream::mail::{Nothing, Receiver, mail};
use std::thread;
use std::time::{Duration, Instant};

/// How long an executor may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

impl Server {
    /// Collects what the executors know and sends it in parts that fit a message.
    pub(crate) fn report(&mut self, number: u64) {
        let mut parts = parts(self.collect()).peekable();
        while let Some(part) = parts.next() {
            let more = parts.peek().is_some();
            self.reply(number, &Reply::Report { part: Box::new(part), more }, &[]);
        }
    }

    pub(crate) fn collect(&self) -> Report {
        let (to_us, mut reports) = mail();
        self.tell_all(|| Command::Report { to: to_us.clone(), waiting: thread::current() });
        drop(to_us);
        let mut whole = Report::default();
        // An executor that does not answer in time is left out rather than waited for.
        for _ in &self.orders {
            let Some((mut part, holders)) = next(&mut reports, PATIENCE) else { break };
            for (path, (family, process)) in part.paths.iter_mut().zip(holders) {
                let process = self.families.get(&family).and_then(|f| f.processes.get(&process));
                path.pid = process.and_then(|p| p.pid).unwrap_or(0);
            }
            whole.add(part);
        }
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

/// What comes next, within so long; whoever sends it unparks this thread.
fn next<T>(messages: &mut Receiver<T>, patience: Duration) -> Option<T> {
    let end = Instant::now() + patience;
    loop {
        match messages.receive() {
            Ok(message) => return Some(message),
            Err(Nothing::Ever) => return None,
            Err(Nothing::Yet) => thread::park_timeout(
                end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?,
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::legible::LEGIBLE;

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
        let (ours, theirs) = silk_control::Lifeline::pair().unwrap();
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
