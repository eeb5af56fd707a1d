//! How the threads that do the receive work are scheduled while the daemon runs. They are the
//! interrupt of all others, and what that may cost depends on who is served:
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
//!   more ([`Receiving::hurry`]); and while they bring more than there is room for they are behind all others
//!   ([`Receiving::hold_back`]).
//! * **Yielding** where batched is configured, while they use much of a CPU, and nearly all they receive is for lower
//!   classes ([`FLOODED`]): one of these floods us. They interrupt ordinary work then, or packets would be lost while
//!   it has its slice, but nobody who has a priority. Prompt threads stay real-time threads: what they have the priority of
//!   lets them run often enough (`anticipation.rs`), and a thread that yields loses more of what it should
//!   have received.
//!
//! Each thread for itself, since it polls one hardware queue: a device that puts the packets of a class on a queue of their own
//! keeps all others from interrupting it, and from being in its way (`docs/design/queues.md`).
//!
//! Why, and what each manner costs: `docs/design/fifo-executors.md`.

use crate::settings::Settings;
use crate::threads::priority::Scheduling;
use crate::threads::receive_thread::{Current, Place};
use silk_config::Receive;
use silk_control::ReceiverReport;
use silk_device::napi::{NapiError, Thread};
use silk_device::xdp::{Counts, Device};
use silk_device::{Queues, Schedule};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
/// How often a thread is scheduled anew as it was left.
const AGAIN: Duration = Duration::from_millis(500);

/// The manner of the receive threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Prompt,
    Batched,
    Fair,
    Yielding,
}

impl Manner {
    /// Its name in reports, of a thread that is `held_back` or not, or `behind` others.
    fn name(self, held_back: bool, behind: bool) -> &'static str {
        match self {
            Self::Prompt if behind => "prompt, behind",
            Self::Prompt => "prompt",
            Self::Batched => "batched",
            Self::Fair if held_back => "held back",
            Self::Fair => "fair",
            Self::Yielding => "yielding",
        }
    }
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

struct State {
    manner: Manner,
    /// Whoever has a real-time priority is an ordinary thread for now (`stepping_down.rs`).
    down: bool,
    /// The daemon has.
    ended: bool,
    /// The threads are fair, and before all others for a moment.
    hurried: bool,
    /// Fair threads run only while nobody else does.
    held_back: bool,
    /// Prompt ones come after what they bring packets to.
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
    /// How long nobody has looked whether it is still scheduled as it was left.
    unseen: Duration,
}

/// What the threads have used and the program received since the start.
#[derive(Clone, Copy, Default)]
struct Sums {
    /// CPU time, ns.
    cpu: u64,
    packets: u64,
    /// Those for classes below the highest.
    lower: u64,
    /// How long the executor of the highest class has waited for a CPU, ns.
    waited: u64,
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

/// A receive thread.
struct Shared {
    /// Whose.
    place: Place,
    /// The queue that it polls, where that is known.
    queue: Option<u32>,
    /// Whose thread it is at present: that of a veth is another once its interface was down.
    napi: Arc<AtomicU32>,
    current: Mutex<Current>,
    /// By which queues its packets come.
    queues: Queues,
    /// The real-time priority of the highest domain; `None`: all are ordinary.
    priority: Option<u8>,
    /// How it receives while a class above the ordinary is served.
    serving: Manner,
    /// Tells how many packets came for which domain.
    device: Arc<Mutex<Device>>,
    domains: u32,
    /// It has brought work to a class above the ordinary since the last look.
    wanted: AtomicBool,
    /// It is fair: whoever wants it to be otherwise has to say so.
    fair: AtomicBool,
    /// It is behind those it brings packets to, who need not wait awake for it.
    behind: AtomicBool,
    state: Mutex<State>,
}

/// The receive threads of all interfaces; shared by the executors and the watchdog.
#[derive(Clone, Default)]
pub struct Receiving(Vec<Arc<Shared>>);

impl Receiving {
    /// These threads of a device, at first as `receive` says if the highest domain has this real-time priority, and
    /// fair otherwise.
    ///
    /// # Errors
    /// The kernel refuses to schedule one of them so.
    pub fn start(
        (place, threads): (Place, Vec<Thread>),
        (priority, receive): (Option<u8>, Receive),
        device: &Arc<Mutex<Device>>,
        domains: u32,
    ) -> Result<Self, NapiError> {
        let manner = match (priority, receive) {
            (Some(_), Receive::Prompt) => Manner::Prompt,
            (Some(_), Receive::Batched) => Manner::Batched,
            (None, _) => Manner::Fair,
        };
        let shared = |thread: Thread| {
            let state = State::new(manner);
            thread.schedule(state.schedule(priority))?;
            let Place { number, .. } = place;
            Ok(Arc::new(Shared {
                place: place.clone(),
                queue: thread.queue,
                napi: Arc::new(AtomicU32::new(thread.napi)),
                current: Mutex::new(Current::new(thread)),
                queues: thread.queue.map_or(Queues::all_of(number), |queue| Queues::one(number, queue)),
                priority,
                serving: manner,
                device: device.clone(),
                domains,
                wanted: AtomicBool::new(true),
                fair: AtomicBool::new(manner == Manner::Fair),
                behind: AtomicBool::new(false),
                state: Mutex::new(state),
            }))
        };
        threads.into_iter().map(shared).collect::<Result<_, _>>().map(Self)
    }

    /// The threads of both.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// A class above the ordinary has work, which came by these queues. Costs nothing unless it is the first in a while.
    pub fn want_prompt(&self, brought: Queues) {
        for shared in self.0.iter().filter(|shared| shared.queues.meets(brought)) {
            if !shared.wanted.load(Relaxed) {
                shared.wanted.store(true, Relaxed);
            }
            if shared.fair.load(Relaxed) {
                let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
                shared.change(&mut state, shared.serving);
            }
        }
    }

    /// Whether ordinary executors are to keep their turns short and let the threads run after
    /// each, because these interrupt nobody and a higher class may wait for what they receive.
    pub fn needs_turns(&self) -> bool {
        let batched = |shared: &Arc<Shared>| shared.priority.is_some() && shared.serving == Manner::Batched;
        self.0.iter().any(batched)
    }

    /// Whether some of them run at this real-time priority while that is served: whoever has it and looks for what
    /// they bring, again and again, need only let them run in between.
    pub fn run_beside(&self, scheduling: Scheduling) -> bool {
        let same = |shared: &Arc<Shared>| {
            let priority = shared.priority.map(|priority| Scheduling::Fifo(priority.into()));
            shared.serving == Manner::Prompt && priority == Some(scheduling)
        };
        self.0.iter().any(same)
    }

    /// Whether one of them is behind those it brings packets to: it runs once they sleep.
    pub fn are_behind(&self) -> bool {
        self.0.iter().any(|shared| shared.behind.load(Relaxed))
    }

    /// The NAPIs whose packets an executor may fetch that is scheduled like this, and the queues by which they come: only that of the
    /// highest domain, so that no two get in each other's way. Which queue a NAPI has must be known where there are several.
    pub fn fetchable(&self, scheduling: Scheduling) -> Vec<(Queues, Arc<AtomicU32>)> {
        let alone = self.0.len() == 1;
        let may = |shared: &&Arc<Shared>| {
            (shared.priority.is_none() || self.run_beside(scheduling)) && (alone || shared.queue.is_some())
        };
        self.0.iter().filter(may).map(|shared| (shared.queues, shared.napi.clone())).collect()
    }

    /// An ordinary executor on the same CPU has sent much, and fair threads that want to run take in at once what was sent back meanwhile:
    /// who becomes the first of the ordinary threads interrupts whoever runs. Otherwise they would wait for their turn, behind programs
    /// that answer what has come before, and a veth's ring of 256 packets run over. (To give way instead, `sched_yield`, would give away
    /// a whole slice, to whatever else wants to run.)
    pub fn hurry(&self) {
        let fair = |shared: &&Arc<Shared>| shared.fair.load(Relaxed);
        let mut hurried = false;
        for shared in self.0.iter().filter(fair) {
            hurried |= shared.hurry(true);
        }
        if hurried {
            self.0.iter().for_each(|shared| _ = shared.hurry(false));
        }
    }

    /// Whether some of them are fair now.
    pub fn are_fair(&self) -> bool {
        self.0.iter().any(|shared| shared.fair.load(Relaxed))
    }

    /// Lets fair threads run only while nobody else does, or as before: they have received what there was no room for.
    pub fn hold_back(&self, back: bool) {
        for shared in &self.0 {
            let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.held_back = back;
            shared.apply(&state);
        }
    }

    /// Whether they serve a domain with a real-time priority.
    pub fn serve_priority(&self) -> bool {
        self.0.iter().any(|shared| shared.priority.is_some())
    }

    /// CPU time that they have used since the start, ns, while they had a real-time priority or had stepped down from it.
    pub fn used(&self) -> u64 {
        self.real_time().map(|shared| shared.used_while_prompt()).sum()
    }

    /// Lets these step `down` among the ordinary threads, or up again.
    pub fn step(&self, down: bool) {
        for shared in self.real_time() {
            let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.down = down;
            shared.apply(&state);
        }
    }

    fn real_time(&self) -> impl Iterator<Item = &Arc<Shared>> {
        self.0.iter().filter(|shared| shared.priority.is_some() && shared.serving == Manner::Prompt)
    }

    /// What they are like now.
    pub fn report(&self, settings: &Settings) -> Vec<ReceiverReport> {
        let named = |number: u32| settings.config.devices().nth(number as usize)?.interface.as_ref();
        let one = |shared: &Arc<Shared>| {
            let state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
            ReceiverReport {
                device: named(shared.place.number).map_or_else(String::new, |name| name.as_str().to_owned()),
                queue: shared.queue,
                tid: shared.thread().pid,
                manner: state.manner.name(state.held_back, state.behind).to_owned(),
                cpu_ns: shared.used().unwrap_or(0),
            }
        };
        self.0.iter().map(one).collect()
    }

    /// The numbers of the interfaces whose threads they are.
    pub fn interfaces(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.0.iter().map(|shared| shared.place.interface.index).collect();
        all.dedup();
        all
    }

    /// Lets them be as they were, whatever is wanted of them later: the daemon ends.
    pub fn end(&self) {
        for shared in &self.0 {
            let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.ended = true;
            shared.apply(&state);
        }
    }

    /// Looks what is wanted and what it has cost; `passed` since the last look. The executor of the highest domain has `waited` for a
    /// CPU since the start, ns.
    pub fn look(&self, passed: Duration, waited: impl Fn() -> u64) {
        for shared in &self.0 {
            shared.follow(passed);
            shared.schedule_again(passed);
        }
        let used = || self.0.iter().filter_map(|shared| shared.used()).sum();
        let served = self.0.iter().filter(|shared| shared.priority.is_some());
        served.for_each(|shared| shared.look(passed, used, &waited));
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
    fn new(manner: Manner) -> Self {
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
            unseen: Duration::ZERO,
        }
    }

    /// A window is over which brought such a load: whether it has stepped behind others, or beside them again.
    fn is_to_change_places(&mut self, load: Load) -> bool {
        let behind = if self.behind {
            load.cpu >= HARDLY_DONE.1
        } else {
            self.manner == Manner::Prompt && load.cpu > HARDLY_DONE.0 && load.waited > STARVED
        };
        std::mem::replace(&mut self.behind, behind) != behind
    }

    /// How the thread is scheduled, where the highest domain has this real-time priority.
    fn schedule(&self, priority: Option<u8>) -> Schedule {
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

impl Shared {
    /// `used` tells the CPU time of all receive threads.
    fn look(&self, passed: Duration, used: impl Fn() -> u64, waited: impl Fn() -> u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = self.wanted.swap(false, Relaxed);
        state.quiet = if wanted { Duration::ZERO } else { state.quiet + passed };
        state.window += passed;
        let mut load = None;
        if state.window >= WINDOW {
            let now = match self.serving {
                Manner::Batched => self.sums(used()),
                _ => Sums { cpu: self.used().unwrap_or(0), waited: waited(), ..Sums::default() },
            };
            load = Some(now.since(state.sums, state.window));
            (state.window, state.sums) = (Duration::ZERO, now);
        }
        if let Some(load) = load
            && state.is_to_change_places(load)
        {
            self.apply(&state);
        }
        let manner = next(state.manner, state.quiet, load, self.serving);
        self.change(&mut state, manner);
    }

    /// What the threads have used, and what has come over all interfaces, which the program counts together.
    fn sums(&self, cpu: u64) -> Sums {
        let device = self.device.lock().unwrap_or_else(PoisonError::into_inner);
        let received = |domain| {
            let Counts { path, listen, fragment, control, .. } = device.counts(domain);
            path + listen + fragment + control
        };
        let lower = (0..self.domains.saturating_sub(1)).map(received).sum();
        Sums { cpu, waited: 0, packets: lower + received(self.domains.saturating_sub(1)), lower }
    }

    fn change(&self, state: &mut State, manner: Manner) {
        if state.manner == manner {
            return;
        }
        state.manner = manner;
        state.behind = false;
        self.keep_account(state);
        self.apply(state);
    }

    /// Begins or ends the account of what the thread uses while it is prompt.
    fn keep_account(&self, state: &mut State) {
        let used = self.used().unwrap_or(0);
        if let Some(since) = state.prompt_since.take() {
            state.prompt += used.saturating_sub(since);
        }
        state.prompt_since = (state.manner == Manner::Prompt).then_some(used);
    }

    fn used_while_prompt(&self) -> u64 {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let open = state.prompt_since.zip(self.used());
        state.prompt + open.map_or(0, |(since, used)| used.saturating_sub(since))
    }

    /// Begins or ends a hurry; whether there is one now.
    fn hurry(&self, begin: bool) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let hurried = begin && state.manner == Manner::Fair && !state.held_back;
        if std::mem::replace(&mut state.hurried, hurried) != hurried {
            self.apply(&state);
        }
        hurried
    }

    fn apply(&self, state: &State) {
        self.fair.store(state.manner == Manner::Fair, Relaxed);
        self.behind.store(state.behind, Relaxed);
        self.current().schedule(state.schedule(self.priority));
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn thread(&self) -> Thread {
        self.current().thread()
    }

    fn used(&self) -> Option<u64> {
        self.current().used()
    }

    /// Schedules it now and then as it is to be, which costs nothing where it is: the heir of a daemon that was killed may come late
    /// to make it an ordinary one. `passed` since the last look.
    fn schedule_again(&self, passed: Duration) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.unseen += passed;
        if state.unseen >= AGAIN {
            state.unseen = Duration::ZERO;
            self.apply(&state);
        }
    }

    /// Sees now and then who polls the queue, if the thread that did has ended; `passed` since the last look.
    fn follow(&self, passed: Duration) {
        if !self.current().is_to_be_replaced(passed) {
            return;
        }
        let Ok(threads) = self.place.threads() else { return };
        let Some(thread) = threads.iter().find(|thread| thread.queue == self.queue) else { return };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(since) = state.prompt_since.as_mut() {
            *since = 0;
        }
        *self.current() = Current::new(*thread);
        self.napi.store(thread.napi, Relaxed);
        self.apply(&state);
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
        let mut after =
            |(cpu, waited)| (state.is_to_change_places(Load { cpu, lower: 0, waited }), state.behind);
        assert_eq!(
            [(85, 99), (99, 30), (86, 31)].map(&mut after),
            [(false, false), (false, false), (true, true)]
        );
        assert_eq!(
            [(99, 0), (50, 0), (49, 0), (49, 99)].map(&mut after)[1..],
            [(false, true), (true, false), (false, false)]
        );
        state.manner = Fair;
        assert!(!state.is_to_change_places(Load { cpu: 99, lower: 0, waited: 99 }));
    }

    #[test]
    fn a_load_is_what_a_window_brought() {
        let before = Sums { cpu: 1_000_000, packets: 100, lower: 100, waited: 0 };
        let now = Sums { cpu: 51_000_000, packets: 500, lower: 400, waited: 20_000_000 };
        assert_eq!(now.since(before, Duration::from_millis(100)), Load { cpu: 50, lower: 75, waited: 20 });
        assert_eq!(before.since(before, Duration::from_millis(100)), Load { cpu: 0, lower: 0, waited: 0 });
    }

    #[test]
    fn who_has_no_such_threads_does_nothing() {
        let none = Receiving::default();
        none.want_prompt(Queues::ALL);
        none.hurry();
        none.hold_back(true);
        none.look(QUIET, || 0);
        assert!(!none.are_fair() && !none.are_behind());
        assert!(!none.needs_turns());
        assert!(none.fetchable(Scheduling::Batch).is_empty());
    }
}
