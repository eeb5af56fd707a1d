//! Waiting that an interrupt ends: SIGINT, SIGTERM and SIGHUP set a flag, every wait looks at it, and the
//! experiment unwinds through the guards that remove what it made.

use super::Failure;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use silk_testkit::netns::Running;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a wait looks whether its subject is ready, where nothing wakes it.
const GLANCE: Duration = Duration::from_millis(10);

/// The longest rest of a wait that is woken: by the end of the program it waits for, or by a signal. While a
/// figure is measured nothing else is waited for, and a glance is paid by the client's CPU, where it delays a round trip.
const REST: Duration = Duration::from_millis(500);

/// No more than this passes between two glances of a process that runs.
const BETWEEN: Duration = Duration::from_secs(1);

/// Knows whether the experiment has been told to stop.
#[derive(Debug, Default)]
pub struct Watch {
    interrupted: Arc<AtomicBool>,
}

impl Watch {
    /// A watch that hears this process's signals. Where a handler cannot be set the signal kills as usual.
    pub fn on_signals() -> Self {
        let watch = Self::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let _ = signal_hook::flag::register(signal, Arc::clone(&watch.interrupted));
        }
        watch
    }

    /// Fails once the experiment has been told to stop.
    pub fn check(&self) -> Result<(), Failure> {
        if self.interrupted.load(Ordering::Relaxed) { Err(Failure::Interrupted) } else { Ok(()) }
    }

    /// Lets so much time pass.
    pub fn pause(&self, time: Duration) -> Result<(), Failure> {
        self.look(time, || None::<()>, |left| rest(&mut [], left.min(REST))).map(drop)
    }

    /// Waits for a program's end, or for `limit`, whichever comes first.
    pub fn wait(&self, program: &mut Running, limit: Duration) -> Result<Option<ExitStatus>, Failure> {
        let Ok(end) = pidfd_open(Pid::from_child(program.child()), PidfdFlags::empty()) else {
            return self.until(limit, || program.ended());
        };
        let rest = |left: Duration| rest(&mut [PollFd::new(&end, PollFlags::IN)], left.min(REST));
        self.look(limit, || program.ended(), rest)
    }

    /// Looks again and again until there is an answer or `limit` has passed.
    pub fn until<T>(&self, limit: Duration, look: impl FnMut() -> Option<T>) -> Result<Option<T>, Failure> {
        self.look(limit, look, |left| rest(&mut [], left.min(GLANCE)))
    }

    /// Looks until there is an answer or `limit` has passed, and rests between: `rest` is told how long at
    /// most. Time in which this process did not run, stopped or with its machine suspended, does not count:
    /// what it waits for did not run either.
    fn look<T>(
        &self,
        limit: Duration,
        mut look: impl FnMut() -> Option<T>,
        rest: impl Fn(Duration),
    ) -> Result<Option<T>, Failure> {
        let (mut left, mut last) = (limit, Instant::now());
        loop {
            self.check()?;
            let answer = look();
            if answer.is_some() || left.is_zero() {
                return Ok(answer);
            }
            rest(left);
            let now = Instant::now();
            left = left.saturating_sub(now.duration_since(last).min(BETWEEN));
            last = now;
        }
    }
}

/// Sleeps for `time`, or until something of `events` comes or a signal does.
fn rest(events: &mut [PollFd<'_>], time: Duration) {
    let time = Timespec::try_from(time).ok();
    // However it ends, interrupted too, the caller looks again.
    let _ = poll(events, time.as_ref());
}
