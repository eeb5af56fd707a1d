//! A domain's thread: takes a batch from the ring, the doorbells, the orders and
//! the timers; lets the policy choose activities; sends what they produced; sleeps only after
//! announcing it and looking once more, and where more is likely to come at once not before it has waited for it
//! (`anticipation.rs`).

use crate::between::command::Command;
use crate::between::names::FamilyIndex;
use crate::domain::anticipation::{Anticipation, PATIENCE};
use crate::domain::engine::Engine;
use crate::domain::only_queue::OnlyQueue;
use crate::domain::orders;
use crate::domain::sleep::Sleeper;
use crate::say::say;
use crate::threads::linux_share::LinuxShare;
use crate::threads::linux_turns::LinuxTurns;
use crate::threads::overrun::Overrun;
use crate::threads::priority::{self, Scheduling};
use crate::threads::receiving::Receiving;
use crate::threads::ringing::Ringers;
use crate::threads::stepping_down::RealTime;
use crate::{cpus, sys};
use silk_executor::{BATCH, clock};
use silk_instant::Instant;
use silk_stream::mail::{Nothing, Receiver};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::fence;
use std::time::Duration;

/// Activities between two looks at the ring.
const BUDGET: usize = 32;
/// After so long orders wait for the next turn: one program may be the reason for many, and each may send what it has left.
const OBEYING: Duration = Duration::from_millis(1);
/// The same where the receive threads run only between turns.
const SHORT_BUDGET: usize = 12;

/// Messages sent until the receive threads are to take in what was sent back: half of what a veth's ring holds.
const SENT_BEFORE_RECEIVING: u32 = 128;

/// Nobody else had the processor while it was given away, if it was for no longer.
const ALONE: Duration = Duration::from_nanos(1_200);
/// A receive thread that has it for longer brings more than a client's next packet.
const MUCH: Duration = Duration::from_micros(5);
/// So many times it is not given it for an end then.
const IN_A_HURRY: u32 = 100;

/// What an executor that has nothing to do does.
enum Rest {
    /// It looks again.
    None,
    /// It sleeps, fetching packets first.
    Fetching,
    Asleep,
}

/// How an executor's thread runs.
#[derive(Clone, Debug)]
pub struct Placement {
    /// On these CPUs; anywhere if none is named.
    pub cpus: Vec<usize>,
    /// How it is scheduled.
    pub scheduling: Scheduling,
    /// Linux's share, where the policy divides the processor.
    pub linux: Option<LinuxShare>,
    /// It may stay awake for what comes soon.
    pub anticipates: bool,
}

/// What an executor does for others, all the time that it is scheduled so.
struct Habits {
    /// It has no real-time priority.
    ordinary: bool,
    /// It keeps its turns short and gives way after each: the receive threads run only then.
    gives_way: bool,
    /// It may stay awake for what comes soon.
    anticipates: bool,
}

impl Habits {
    fn of(placement: &Placement, receiving: &Receiving) -> Self {
        let ordinary = !matches!(placement.scheduling, Scheduling::Fifo(_));
        Self {
            ordinary,
            gives_way: ordinary && receiving.needs_turns(),
            // Who has the receive threads' priority lets them run by giving way; whose priority is another cannot.
            anticipates: placement.anticipates && receiving.run_beside(placement.scheduling),
        }
    }
}

/// The executor.
pub struct Executor {
    engine: Engine,
    orders: Receiver<Command>,
    sleeper: Sleeper,
    domain: usize,
    /// The threads that bring it packets.
    receiving: Receiving,
    /// The executors that step down together.
    real_time: RealTime,
    /// The executors that ring event sets.
    ringers: Ringers,
    anticipation: Anticipation,
    overrun: Overrun,
    /// Where it may fetch packets from.
    only_queue: OnlyQueue,
    /// Packets came when it looked once more before it slept.
    looked_in_time: bool,
    /// For so many ends the receive thread has no turn before the program.
    hurry: u32,
}

impl Executor {
    /// An executor that sleeps by `sleeper`, which its device's ring and what programs and the
    /// control thread write wake. `receiving` are the threads that bring it packets; `real_time` it joins if it has such a
    /// priority, and `ringers` in any case.
    pub fn new(
        engine: Engine,
        orders: Receiver<Command>,
        sleeper: Sleeper,
        (receiving, real_time, ringers): (Receiving, RealTime, Ringers),
    ) -> Self {
        let (anticipation, overrun, only_queue) = Default::default();
        Self {
            domain: engine.domain,
            engine,
            orders,
            sleeper,
            receiving,
            real_time,
            ringers,
            anticipation,
            overrun,
            only_queue,
            looked_in_time: false,
            hurry: 0,
        }
    }

    /// Runs until it is told to stop.
    pub fn run(mut self, placement: &Placement) {
        place(placement, &self.real_time);
        self.engine.ringing = self.ringers.join().prepared();
        let Habits { ordinary, gives_way, anticipates } = Habits::of(placement, &self.receiving);
        let budget = if gives_way { SHORT_BUDGET } else { BUDGET };
        let mut linux = placement.linux.and_then(|share| LinuxTurns::new(share, placement.scheduling));
        // Real-time threads that do not anticipate are not to keep the processor either, and Linux's share is measured by who sleeps.
        if linux.is_none() && (ordinary || anticipates) {
            self.only_queue = OnlyQueue::among(self.receiving.fetchable(placement.scheduling));
        }
        // Who has heard of an end is not woken yet.
        let mut put_off = false;
        loop {
            let now = clock::now();
            self.hear_linux(now);
            let frames = self.receive(!ordinary, now);
            let rang = self.engine.take_doorbells(now);
            let Some(more_orders) = self.take_orders() else { return };
            self.engine.report_some();
            self.engine.expel_some(now);
            self.engine.close_some(now);
            self.engine.expire(now);
            let ran = self.engine.run(budget);
            if frames > 0 || rang || ran > 0 {
                self.anticipation.worked();
            }
            self.engine.core.port.flush(now);
            let beside = anticipates && !self.real_time.is_down();
            // Who ends a conversation begins the next at once, as a rule: its first answer comes before the program cleans up.
            put_off = beside && !put_off && self.engine.only_tells_of_ends() && self.more_has_come();
            if put_off {
                continue;
            }
            let woke = self.engine.wake_programs();
            if gives_way {
                std::thread::yield_now();
            } else if ordinary {
                self.let_receive();
            }
            if ordinary {
                self.relieve(frames, now);
            }
            if let Some(linux) = &mut linux {
                linux.ran(std::mem::take(&mut self.engine.core.used));
            }
            if self.engine.has_helped_below() {
                self.anticipation.helped_below();
            }
            // Who has just been woken has run meanwhile, as a rule, and has something already.
            if woke && self.engine.has_rung() {
                continue;
            }
            if frames < BATCH && !more_orders && self.engine.is_idle() {
                let fetching = match self.rest(beside, woke) {
                    Rest::None => continue,
                    Rest::Fetching => true,
                    Rest::Asleep => false,
                };
                linux.iter_mut().for_each(LinuxTurns::rest);
                let slept = self.sleep(fetching);
                linux.iter_mut().for_each(|linux| linux.slept(slept));
            }
        }
    }

    /// Takes the packets that have come, up to [`BATCH`]: how many. Some of a class `above` the ordinary make the threads that brought them
    /// prompt.
    fn receive(&mut self, above: bool, now: Instant) -> usize {
        let frames = self.engine.receive(now);
        if frames > 0 || std::mem::take(&mut self.looked_in_time) {
            let brought = self.engine.core.device.brought();
            self.only_queue.brought(brought);
            if above {
                self.receiving.want_prompt(brought);
            }
        }
        frames
    }

    /// Lets fair receive threads take in what was sent back for much that has been sent.
    fn let_receive(&mut self) {
        let burst = &mut self.engine.core.port.burst;
        if *burst >= SENT_BEFORE_RECEIVING {
            *burst = 0;
            self.receiving.hurry();
        }
    }

    /// Lets the receive thread, if it has been called, bring what it has; whether it has been. Where packets are fetched nobody is called, and
    /// where it has much to bring (others' flood) the program would wait long.
    fn more_has_come(&mut self) -> bool {
        if self.anticipation.fetches() || self.hurry > 0 {
            self.hurry = self.hurry.saturating_sub(1);
            return false;
        }
        let away = give_way();
        if away > MUCH {
            self.hurry = IN_A_HURRY;
        }
        away > ALONE
    }

    /// How to rest: there is nothing to do, but programs' threads may have something that it has just woken, if it `woke` some. Where it
    /// runs `beside` them and the receive thread, at the same real-time priority, they have had their turn when this returns; among ordinary
    /// threads, who gives way is late to come back.
    fn rest(&mut self, beside: bool, woke: bool) -> Rest {
        if beside && self.receiving.are_behind() {
            return Rest::Asleep;
        }
        let fetches = self.anticipation.fetches() && self.sleeper.can_fetch(self.only_queue.napi(), PATIENCE);
        if !beside {
            return if fetches && !woke { Rest::Fetching } else { Rest::Asleep };
        }
        if !self.anticipation.looks_on(clock::now()) {
            return Rest::Asleep;
        }
        // A receive thread that has been called keeps the packets that it was called for to itself: let it come first.
        if give_way() <= ALONE && fetches { Rest::Fetching } else { Rest::None }
    }

    /// Holds the receive threads back for a while where they have received more than there was room for. `frames` more have been taken.
    fn relieve(&mut self, frames: usize, now: Instant) {
        if self.overrun.took(frames) && self.receiving.are_fair() {
            let received = self.engine.core.device.received();
            if self.overrun.lost(received.ring_full + received.no_buffer, now) {
                self.receiving.hold_back(true);
            }
        }
        // Also where they are not fair any more: a pause that is over would end every sleep.
        if self.overrun.ends(now) {
            self.receiving.hold_back(false);
        }
    }

    /// Takes to the paths what Linux's sockets have told since.
    fn hear_linux(&mut self, now: Instant) {
        self.sleeper.ask(now);
        for path in self.sleeper.stirred.drain(..) {
            self.engine.stirred(path, now);
        }
    }

    /// Announces the sleep, looks once more, and sleeps if there is still nothing, `fetching` packets first or not. For how long.
    fn sleep(&mut self, fetching: bool) -> Duration {
        self.announce(1);
        fence(SeqCst);
        let now = clock::now();
        // Packets end a sleep at once if it begins by fetching them.
        self.looked_in_time = !fetching && self.engine.receive(now) > 0;
        let nothing = !self.looked_in_time && !self.engine.has_rung() && self.engine.is_idle();
        if nothing {
            let due = [self.engine.due(now), self.overrun.wakes(now)].into_iter().flatten().min();
            self.sleeper.sleep(now, due, fetching);
        }
        self.announce(0);
        let awake = clock::now();
        let slept = if nothing { awake.since(now) } else { Duration::ZERO };
        if nothing {
            self.overrun.slept(slept, awake);
        }
        if fetching && nothing {
            self.anticipation.fetched(slept);
        } else {
            self.anticipation.slept(slept);
        }
        slept
    }

    fn announce(&self, sleeping: u32) {
        for family in self.engine.families.values() {
            if let Some(doorbell) = family.arena.doorbell(self.domain) {
                doorbell.sleeping.store(sleeping, SeqCst);
            }
        }
    }

    /// Obeys what the control thread has ordered, for as long as a turn may take; whether there is more, `None` when it is the end.
    fn take_orders(&mut self) -> Option<bool> {
        let mut begun = None;
        loop {
            match self.orders.receive() {
                Ok(Command::Stop) | Err(Nothing::Ever) => {
                    self.stop();
                    return None;
                }
                Ok(command) => orders::obey(&mut self.engine, command),
                Err(Nothing::Yet) => return Some(false),
            }
            let now = clock::now();
            if now.since(*begun.get_or_insert(now)) > OBEYING {
                return Some(true);
            }
        }
    }

    /// Resets every connection and wakes everybody who waits.
    fn stop(&mut self) {
        let now = clock::now();
        let families: Vec<FamilyIndex> = self.engine.families.keys().copied().collect();
        families.into_iter().for_each(|family| self.engine.family_gone(family, now));
        while !self.engine.departing.is_empty() {
            self.engine.close_some(now);
        }
        self.engine.core.port.flush(now);
    }
}

/// Gives the processor to who else has this priority: for how long.
fn give_way() -> Duration {
    let before = clock::now();
    std::thread::yield_now();
    clock::now().since(before)
}

/// Puts the calling thread where it belongs. What is refused is said and done without.
fn place(placement: &Placement, real_time: &RealTime) {
    if !placement.cpus.is_empty()
        && let Err(error) = sys::pin(&placement.cpus)
    {
        say!(
            Warning,
            "silkd: an executor cannot be kept on CPUs {:?}, and runs on any: {error}; {}",
            placement.cpus,
            cpus::those_there_are()
        );
    }
    match (priority::set(0, placement.scheduling), placement.scheduling) {
        // Where the policy divides the processor it gives Linux its share.
        (Ok(()), usual @ Scheduling::Fifo(_)) if placement.linux.is_none() => real_time.join(usual),
        (Ok(()), _) => {}
        (Err(error), wanted) => say!(
            Warning,
            "silkd: an executor cannot be scheduled as {wanted:?}: {error}; run as root, outside of CPU cgroups without \
             real-time time, for priorities to hold"
        ),
    }
}
