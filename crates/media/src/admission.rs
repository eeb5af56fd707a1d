//! Admission of streams (Scout §4.4): memory is granted before a path is created, processor time by
//! the model of what a picture costs, or by what the stream was seen to cost. A stream that does not
//! fit whole gets a counter-offer that does: fewer of its pictures at its own pace, or else all of
//! them at a lower rate.

use crate::model::{Model, Sample};
use crate::timing::Rate;
use alloc::vec::Vec;

/// Pictures of one type, on average.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Kind {
    /// How many there are, in proportion to the other types'.
    pub count: f64,
    /// Bits of one.
    pub bits: f64,
}

/// What the pictures of a stream are like.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pictures {
    /// Macroblocks of one: squares of 16 by 16 samples.
    pub macroblocks: f64,
    /// The I, P and B pictures. Where types are not known all count as P, which others need.
    pub kinds: [Kind; 3],
}

impl Pictures {
    /// Pictures of which nothing else is known: any may be needed by others.
    pub fn alike(macroblocks: f64, bits: f64) -> Self {
        let all = Kind { count: 1.0, bits };
        Self { macroblocks, kinds: [Kind::default(), all, Kind::default()] }
    }

    /// One more picture of this type (1 I, 3 B; anything else may be needed) was seen.
    pub fn note(&mut self, kind: u8, bits: f64) {
        let at = match kind {
            1 => 0,
            3 => 2,
            _ => 1,
        };
        let Kind { count, bits: mean } = &mut self.kinds[at];
        *count += 1.0;
        *mean += (bits - *mean) / *count;
    }

    fn count(&self) -> f64 {
        self.kinds.iter().map(|kind| kind.count).sum()
    }

    /// Of each type, the part of all pictures that is decoded to show these. `None`: there are none.
    fn decoded(&self, showing: Showing) -> Option<[f64; 3]> {
        let count = self.count();
        if !(count > 0.0 && count.is_finite()) {
            return None;
        }
        let [i, p, b] = self.kinds.map(|kind| kind.count / count);
        let every = f64::from(showing.every.max(1));
        let i_alone = p + b == 0.0;
        Some([if i_alone { i / every } else { i }, p, if showing.without_b { 0.0 } else { self.b_of(every) }])
    }

    /// The part of all pictures that are B pictures and shown when each n-th picture is: those between
    /// the others, which stand at regular distances (I B B P B B …).
    fn b_of(&self, every: f64) -> f64 {
        let [_, _, b] = self.kinds;
        let needed = self.count() - b.count;
        if b.count <= 0.0 {
            return 0.0;
        }
        // So many pictures from one that others need to the next.
        let apart = (self.count() / needed.max(1e-9) + 0.5).min(1e6) as u64;
        let every = every as u64;
        if every <= 1 {
            return b.count / self.count();
        }
        let both = every / greatest_common_divisor(every, apart.max(1)) * apart.max(1);
        1.0 / every as f64 - 1.0 / both as f64
    }

    /// What a picture of the stream costs on average, ns, where only these are shown.
    fn cost(&self, model: &Model, showing: Showing) -> Option<f64> {
        let parts = self.decoded(showing)?;
        let costs = parts.iter().zip(&self.kinds).filter(|(part, _)| **part > 0.0).map(|(part, kind)| {
            Some(part * model.predict(Sample { macroblocks: self.macroblocks, bits: kind.bits })?)
        });
        costs.sum::<Option<f64>>().filter(|cost| cost.is_finite())
    }

    /// The part of all pictures that is shown.
    fn shown(&self, showing: Showing) -> f64 {
        let [i, p, b] = self.kinds.map(|kind| kind.count / self.count().max(1e-9));
        (i + p + if showing.without_b { 0.0 } else { b }) / f64::from(showing.every.max(1))
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// Which pictures of a stream are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Showing {
    /// Only each so manieth; at least 1.
    pub every: u32,
    /// No B pictures, which no other picture needs.
    pub without_b: bool,
}

impl Showing {
    /// All of them.
    pub const ALL: Self = Self { every: 1, without_b: false };
}

/// What a stream will need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// The rate it is to be played at.
    pub rate: Rate,
    /// What its pictures are like.
    pub pictures: Pictures,
    /// Which of them are to be shown.
    pub showing: Showing,
    /// Its source waits for the player (MFLOW), so it may be played more slowly.
    pub waits: bool,
    /// Of the processor, as it was seen to use at this rate and with these pictures shown; `None`: it
    /// has not played yet, so the model tells.
    pub measured: Option<f64>,
    /// Bytes of memory.
    pub memory: u64,
}

/// What a path may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Offer {
    /// All it asks for.
    Whole,
    /// Only each so manieth picture.
    Every(u32),
    /// Only the pictures that others need.
    WithoutB,
    /// All pictures at this rate: slower.
    Slower(Rate),
    /// There is not enough memory, whatever the rate.
    NoMemory,
    /// There is no processor time left that would be worth it.
    NoTime,
}

impl Offer {
    /// It is something, and less than what was asked for.
    pub fn is_less(self) -> bool {
        matches!(self, Self::Every(_) | Self::WithoutB | Self::Slower(_))
    }
}

impl Demand {
    /// The demand as it is on these terms.
    fn on(&self, offer: Offer) -> (Showing, Rate) {
        match offer {
            Offer::Every(every) => (Showing { every, ..self.showing }, self.rate),
            Offer::WithoutB => (Showing { without_b: true, ..self.showing }, self.rate),
            Offer::Slower(rate) => (self.showing, rate),
            _ => (self.showing, self.rate),
        }
    }

    /// Of the processor, on these terms; `None` where nothing is known of costs.
    pub fn share(&self, offer: Offer, model: &Model) -> Option<f64> {
        let (showing, rate) = self.on(offer);
        let share =
            |showing, rate: Rate| Some(self.pictures.cost(model, showing)? * f64::from(rate.millis()) / 1e12);
        let Some(measured) = self.measured else { return share(showing, rate) };
        if (showing, rate) == (self.showing, self.rate) {
            return Some(measured);
        }
        let part = share(showing, rate)? / share(self.showing, self.rate)?;
        Some(measured * part).filter(|share| share.is_finite())
    }

    /// The offers of fewer pictures, those that show most of them first.
    fn fewer(&self) -> impl Iterator<Item = Offer> + '_ {
        let without = Some(Offer::WithoutB).filter(|_| !self.showing.without_b);
        let most = (self.rate.millis() / SLOWEST).min(MOST);
        let every = (self.showing.every.max(1) + 1..=most).map(Offer::Every);
        let shown = |offer| self.pictures.shown(self.on(offer).0);
        // Where both show as many, those that others need are shown at no cost of hidden ones.
        let at_least = without.map_or(0.0, shown);
        let (more, fewer): (Vec<Offer>, Vec<Offer>) = every.partition(|offer| shown(*offer) > at_least);
        more.into_iter().chain(without).chain(fewer)
    }
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

/// Below this rate, in thousandths of a picture a second, nobody would watch.
const SLOWEST: u32 = 1_000;
/// Fewer than one of so many pictures is not offered.
const MOST: u32 = 30;

impl Budget {
    /// Nothing promised yet.
    pub const fn new(share: f64, memory: u64) -> Self {
        Self { share, memory, share_used: 0.0, memory_used: 0 }
    }

    /// Of the processor, not promised yet.
    pub fn free_share(&self) -> f64 {
        (self.share - self.share_used).max(0.0)
    }

    /// Bytes of memory, not promised yet.
    pub fn free_memory(&self) -> u64 {
        self.memory.saturating_sub(self.memory_used)
    }

    /// What a stream can have. While nothing is known of costs every stream is let in: the first
    /// one teaches.
    pub fn consider(&self, demand: &Demand, model: &Model) -> Offer {
        if demand.memory > self.free_memory() {
            return Offer::NoMemory;
        }
        let free = self.free_share();
        let Some(whole) = demand.share(Offer::Whole, model) else { return Offer::Whole };
        if whole <= free {
            return Offer::Whole;
        }
        let fits = |offer: &Offer| demand.share(*offer, model).is_some_and(|share| share <= free);
        demand.fewer().find(fits).or_else(|| slower(demand, free / whole)).unwrap_or(Offer::NoTime)
    }

    /// Promises a stream its share of the processor and its memory.
    pub fn promise(&mut self, share: f64, memory: u64) {
        self.share_used += share;
        self.memory_used = self.memory_used.saturating_add(memory);
    }

    /// A stream that was promised this share at one rate is to have another: the share it is promised then.
    ///
    /// # Errors
    /// It does not fit; this would, and nothing has changed.
    pub fn change(&mut self, share: f64, from: Rate, to: Rate) -> Result<f64, Offer> {
        let other = share * f64::from(to.millis()) / f64::from(from.millis());
        let free = self.free_share() + share;
        if other > free && to > from {
            let millis = (f64::from(from.millis()) * free / share) as u32;
            return Err(Rate::from_millis(millis).map_or(Offer::NoTime, Offer::Slower));
        }
        self.free(share, 0);
        self.promise(other, 0);
        Ok(other)
    }

    /// A stream has ended: what it was promised is free again.
    pub fn free(&mut self, share: f64, memory: u64) {
        self.share_used = (self.share_used - share).max(0.0);
        self.memory_used = self.memory_used.saturating_sub(memory);
    }
}

/// The rate of which only this part can be had.
fn slower(demand: &Demand, part: f64) -> Option<Offer> {
    let millis = (f64::from(demand.rate.millis()) * part) as u32;
    let rate = Rate::from_millis(millis).filter(|rate| demand.waits && rate.millis() >= SLOWEST);
    rate.map(Offer::Slower)
}

#[cfg(test)]
#[path = "admission_tests.rs"]
mod tests;
