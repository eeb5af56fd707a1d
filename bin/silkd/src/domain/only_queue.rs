//! By which one hardware queue an executor's packets come, if by one alone: only then does it [fetch](crate::domain::anticipation) them
//! itself. Who fetched from one queue would keep what comes by the others waiting.

use silk_device::Queues;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// So many times in a row packets have come by one queue alone until that is believed.
const STEADY: u32 = 64;

/// What an executor knows of it.
#[derive(Debug, Default)]
pub struct OnlyQueue {
    /// Whose packets can be fetched: queues, and the NAPI that polls them at present.
    napis: Vec<(Queues, Arc<AtomicU32>)>,
    /// Which of these the last packets came by, and how often in a row.
    last: Option<usize>,
    times: u32,
}

impl OnlyQueue {
    /// Of these queues with their NAPIs; where there is one NAPI, it is that.
    pub fn among(napis: Vec<(Queues, Arc<AtomicU32>)>) -> Self {
        let alone = napis.len() == 1;
        Self { napis, last: alone.then_some(0), times: if alone { STEADY } else { 0 } }
    }

    /// Packets have come by these queues.
    pub fn brought(&mut self, queues: Queues) {
        if self.napis.len() < 2 {
            return;
        }
        let by = self.napis.iter().position(|(own, _)| queues.is_within(*own));
        if by.is_some() && by == self.last {
            self.times = (self.times + 1).min(STEADY);
        } else {
            (self.last, self.times) = (by, 1);
        }
    }

    /// The NAPI that polls it.
    pub fn napi(&self) -> Option<u32> {
        let (_, napi) = self.napis.get(self.last?)?;
        (self.times == STEADY).then(|| napi.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn napi(number: u32) -> Arc<AtomicU32> {
        Arc::new(AtomicU32::new(number))
    }

    fn two() -> OnlyQueue {
        OnlyQueue::among(vec![(Queues::one(0, 0), napi(10)), (Queues::one(0, 1), napi(11))])
    }

    fn times(of: &mut OnlyQueue, count: u32, queues: Queues) -> Option<u32> {
        (0..count).for_each(|_| of.brought(queues));
        of.napi()
    }

    #[test]
    fn a_queue_is_the_only_one_once_packets_have_come_by_no_other_for_long() {
        let mut of = two();
        assert_eq!(times(&mut of, STEADY - 1, Queues::one(0, 1)), None);
        assert_eq!(times(&mut of, 1, Queues::one(0, 1)), Some(11));
        assert_eq!(times(&mut of, 1, Queues::one(0, 0)), None, "one that came by another ends it");
        assert_eq!(times(&mut of, STEADY, Queues::one(0, 0)), Some(10));
    }

    #[test]
    fn packets_that_come_by_several_or_by_unknown_ones_come_by_none_alone() {
        let mut of = two();
        assert_eq!(times(&mut of, 2 * STEADY, Queues::one(0, 0) | Queues::one(0, 1)), None);
        assert_eq!(times(&mut of, 2 * STEADY, Queues::one(1, 0)), None);
    }

    #[test]
    fn where_there_is_one_it_is_that() {
        assert_eq!(OnlyQueue::among(vec![(Queues::all_of(0), napi(10))]).napi(), Some(10));
        assert_eq!(OnlyQueue::default().napi(), None);
    }
}
