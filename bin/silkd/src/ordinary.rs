//! When an ordinary program could last run on an executor's processors: a thread without a priority looks at the clock
//! now and then, and whether it gets to is what is asked.

use crate::priority::{self, Scheduling};
use silk_executor::clock;
use silk_instant::Instant;
use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often the thread looks.
const LOOK: Duration = Duration::from_millis(50);

/// A thread without a priority on the processors of the thread that made it. It ends with this.
#[derive(Debug)]
pub struct Ordinary {
    /// When it last ran, ns.
    ran: Arc<AtomicU64>,
}

impl Ordinary {
    /// Starts the thread.
    ///
    /// # Errors
    /// The kernel's, such as too many threads.
    pub fn start() -> io::Result<Self> {
        let ran = Arc::new(AtomicU64::new(clock::now().nanos()));
        let told = Arc::downgrade(&ran);
        std::thread::Builder::new().name("silk-ordinary".into()).spawn(move || tell(&told))?;
        Ok(Self { ran })
    }

    /// When it last ran.
    pub fn ran(&self) -> Instant {
        Instant::from_nanos(self.ran.load(Relaxed))
    }
}

/// Writes the time there as long as somebody reads it.
fn tell(ran: &Weak<AtomicU64>) {
    // Nobody is refused less than he has.
    let _ = priority::set(0, Scheduling::Ordinary);
    while let Some(ran) = ran.upgrade() {
        ran.store(clock::now().nanos(), Relaxed);
        drop(ran);
        std::thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_tells_the_time_until_nobody_asks() {
        let ordinary = Ordinary::start().unwrap();
        let began = clock::now();
        while ordinary.ran() <= began {
            std::thread::sleep(Duration::from_millis(1));
        }
        let gone = Arc::downgrade(&ordinary.ran);
        drop(ordinary);
        while gone.strong_count() > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        tell(&gone);
    }
}
