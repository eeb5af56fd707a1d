//! Waiting that an interrupt ends: SIGINT, SIGTERM and SIGHUP set a flag, every wait looks at it, and the
//! experiment unwinds through the guards that remove what it made.

use super::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use silk_testkit::netns::Running;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often a wait looks at its subject: a rare glance, since the looking is paid by the client's CPU.
const GLANCE: Duration = Duration::from_millis(10);

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
        self.until(time, || None::<()>).map(drop)
    }

    /// Waits for a program's end, or for `limit`, whichever comes first.
    pub fn wait(&self, program: &mut Running, limit: Duration) -> Result<Option<ExitStatus>, Failure> {
        self.until(limit, || program.ended())
    }

    /// Looks again and again until there is an answer or `limit` has passed. Time in which this process did
    /// not run, stopped or with its machine suspended, does not count: what it waits for did not run either.
    pub fn until<T>(
        &self,
        limit: Duration,
        mut look: impl FnMut() -> Option<T>,
    ) -> Result<Option<T>, Failure> {
        let (mut passed, mut last) = (Duration::ZERO, Instant::now());
        loop {
            self.check()?;
            let answer = look();
            if answer.is_some() || passed >= limit {
                return Ok(answer);
            }
            sleep(GLANCE.min(limit));
            let now = Instant::now();
            passed += now.duration_since(last).min(BETWEEN);
            last = now;
        }
    }
}
