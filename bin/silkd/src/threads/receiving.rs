//! The threads that do the receive work, each scheduled in a manner of its own (`manner.rs`): what executors and the watchdog want of
//! them, and what they have cost.
//!
//! Each thread for itself, since it polls one hardware queue: a device that puts the packets of a class on a queue of their own
//! keeps all others from interrupting it, and from being in its way (`docs/design/queues.md`).

use crate::settings::Settings;
use crate::threads::manner::{Manner, State, Sums};
use crate::threads::priority::Scheduling;
use crate::threads::receive_thread::{Current, Place};
use silk_config::Receive;
use silk_control::ReceiverReport;
use silk_device::Queues;
use silk_device::napi::{NapiError, Thread};
use silk_device::xdp::{Counts, Device};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
                shared.change(&mut shared.state(), shared.serving);
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
            shared.set(|state| state.hold_back(back));
        }
    }

    /// Whether they serve a domain with a real-time priority.
    pub fn serve_priority(&self) -> bool {
        self.0.iter().any(|shared| shared.priority.is_some())
    }

    /// CPU time that they have used since the start, ns, while they had a real-time priority or had stepped down from it.
    pub fn used(&self) -> u64 {
        self.real_time().map(|shared| shared.state().prompt_until(shared.used())).sum()
    }

    /// Lets these step `down` among the ordinary threads, or up again.
    pub fn step(&self, down: bool) {
        for shared in self.real_time() {
            shared.set(|state| state.step(down));
        }
    }

    fn real_time(&self) -> impl Iterator<Item = &Arc<Shared>> {
        self.0.iter().filter(|shared| shared.priority.is_some() && shared.serving == Manner::Prompt)
    }

    /// What they are like now.
    pub fn report(&self, settings: &Settings) -> Vec<ReceiverReport> {
        let named = |number: u32| settings.config.devices().nth(number as usize)?.interface.as_ref();
        let one = |shared: &Arc<Shared>| {
            let state = shared.state();
            ReceiverReport {
                device: named(shared.place.number).map_or_else(String::new, |name| name.as_str().to_owned()),
                queue: shared.queue,
                tid: shared.thread().pid,
                manner: state.name().to_owned(),
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
            shared.set(State::end);
        }
    }

    /// Looks what is wanted and what it has cost; `passed` since the last look. The executor of the highest domain has `waited` for a
    /// CPU since the start, ns.
    pub fn look(&self, passed: Duration, waited: impl Fn() -> u64) {
        for shared in &self.0 {
            let is_anothers = |thread: &Thread| {
                let others = self.0.iter().filter(|other| !Arc::ptr_eq(other, shared));
                others.map(|other| other.thread()).any(|known| known.pid == thread.pid)
            };
            shared.follow(passed, is_anothers);
            shared.schedule_again(passed);
        }
        let used = || self.0.iter().filter_map(|shared| shared.used()).sum();
        let served = self.0.iter().filter(|shared| shared.priority.is_some());
        served.for_each(|shared| shared.look(passed, used, &waited));
    }
}

impl Shared {
    /// `used` tells the CPU time of all receive threads.
    fn look(&self, passed: Duration, used: impl Fn() -> u64, waited: impl Fn() -> u64) {
        let mut state = self.state();
        let wanted = self.wanted.swap(false, Relaxed);
        let (manner, moved) = state.look((passed, wanted), self.serving, || match self.serving {
            Manner::Batched => self.sums(used()),
            _ => Sums { cpu: self.used().unwrap_or(0), waited: waited(), ..Sums::default() },
        });
        if moved {
            self.apply(&state);
        }
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
        if state.change(manner, || self.used().unwrap_or(0)) {
            self.apply(state);
        }
    }

    /// Begins or ends a hurry; whether there is one now.
    fn hurry(&self, begin: bool) -> bool {
        let mut state = self.state();
        let (hurried, is_new) = state.hurry(begin);
        if is_new {
            self.apply(&state);
        }
        hurried
    }

    /// Changes something, and has it scheduled so.
    fn set(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        self.apply(&state);
    }

    fn apply(&self, state: &State) {
        self.fair.store(state.is_fair(), Relaxed);
        self.behind.store(state.is_behind(), Relaxed);
        self.current().schedule(state.schedule(self.priority));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
        let state = self.state();
        let is_time = self.current().is_to_be_scheduled_again(passed);
        if is_time {
            self.apply(&state);
        }
    }

    /// Sees now and then who polls the queue, if the thread that did has ended; `passed` since the last look. Where nobody tells who
    /// polls which, one that is not another's.
    fn follow(&self, passed: Duration, is_anothers: impl Fn(&Thread) -> bool) {
        if !self.current().is_to_be_replaced(passed) {
            return;
        }
        let Ok(threads) = self.place.threads() else { return };
        let is_ones =
            |thread: &&Thread| thread.queue == self.queue && (self.queue.is_some() || !is_anothers(thread));
        let Some(thread) = threads.iter().find(is_ones) else { return };
        let mut state = self.state();
        state.succeed();
        *self.current() = Current::new(*thread);
        self.napi.store(thread.napi, Relaxed);
        self.apply(&state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_no_such_threads_does_nothing() {
        let none = Receiving::default();
        none.want_prompt(Queues::ALL);
        none.hurry();
        none.hold_back(true);
        none.look(Duration::from_secs(1), || 0);
        assert!(!none.are_fair() && !none.are_behind());
        assert!(!none.needs_turns());
        assert!(none.fetchable(Scheduling::Batch).is_empty());
    }
}
