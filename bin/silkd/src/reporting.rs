//! `silk paths` at the control thread: collects what the executors say.

use crate::command::Command;
use crate::server::Server;
use silk_control::{Reply, Report, ThreadReport, UnservedReport};
use silk_stream::mail::{Nothing, Receiver, mail};
use std::thread;
use std::time::{Duration, Instant};

/// How long an executor may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

impl Server {
    /// Collects what the executors know and sends it in parts that fit a message.
    pub(crate) fn report(&mut self, number: u64) {
        let mut whole = self.collect();
        let mut paths = std::mem::take(&mut whole.paths).into_iter().peekable();
        loop {
            whole.paths = paths.by_ref().take(48).collect();
            let more = paths.peek().is_some();
            self.reply(number, &Reply::Report { part: Box::new(std::mem::take(&mut whole)), more }, &[]);
            if !more {
                return;
            }
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
