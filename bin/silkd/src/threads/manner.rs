//! In which manner a receive thread is scheduled, and what makes it change. The receive threads are the interrupt of all
//! others, and what that may cost depends on who is served:
//!
//! * **Prompt**, at the priority of the highest domain, while it brings packets of a class above the
//!   ordinary: each may be one that it waits for. That is three interrupts for each
//!   ordinary request that comes by the same queue. One that is hardly ever done steps **behind** those it brings packets to, by
//!   one priority ([`HARDLY_DONE`]), if it keeps the processor from them ([`STARVED`]).
//! * **Batched** where that is configured instead: ordinary work is not interrupted, and what has come together is
//!   received together, the next time an ordinary thread sleeps.
//! * **Fair** where there is no such class, or the thread has brought nothing for one for [`QUIET`]: batched too, but only one thread
//!   among those it brings packets to. One that came before them would receive all that a flood brings and leave them no time to
//!   take it (receive livelock: Mogul and Ramakrishnan, USENIX 1996); so what is too much is lost where it costs
//!   nothing, before it is received. What comes back for what an executor sends it lets them take in before it sends
//!   more ([`State::hurry`]); and while they bring more than there is room for they are behind all others
//!   ([`State::hold_back`]).
//! * **Yielding** where batched is configured, while they use much of a CPU, and nearly all they receive is for lower
//!   classes ([`FLOODED`]): one of these floods us. They interrupt ordinary work then, or packets would be lost while
//!   it has its slice, but nobody who has a priority. Prompt threads stay real-time threads: what they have the priority of
//!   lets them run often enough (`anticipation.rs`), and a thread that yields loses more of what it should
//!   have received.
//!
//! Why, and what each manner costs: `docs/design/fifo-executors.md`.

use silk_device::Schedule;
use std::time::Duration;

/// How long no class above the ordinary has had work before ordinary work is no longer
/// interrupted.
const QUIET: Duration = Duration::from_secs(1);
/// What a flood is, and down to what it is still one.
const FLOODED: (Load, Load) =
    (Load { cpu: 40, lower: 80, waited: 0 }, Load { cpu: 25, lower: 60, waited: 0 });
/// Of a CPU, in hundredths, what a prompt thread uses that is hardly ever done, and below what it is again.
const HARDLY_DONE: (u32, u32) = (85, 50);
/// The executor that it is in the way of waits for a CPU for more than this part of the time, in hundredths.
const STARVED: u32 = 30;
/// Over how long that is measured, at least.
const WINDOW: Duration = Duration::from_millis(200);

/// The manner of a receive thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    Prompt,
    Batched,
    Fair,
    Yielding,
}

/// What receiving has cost and brought in a window, in hundredths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Load {
    /// Of a CPU.
    cpu: u32,
    /// Of the packets, those for classes below the highest.
    lower: u32,
    /// Of the time, that for which the executor of the highest class waited for a CPU.
    waited: u32,
}

impl Load {
    fn is_above(self, limit: Self) -> bool {
        self.cpu > limit.cpu && self.lower > limit.lower
    }
}

/// What is known of a receive thread, and how it is to be scheduled for that.
pub struct State {
    manner: Manner,
    /// Whoever has a real-time priority is an ordinary thread for now (`stepping_down.rs`).
    down: bool,
    /// The daemon has.
    ended: bool,
    /// It is fair, and before all others for a moment.
    hurried: bool,
    /// It is fair, and runs only while nobody else does.
    held_back: bool,
    /// It is prompt, and comes after what it brings packets to.
    behind: bool,
    /// How long it has brought nothing to anybody above the ordinary.
    quiet: Duration,
    /// How much of the window has passed.
    window: Duration,
    /// What had been used and received when it began.
    sums: Sums,
    /// CPU time that the thread used while it was prompt, ns, until it was last another.
    prompt: u64,
    /// What it had used in all when it became prompt; `None`: it is not.
    prompt_since: Option<u64>,
}

/// What has been used and received since the start.
#[derive(Clone, Copy, Default)]
pub struct Sums {
    /// CPU time, ns.
    pub cpu: u64,
    /// Packets of all classes.
    pub packets: u64,
    /// Those for classes below the highest.
    pub lower: u64,
    /// How long the executor of the highest class has waited for a CPU, ns.
    pub waited: u64,
}

impl Sums {
    /// What came since `before`, in a time of `passed`.
    fn since(self, before: Self, passed: Duration) -> Load {
        let share = |part: u64, whole: u64| (part.saturating_mul(100) / whole.max(1)) as u32;
        let lower = self.lower.saturating_sub(before.lower);
        let of_time = |now: u64, before: u64| share(now.saturating_sub(before), passed.as_nanos() as u64);
        Load {
            cpu: of_time(self.cpu, before.cpu),
            waited: of_time(self.waited, before.waited),
            lower: share(lower, self.packets.saturating_sub(before.packets)),
        }
    }
}

/// What follows a manner, given how long nobody above the ordinary has had work, the load at
/// the end of a window, and the manner for serving such a class.
fn next(manner: Manner, quiet: Duration, load: Option<Load>, serving: Manner) -> Manner {
    match (manner, load) {
        _ if quiet >= QUIET => Manner::Fair,
        _ if serving == Manner::Prompt => Manner::Prompt,
        (Manner::Yielding, Some(load)) if !load.is_above(FLOODED.1) => serving,
        (Manner::Yielding, _) => Manner::Yielding,
        (_, Some(load)) if load.is_above(FLOODED.0) => Manner::Yielding,
        _ => serving,
    }
}

impl State {
    /// That of a thread that begins in this manner.
    pub fn new(manner: Manner) -> Self {
        Self {
            manner,
            down: false,
            ended: false,
            hurried: false,
            held_back: false,
            behind: false,
            quiet: Duration::ZERO,
            window: Duration::ZERO,
            sums: Sums::default(),
            prompt: 0,
            prompt_since: (manner == Manner::Prompt).then_some(0),
        }
    }

    /// Whether it is fair.
    pub fn is_fair(&self) -> bool {
        self.manner == Manner::Fair
    }

    /// Whether it comes after those it brings packets to.
    pub fn is_behind(&self) -> bool {
        self.behind
    }

    /// Its name in reports.
    pub fn name(&self) -> &'static str {
        match self.manner {
            Manner::Prompt if self.behind => "prompt, behind",
            Manner::Prompt => "prompt",
            Manner::Batched => "batched",
            Manner::Fair if self.held_back => "held back",
            Manner::Fair => "fair",
            Manner::Yielding => "yielding",
        }
    }

    /// The daemon ends: it is an ordinary thread, whatever is wanted of it later.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// It steps `down` among the ordinary threads, or up again.
    pub fn step(&mut self, down: bool) {
        self.down = down;
    }

    /// A fair thread runs only while nobody else does, or as before.
    pub fn hold_back(&mut self, back: bool) {
        self.held_back = back;
    }

    /// Puts a fair thread that is not held back before all others, or back among them: whether it is before them, and whether that is new.
    pub fn hurry(&mut self, begin: bool) -> (bool, bool) {
        let hurried = begin && self.is_fair() && !self.held_back;
        let was = std::mem::replace(&mut self.hurried, hurried);
        (hurried, was != hurried)
    }

    /// Looks what has been `wanted` of it in the time that `passed`, and what it has cost, which `sums` tells where it is time to look:
    /// the manner in which it is to go on while `serving` is that for a class above the ordinary, and whether it has stepped behind
    /// others, or beside them again.
    pub fn look(
        &mut self,
        (passed, wanted): (Duration, bool),
        serving: Manner,
        sums: impl FnOnce() -> Sums,
    ) -> (Manner, bool) {
        self.quiet = if wanted { Duration::ZERO } else { self.quiet + passed };
        self.window += passed;
        let load = (self.window >= WINDOW).then(|| {
            let now = sums();
            let load = now.since(self.sums, self.window);
            (self.window, self.sums) = (Duration::ZERO, now);
            load
        });
        let moved = load.is_some_and(|load| self.changes_places(load));
        (next(self.manner, self.quiet, load, serving), moved)
    }

    /// It goes on in this manner, having `used` so much CPU time, ns: whether that is another.
    pub fn change(&mut self, manner: Manner, used: impl FnOnce() -> u64) -> bool {
        if self.manner == manner {
            return false;
        }
        let used = used();
        self.prompt = self.prompt_until(Some(used));
        self.prompt_since = (manner == Manner::Prompt).then_some(used);
        (self.manner, self.behind) = (manner, false);
        true
    }

    /// The CPU time that it has had while it was prompt, ns, where it has `used` so much in all.
    pub fn prompt_until(&self, used: Option<u64>) -> u64 {
        let open = self.prompt_since.zip(used);
        self.prompt + open.map_or(0, |(since, used)| used.saturating_sub(since))
    }

    /// Another thread has taken its place, which has used nothing yet.
    pub fn succeed(&mut self) {
        self.prompt_since = self.prompt_since.map(|_| 0);
    }

    /// A window is over which brought such a load: whether it has stepped behind others, or beside them again.
    fn changes_places(&mut self, load: Load) -> bool {
        let behind = if self.behind {
            load.cpu >= HARDLY_DONE.1
        } else {
            self.manner == Manner::Prompt && load.cpu > HARDLY_DONE.0 && load.waited > STARVED
        };
        std::mem::replace(&mut self.behind, behind) != behind
    }

    /// How the thread is scheduled, where the highest domain has this real-time priority.
    pub fn schedule(&self, priority: Option<u8>) -> Schedule {
        match (self.manner, priority) {
            _ if self.ended => Schedule::Other,
            (Manner::Prompt, Some(_)) if self.down => Schedule::First,
            (Manner::Prompt, Some(priority)) => Schedule::Fifo(priority - u8::from(self.behind)),
            (Manner::Yielding, Some(_)) => Schedule::First,
            (Manner::Batched, Some(_)) => Schedule::Batch,
            _ if self.hurried => Schedule::First,
            _ if self.held_back => Schedule::Last,
            _ => Schedule::Fair,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Manner::{Batched, Fair, Prompt, Yielding};

    #[test]
    fn without_a_call_for_a_second_ordinary_work_is_left_alone() {
        let almost = QUIET - Duration::from_nanos(1);
        let flood = Some(Load { cpu: 90, lower: 99, waited: 0 });
        for serving in [Prompt, Batched] {
            let next = |manner, quiet, load| next(manner, quiet, load, serving);
            assert_eq!(next(serving, almost, None), serving);
            assert_eq!([Prompt, Yielding, Batched, Fair].map(|manner| next(manner, QUIET, flood)), [Fair; 4]);
            assert_eq!(next(Fair, Duration::ZERO, None), serving);
        }
    }

    #[test]
    fn a_flood_leaves_prompt_ones_as_they_are() {
        let flood = Some(Load { cpu: 90, lower: 99, waited: 0 });
        assert_eq!([Prompt, Batched].map(|manner| next(manner, Duration::ZERO, flood, Prompt)), [Prompt; 2]);
    }

    #[test]
    fn a_flood_makes_batched_ones_yield_until_it_is_well_over() {
        let next = |manner, load| next(manner, Duration::ZERO, load, Batched);
        let after = |manner, cpu, lower| next(manner, Some(Load { cpu, lower, waited: 0 }));
        assert_eq!([40, 41].map(|cpu| after(Batched, cpu, 99)), [Batched, Yielding]);
        assert_eq!([26, 25].map(|cpu| after(Yielding, cpu, 99)), [Yielding, Batched]);
        assert_eq!(after(Batched, 90, 50), Batched, "half of it is for the highest class");
        assert_eq!(next(Yielding, None), Yielding, "a window is not over");
    }

    #[test]
    fn a_manner_is_a_way_to_be_scheduled_and_exceptions_last_as_long_as_they_are_wanted() {
        let manners = [Prompt, Batched, Fair, Yielding];
        let all = |change: fn(&mut State)| {
            manners.map(|manner| {
                let mut state = State::new(manner);
                change(&mut state);
                state.schedule(Some(14))
            })
        };
        let (fifo, first) = (Schedule::Fifo(14), Schedule::First);
        assert_eq!(all(|_| ()), [fifo, Schedule::Batch, Schedule::Fair, first]);
        assert_eq!(
            all(|state| state.behind = true),
            [Schedule::Fifo(13), Schedule::Batch, Schedule::Fair, first]
        );
        assert_eq!(all(|state| state.down = true), [first, Schedule::Batch, Schedule::Fair, first]);
        assert_eq!(all(|state| state.hurried = true), [fifo, Schedule::Batch, first, first]);
        assert_eq!(all(|state| state.held_back = true), [fifo, Schedule::Batch, Schedule::Last, first]);
        assert_eq!(all(|state| (state.ended, state.hurried) = (true, true)), [Schedule::Other; 4]);
        assert_eq!(State::new(Fair).schedule(None), Schedule::Fair);
    }

    #[test]
    fn who_is_hardly_ever_done_and_starves_others_steps_behind_until_it_is_done() {
        let mut state = State::new(Prompt);
        let mut after = |(cpu, waited)| (state.changes_places(Load { cpu, lower: 0, waited }), state.behind);
        assert_eq!(
            [(85, 99), (99, 30), (86, 31)].map(&mut after),
            [(false, false), (false, false), (true, true)]
        );
        assert_eq!(
            [(99, 0), (50, 0), (49, 0), (49, 99)].map(&mut after)[1..],
            [(false, true), (true, false), (false, false)]
        );
        state.change(Fair, || 0);
        assert!(!state.changes_places(Load { cpu: 99, lower: 0, waited: 99 }));
    }

    #[test]
    fn a_load_is_what_a_window_brought() {
        let before = Sums { cpu: 1_000_000, packets: 100, lower: 100, waited: 0 };
        let now = Sums { cpu: 51_000_000, packets: 500, lower: 400, waited: 20_000_000 };
        assert_eq!(now.since(before, Duration::from_millis(100)), Load { cpu: 50, lower: 75, waited: 20 });
        assert_eq!(before.since(before, Duration::from_millis(100)), Load { cpu: 0, lower: 0, waited: 0 });
    }
}
