//! The fluid model that WFQ, BERT and the shares between policies measure themselves by
//! (Demers, Keshav and Shenker 1989; Bennett and Zhang's WF2Q, 1996; Stoica and
//! Abdel-Wahab's EEVDF, 1995). In the model every member with work is served at once, each
//! at a rate proportional to its weight; *virtual time* is the service that weight 1 has
//! had. A real processor serves one at a time, so each member carries the virtual time its
//! service has come to, and is *eligible* when the model has come as far. Of the eligible
//! the one that the model would finish first is served.
//!
//! A member without work that had been served ahead of the model stays in the sum of the
//! weights until the model has caught up, so it gains nothing by leaving and coming back.
//!
//! The invariant everything rests on: over all members the model still serves,
//! `Σ weight × (virtual now − start) = 0`, up to rounding of 2⁻⁶⁴ ns.

use crate::heap::Heap;
use crate::reserve::WHOLE;
use alloc::vec::Vec;
use core::time::Duration;

/// Virtual time: nanoseconds of service per unit of weight, 64 bits of them fraction.
pub(crate) type Virtual = u128;

/// Longest run that is charged in full: 18 minutes. It keeps the arithmetic in range.
const LONGEST_RUN: u64 = 1 << 40;

/// Where virtual time begins: far from 0, since a member may be owed service from before.
const EPOCH: Virtual = 1 << 124;

#[derive(Debug)]
pub(crate) struct Fluid {
    now: Virtual,
    /// Sum of the weights of the members the model serves: all but the absent and idle.
    weight: u64,
    /// `pace(weight)`, or 0 when nobody is served.
    pace: u64,
    tags: Vec<Tag>,
    /// Ready and ahead of the model, by start.
    waiting: Heap,
    /// Ready and not ahead of it, by the virtual time at which the next run should end.
    eligible: Heap,
    /// Without work and ahead of the model, or without work only just now, by start.
    leaving: Heap,
}

/// What the model knows of one member.
#[derive(Clone, Copy, Debug)]
struct Tag {
    /// Where the member's service has come to. Kept while it is idle.
    start: Virtual,
    weight: u32,
    pace: u64,
    /// How long its next run is expected to take, in nanoseconds.
    expected: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Absent,
    /// Without work, and not ahead of the model.
    Idle,
    /// In `leaving`.
    Leaving,
    /// In `waiting` or `eligible`.
    Ready,
    /// Chosen and not charged yet.
    Running,
    /// The same, with more work waiting.
    RunningWithMore,
}

impl State {
    fn is_served(self) -> bool {
        !matches!(self, Self::Absent | Self::Idle)
    }
}

/// Virtual time per nanosecond of service at this weight.
fn pace(weight: u64) -> u64 {
    u64::MAX.checked_div(weight).unwrap_or(0)
}

/// How far `nanos` of service bring a weight of this pace.
fn advance(nanos: u64, pace: u64) -> Virtual {
    u128::from(nanos) * u128::from(pace)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).min(LONGEST_RUN)
}

impl Fluid {
    /// A model of nobody.
    pub(crate) fn new() -> Self {
        Self {
            now: EPOCH,
            weight: 0,
            pace: 0,
            tags: Vec::new(),
            waiting: Heap::default(),
            eligible: Heap::default(),
            leaving: Heap::default(),
        }
    }

    /// Makes room for members below `len`.
    pub(crate) fn reach(&mut self, len: usize) {
        if self.tags.len() < len {
            let absent = Tag { start: EPOCH, weight: 1, pace: pace(1), expected: 0, state: State::Absent };
            self.tags.resize(len, absent);
            self.waiting.reach(len);
            self.eligible.reach(len);
            self.leaving.reach(len);
        }
    }

    /// Lets `id` take part with this weight (not 0), its runs expected to take `expected`.
    /// A member that takes part already keeps the service it is owed or owes.
    pub(crate) fn admit(&mut self, id: u32, weight: u32, expected: Duration) {
        self.reach(id as usize + 1);
        let now = self.now;
        let tag = &mut self.tags[id as usize];
        let old = core::mem::replace(&mut tag.weight, weight);
        tag.pace = pace(u64::from(weight));
        tag.expected = nanos(expected);
        if tag.state == State::Absent {
            tag.state = State::Idle;
            tag.start = now;
        } else if tag.state.is_served() && old != weight {
            let lag = now.wrapping_sub(tag.start) as i128;
            tag.start = now.wrapping_sub((lag * i128::from(old) / i128::from(weight)) as u128);
            self.serve(i64::from(weight) - i64::from(old));
        }
        self.replace(id);
    }

    /// Forgets `id`. What it was owed or owed is spread over the others.
    pub(crate) fn remove(&mut self, id: u32) {
        let Some(tag) = self.tags.get_mut(id as usize) else { return };
        let was = core::mem::replace(&mut tag.state, State::Absent);
        if !was.is_served() {
            return;
        }
        let (start, weight) = (tag.start, tag.weight);
        self.waiting.remove(id);
        self.eligible.remove(id);
        self.leaving.remove(id);
        self.settle(start, weight);
    }

    /// `id` has work.
    pub(crate) fn ready(&mut self, id: u32) {
        let now = self.now;
        let Some(tag) = self.tags.get_mut(id as usize) else { return };
        match tag.state {
            State::Absent | State::Ready | State::RunningWithMore => {}
            State::Running => tag.state = State::RunningWithMore,
            State::Leaving => {
                tag.state = State::Ready;
                self.leaving.remove(id);
                self.place(id);
            }
            State::Idle => {
                tag.state = State::Ready;
                tag.start = tag.start.max(now);
                let weight = tag.weight;
                self.serve(i64::from(weight));
                self.place(id);
            }
        }
    }

    /// `id`, if it was ready, has no work any more though it did not run.
    pub(crate) fn withdraw(&mut self, id: u32) {
        match self.state(id) {
            State::Ready => {
                self.waiting.remove(id);
                self.eligible.remove(id);
                self.leave(id);
            }
            State::RunningWithMore => self.tags[id as usize].state = State::Running,
            _ => {}
        }
    }

    /// Who runs now. Only here do members without work lose what they are owed, so that
    /// one that is charged and made ready again at once has not been away.
    pub(crate) fn next(&mut self) -> Option<u32> {
        self.release_leaving();
        self.promote();
        if self.eligible.is_empty() {
            // Only rounding, or a member removed with service owed to it, leads here.
            self.now = self.waiting.peek()?.0.max(self.now);
            self.release_leaving();
            self.promote();
        }
        let (_, id) = self.eligible.pop()?;
        self.tags[id as usize].state = State::Running;
        Some(id)
    }

    /// `id` ran for `used`.
    pub(crate) fn charge(&mut self, id: u32, used: Duration) {
        let state = self.state(id);
        if !matches!(state, State::Running | State::RunningWithMore) {
            return;
        }
        let used = nanos(used);
        let tag = &mut self.tags[id as usize];
        tag.start += advance(used, tag.pace);
        self.flow(used);
        if state == State::RunningWithMore {
            self.tags[id as usize].state = State::Ready;
            self.place(id);
        } else {
            self.leave(id);
        }
    }

    /// Expects `id`'s next run to take this long.
    pub(crate) fn expect(&mut self, id: u32, expected: Duration) {
        self.tags[id as usize].expected = nanos(expected);
        self.replace(id);
    }

    /// By how much, in virtual time, `id` would end its next run, behind the one that it may
    /// be in, after a real time `allowed` from now even if the model served everybody. Zero
    /// if it is in time. As in `spare`, weights are millionths of the processor.
    pub(crate) fn lateness(&self, id: u32, allowed: Duration) -> Virtual {
        let tag = &self.tags[id as usize];
        let runs = if matches!(tag.state, State::Running | State::RunningWithMore) { 2 } else { 1 };
        let finish = tag.start + runs * advance(tag.expected, tag.pace);
        finish.saturating_sub(self.horizon(allowed))
    }

    /// The service, in nanoseconds, that `id` could give away of what the model would give
    /// it in the real time `allowed`: none unless it is ready.
    pub(crate) fn spare(&self, id: u32, allowed: Duration) -> u64 {
        let tag = &self.tags[id as usize];
        if tag.state != State::Ready {
            return 0;
        }
        service(self.horizon(allowed).saturating_sub(tag.start.max(self.now)), tag.weight)
    }

    /// The service, in nanoseconds, that this much virtual time is for `id`.
    pub(crate) fn service(&self, id: u32, time: Virtual) -> u64 {
        service(time, self.tags[id as usize].weight)
    }

    /// Moves `nanos` of service from one member to another: the theft of BERT.
    pub(crate) fn transfer(&mut self, from: u32, to: u32, nanos: u64) {
        let victim = &mut self.tags[from as usize];
        victim.start += advance(nanos, victim.pace);
        let thief = &mut self.tags[to as usize];
        thief.start = thief.start.saturating_sub(advance(nanos, thief.pace));
        self.replace(from);
        self.replace(to);
    }

    /// Whether nobody is ready.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.eligible.is_empty()
    }

    fn state(&self, id: u32) -> State {
        self.tags.get(id as usize).map_or(State::Absent, |tag| tag.state)
    }

    /// Virtual time cannot run slower than this, where the weights of all add up to the
    /// millionths of the processor that they have: of each unit of real time they have
    /// `part / WHOLE`, and with everybody served that brings it `1 / part` as far. Whoever
    /// does not need what he has beside them only makes it faster.
    fn horizon(&self, allowed: Duration) -> Virtual {
        self.now + advance(nanos(allowed), pace(u64::from(WHOLE)))
    }

    /// The model serves for `used` nanoseconds, and lets go of those it catches up with.
    fn flow(&mut self, used: u64) {
        let mut gain = advance(used, self.pace);
        while let Some((start, id)) = self.leaving.peek()
            && start <= self.now + gain
        {
            let rest = (self.now + gain).saturating_sub(start.max(self.now));
            self.now = self.now.max(start);
            let before = self.weight;
            self.release(id);
            gain = match self.weight {
                0 => 0,
                weight => ((rest >> 32) * u128::from(before) / u128::from(weight)) << 32,
            };
        }
        self.now += gain;
    }

    fn release_leaving(&mut self) {
        while let Some((start, id)) = self.leaving.peek()
            && start <= self.now
        {
            self.release(id);
        }
    }

    /// From leaving to idle.
    fn release(&mut self, id: u32) {
        self.leaving.remove(id);
        let tag = &mut self.tags[id as usize];
        tag.state = State::Idle;
        let Tag { start, weight, .. } = *tag;
        self.settle(start, weight);
    }

    /// Serves one member less. Had it been served less than its share, the others were
    /// served in its place, and virtual time moves up to where that brought them; had it
    /// been served more, virtual time moves back.
    fn settle(&mut self, start: Virtual, weight: u32) {
        self.serve(-i64::from(weight));
        let lag = self.now.wrapping_sub(start) as i128;
        if lag != 0 && self.weight > 0 {
            let shift = lag * i128::from(weight) / i128::from(self.weight);
            self.now = self.now.saturating_add_signed(shift);
        }
    }

    fn leave(&mut self, id: u32) {
        let tag = &mut self.tags[id as usize];
        tag.state = State::Leaving;
        let start = tag.start;
        self.leaving.set(id, start);
    }

    /// Puts a ready member where it belongs.
    fn place(&mut self, id: u32) {
        let tag = &self.tags[id as usize];
        if tag.start <= self.now {
            self.eligible.set(id, tag.start + advance(tag.expected, tag.pace));
        } else {
            self.waiting.set(id, tag.start);
        }
    }

    /// Puts a member whose tag changed where it belongs now.
    fn replace(&mut self, id: u32) {
        match self.state(id) {
            State::Ready => {
                self.waiting.remove(id);
                self.eligible.remove(id);
                self.place(id);
            }
            State::Leaving => {
                let start = self.tags[id as usize].start;
                self.leaving.set(id, start);
            }
            _ => {}
        }
    }

    fn promote(&mut self) {
        while let Some((start, id)) = self.waiting.peek()
            && start <= self.now
        {
            self.waiting.remove(id);
            self.place(id);
        }
    }

    fn serve(&mut self, more: i64) {
        self.weight = self.weight.wrapping_add_signed(more);
        self.pace = pace(self.weight);
    }
}

fn service(time: Virtual, weight: u32) -> u64 {
    let nanos = ((time >> 32) * u128::from(weight)) >> 32;
    u64::try_from(nanos).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUANTUM: Duration = Duration::from_micros(100);

    /// The invariant, in nanoseconds of service; also checks the sum of the weights.
    fn imbalance(fluid: &Fluid) -> i128 {
        let served = fluid.tags.iter().filter(|tag| tag.state.is_served());
        assert_eq!(served.clone().map(|tag| u64::from(tag.weight)).sum::<u64>(), fluid.weight);
        let lag = |tag: &Tag| (fluid.now.wrapping_sub(tag.start) as i128 >> 32) * i128::from(tag.weight);
        served.map(lag).sum::<i128>() >> 32
    }

    fn run(fluid: &mut Fluid, micros: u64) -> u32 {
        let id = fluid.next().unwrap();
        fluid.charge(id, Duration::from_micros(micros));
        id
    }

    #[test]
    fn what_is_owed_and_what_is_owing_stay_in_balance() {
        let mut fluid = Fluid::new();
        for id in 0..4 {
            fluid.admit(id, id + 1, QUANTUM);
            fluid.ready(id);
        }
        for round in 0..1000u64 {
            let id = run(&mut fluid, 1 + round * 37 % 100);
            if round % 5 != 0 {
                fluid.ready(id);
            }
            if round % 11 == 0 {
                (0..4).for_each(|id| fluid.ready(id));
            }
            if round % 97 == 0 {
                fluid.admit(2, 1 + round as u32 % 7, QUANTUM);
            }
            assert!(imbalance(&fluid).abs() <= 1, "{} ns in round {round}", imbalance(&fluid));
        }
        fluid.remove(3);
        assert!(imbalance(&fluid).abs() <= 1);
    }

    #[test]
    fn leaving_early_and_coming_back_gains_nothing() {
        let mut fluid = Fluid::new();
        (0..2).for_each(|id| fluid.admit(id, 1, QUANTUM));
        (0..2).for_each(|id| fluid.ready(id));
        let mut runs = [0; 2];
        for _ in 0..1000 {
            let id = run(&mut fluid, 100);
            runs[id as usize] += 1;
            (0..2).for_each(|id| fluid.ready(id));
        }
        assert_eq!(runs, [500, 500]);
    }

    #[test]
    fn a_transfer_keeps_the_balance() {
        let mut fluid = Fluid::new();
        (0..3).for_each(|id| fluid.admit(id, 10 * (id + 1), QUANTUM));
        (0..3).for_each(|id| fluid.ready(id));
        run(&mut fluid, 100);
        fluid.transfer(1, 2, 40_000);
        assert!(imbalance(&fluid).abs() <= 1);
    }
}
