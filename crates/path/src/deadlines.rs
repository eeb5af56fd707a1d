//! When the stages of a path want to be run again, a timer for each. On most paths one stage alone ever sets
//! one, so that one has its place here, and the others get theirs when a second one does.

use crate::route::MAX_STAGES;
use alloc::boxed::Box;
use silk_instant::Instant;

/// The timers of one path's stages; [`Instant::FAR`]: off.
#[derive(Debug)]
pub(crate) enum Deadlines {
    /// Of all stages but this one they are off.
    One(u8, Instant),
    /// Of each stage, by place.
    Each(Box<[Instant; MAX_STAGES]>),
}

impl Deadlines {
    /// All off.
    pub const OFF: Self = Self::One(0, Instant::FAR);

    /// When the stage in `place` is to be run.
    pub fn of(&self, place: usize) -> Instant {
        match self {
            Self::One(one, at) if usize::from(*one) == place => *at,
            Self::One(..) => Instant::FAR,
            Self::Each(all) => all[place],
        }
    }

    /// Sets the timer of the stage in `place`.
    pub fn set(&mut self, place: usize, when: Instant) {
        match self {
            Self::Each(all) => all[place] = when,
            Self::One(one, at) if usize::from(*one) == place || *at == Instant::FAR => {
                (*one, *at) = (place as u8, when);
            }
            Self::One(..) if when == Instant::FAR => {}
            Self::One(one, at) => {
                let mut all = [Instant::FAR; MAX_STAGES];
                (all[usize::from(*one)], all[place]) = (*at, when);
                *self = Self::Each(Box::new(all));
            }
        }
    }

    /// When the earliest is due.
    pub fn earliest(&self) -> Instant {
        match self {
            Self::One(_, at) => *at,
            Self::Each(all) => all.iter().copied().min().unwrap_or(Instant::FAR),
        }
    }

    /// The lowest `count` stages, one at least, have become one, which has the earliest of their timers.
    pub fn collapse(&mut self, count: usize) {
        match self {
            Self::One(one, _) => *one = one.saturating_sub(count as u8 - 1),
            Self::Each(all) => {
                let earliest = all[..count].iter().copied().min().unwrap_or(Instant::FAR);
                all.copy_within(count.., 1);
                all[0] = earliest;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a place for each stage.
        #[test]
        fn they_are_as_if_each_stage_had_a_place(
            steps in proptest::collection::vec((0usize..MAX_STAGES, 0u64..4), 0..20),
            collapsed in 1usize..MAX_STAGES,
        ) {
            let (mut deadlines, mut model) = (Deadlines::OFF, [Instant::FAR; MAX_STAGES]);
            let half = steps.len() / 2;
            for (n, (place, when)) in steps.into_iter().enumerate() {
                let when = if when == 0 { Instant::FAR } else { Instant::from_nanos(when) };
                deadlines.set(place, when);
                model[place] = when;
                if n == half {
                    deadlines.collapse(collapsed);
                    let earliest = *model[..collapsed].iter().min().unwrap();
                    model.copy_within(collapsed.., 1);
                    model[0] = earliest;
                    // What is behind the last stage means nothing any more.
                    let last = MAX_STAGES - collapsed;
                    model[last + 1..].fill(Instant::FAR);
                    (last + 1..MAX_STAGES).for_each(|place| deadlines.set(place, Instant::FAR));
                }
                prop_assert_eq!(core::array::from_fn::<_, MAX_STAGES, _>(|at| deadlines.of(at)), model);
                prop_assert_eq!(deadlines.earliest(), *model.iter().min().unwrap());
            }
        }
    }

    #[test]
    fn those_of_one_stage_are_small() {
        assert_eq!(size_of::<Deadlines>(), 16);
    }
}
