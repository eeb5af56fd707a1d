//! Admission of streams (Scout §4.4): memory is granted before a path is created, processor time by
//! the model of what a picture costs. A stream that does not fit whole gets a counter-offer that
//! does: without B pictures, only each n-th picture, or at a lower rate.

use crate::model::{Model, Sample};
use crate::timing::Rate;

/// What a stream will need, as its source tells it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// The rate it is to be played at.
    pub rate: Rate,
    /// A picture on average, over all pictures.
    pub mean: Sample,
    /// A picture on average, over those that others need (I and P), and their share of all
    /// pictures; `None`: not known, or there are no others.
    pub references: Option<(Sample, f64)>,
    /// Bytes of memory.
    pub memory: u64,
}

/// What a path may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Offer {
    /// All it asks for.
    Whole,
    /// Only the pictures that others need: each n-th of all, on average.
    References {
        /// One of so many pictures is shown.
        every: u32,
    },
    /// All pictures at this rate: slower.
    Slower(Rate),
    /// There is not enough memory, whatever the rate.
    NoMemory,
    /// There is no processor time left that would be worth it.
    NoTime,
}

/// What all streams together may have, and what the admitted ones were promised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Of the processor, between 0 and 1.
    pub share: f64,
    /// Bytes of memory.
    pub memory: u64,
    /// Of the processor, promised.
    pub share_used: f64,
    /// Bytes of memory, promised.
    pub memory_used: u64,
}

/// Below this rate nobody would watch.
const SLOWEST: u32 = 1_000;

impl Budget {
    /// Nothing promised yet.
    pub const fn new(share: f64, memory: u64) -> Self {
        Self { share, memory, share_used: 0.0, memory_used: 0 }
    }

    /// What a stream can have. While nothing is known of costs every stream is let in: the first
    /// one teaches.
    pub fn consider(&self, demand: &Demand, model: &Model) -> Offer {
        if self.memory_used.saturating_add(demand.memory) > self.memory {
            return Offer::NoMemory;
        }
        let Some(whole) = share_of(model, demand.mean, demand.rate, 1.0) else { return Offer::Whole };
        let free = self.share - self.share_used;
        if whole <= free {
            return Offer::Whole;
        }
        if let Some((sample, part)) = demand.references
            && share_of(model, sample, demand.rate, part).is_some_and(|share| share <= free)
        {
            return Offer::References { every: every(part) };
        }
        let slower = (f64::from(demand.rate.millis()) * free / whole) as u32;
        match Rate::from_millis(slower).filter(|rate| rate.millis() >= SLOWEST) {
            Some(rate) => Offer::Slower(rate),
            None => Offer::NoTime,
        }
    }

    /// What a stream on these terms is promised of the processor, for [`Self::promise`].
    pub fn share_of(demand: &Demand, offer: Offer, model: &Model) -> f64 {
        let share = match (offer, demand.references) {
            (Offer::Whole, _) => share_of(model, demand.mean, demand.rate, 1.0),
            (Offer::References { .. }, Some((sample, part))) => share_of(model, sample, demand.rate, part),
            (Offer::Slower(rate), _) => share_of(model, demand.mean, rate, 1.0),
            _ => None,
        };
        share.unwrap_or(0.0)
    }

    /// Promises a stream its share of the processor and its memory.
    pub fn promise(&mut self, share: f64, memory: u64) {
        self.share_used += share;
        self.memory_used += memory;
    }

    /// A stream has ended: what it was promised is free again.
    pub fn free(&mut self, share: f64, memory: u64) {
        self.share_used = (self.share_used - share).max(0.0);
        self.memory_used = self.memory_used.saturating_sub(memory);
    }
}

/// Of the processor, for this part of the pictures at this rate.
fn share_of(model: &Model, sample: Sample, rate: Rate, part: f64) -> Option<f64> {
    Some(model.predict(sample)? * part * f64::from(rate.millis()) / 1e12)
}

/// One of how many pictures a part of them is.
fn every(part: f64) -> u32 {
    // Between 0 and 1, so at least 1; an absurd part is bounded.
    ((1.0 / part.clamp(0.001, 1.0)) + 0.5) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A macroblock costs 1 µs, a bit 20 ns.
    fn model() -> Model {
        let mut model = Model::default();
        for n in 0..200u32 {
            let sample = Sample { macroblocks: f64::from(300 + n), bits: f64::from(5000 + n * 71 % 4000) };
            model.learn(sample, 1000.0 * sample.macroblocks + 20.0 * sample.bits);
        }
        model
    }

    /// 330 macroblocks and 100 000 bits: 2.33 ms a picture, 7 % of the processor at 30 a second.
    fn demand() -> Demand {
        let mean = Sample { macroblocks: 330.0, bits: 100_000.0 };
        let reference = Sample { macroblocks: 330.0, bits: 150_000.0 };
        let rate = Rate::from_millis(30_000).unwrap();
        Demand { rate, mean, references: Some((reference, 1.0 / 3.0)), memory: 1 << 20 }
    }

    #[test]
    fn what_fits_is_let_in_whole_until_it_does_not() {
        let (model, demand) = (model(), demand());
        let mut budget = Budget::new(0.9, 1 << 30);
        let mut admitted = 0;
        while budget.consider(&demand, &model) == Offer::Whole {
            budget.promise(Budget::share_of(&demand, Offer::Whole, &model), demand.memory);
            admitted += 1;
        }
        assert_eq!(admitted, 12, "of 7 % each");
        assert_eq!(budget.consider(&demand, &model), Offer::References { every: 3 });
        budget.promise(0.04, 0);
        let Offer::Slower(rate) = budget.consider(&demand, &model) else { panic!("not slower") };
        assert!(rate.millis() < 10_000, "{rate:?}");
        budget.promise(0.02, 0);
        assert_eq!(budget.consider(&demand, &model), Offer::NoTime);
        budget.free(0.5, 0);
        assert_eq!(budget.consider(&demand, &model), Offer::Whole);
    }

    #[test]
    fn memory_is_granted_first() {
        let mut budget = Budget::new(0.9, 3 << 20);
        budget.promise(0.0, 5 << 19);
        assert_eq!(budget.consider(&demand(), &model()), Offer::NoMemory);
    }

    #[test]
    fn the_first_stream_teaches() {
        assert_eq!(Budget::new(0.0, 1 << 30).consider(&demand(), &Model::default()), Offer::Whole);
    }
}
