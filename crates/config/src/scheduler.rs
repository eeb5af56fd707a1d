//! `[scheduler]` and `[listen]`: how the paths of the daemon share the processor (Scout
//! §3.3, SILK §3.2), and the paths on which connections arrive.

use crate::read::{Section, words};
use crate::value::Percent;
use std::time::Duration;

words! {
    /// The scheduling policy.
    pub enum Policy {
        /// Fixed priorities, one domain for each.
        FixedPriority = "fixed-priority",
        /// Earliest deadline first.
        Edf = "edf",
        /// Weighted fair queueing.
        Wfq = "wfq",
        /// Best effort and real time.
        Bert = "bert",
        /// Deadline/workahead.
        DeadlineWorkahead = "deadline-workahead",
    }
}

impl Policy {
    /// Whether it divides the CPU, also with Linux.
    pub const fn divides(self) -> bool {
        matches!(self, Self::Wfq | Self::Bert)
    }

    /// Whether it heeds what a class reserves.
    pub(crate) const fn reserves(self) -> bool {
        matches!(self, Self::Bert | Self::Edf)
    }

    /// What it can promise at most to those that reserve, where it has `part` of the CPU. BERT keeps a hundredth of that for all others.
    pub const fn promises(self, part: Percent) -> Percent {
        if matches!(self, Self::Bert) { part.times(Percent::of_hundred(99)) } else { part }
    }
}

/// `[scheduler]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduler {
    /// The scheduling policy.
    pub policy: Policy,
    /// The extended path: programs run at the priority of the path they serve (SILK §3.3).
    pub extend: bool,
    /// Priority *p* ≥ 1 runs at `SCHED_FIFO` priority `base_priority` + 2*p*.
    pub base_priority: u8,
    /// The part of a CPU that real-time threads may use.
    pub realtime_cap: Percent,
    /// The CPUs of the executors; `None` leaves that to Linux.
    pub cpus: Option<Vec<u16>>,
    /// How long a run of a path is taken to be at first, and Linux's turns.
    pub quantum: Duration,
    /// Linux's share, when the policy divides the CPU: SILK's "Linux thread" (SILK §3.2).
    pub linux_share: Percent,
    /// How long a program's thread may run at a real-time priority without sleeping before
    /// it is demoted.
    pub watchdog: Duration,
}

/// The highest `SCHED_FIFO` priority that a path has; those above are silkd's watchdog and the kernel's own threads.
pub const HIGHEST_FIFO: u8 = 97;

/// The highest priority that a path has with any `base_priority`.
pub(crate) const HIGHEST: u8 = (HIGHEST_FIFO - 1) / 2;

impl Scheduler {
    /// The highest priority a class can have.
    pub fn highest_priority(&self) -> u8 {
        (HIGHEST_FIFO - self.base_priority) / 2
    }

    /// The part of a CPU that a policy has whatever others do: `share` of what Linux leaves, where it stands beside others; alone all,
    /// unless it divides the CPU with Linux.
    pub const fn part_of(&self, policy: Policy, share: Option<Percent>) -> Percent {
        let left = self.linux_share.rest();
        match share {
            Some(share) => share.times(left),
            None if policy.divides() => left,
            None => Percent::WHOLE,
        }
    }

    /// `several`: the policies have tables of their own.
    pub(crate) fn read(mut section: Section<'_, '_>, several: bool) -> Self {
        let cap = Percent::of_hundred(1)..=Percent::of_hundred(95);
        let scheduler = Self {
            policy: section.or("policy", Policy::FixedPriority),
            extend: section.or("extend", true),
            base_priority: section.within("base_priority", 10, 1..=HIGHEST_FIFO - 2),
            realtime_cap: section.within("realtime_cap", Percent::of_hundred(90), cap),
            cpus: read_cpus(&mut section),
            quantum: section.within(
                "quantum",
                QUANTUM,
                Duration::from_micros(10)..=Duration::from_millis(10),
            ),
            linux_share: section.within(
                "linux_share",
                Percent::of_hundred(50),
                Percent::of_hundred(1)..=Percent::of_hundred(99),
            ),
            watchdog: section.within(
                "watchdog",
                Duration::from_millis(500),
                Duration::from_millis(10)..=Duration::from_secs(60),
            ),
        };
        if several {
            section.forbid("policy", "each `[[policy]]` says its own");
        }
        section.finish();
        scheduler
    }
}

const QUANTUM: Duration = Duration::from_micros(200);

fn read_cpus(section: &mut Section<'_, '_>) -> Option<Vec<u16>> {
    let mut cpus: Vec<u16> = section.read("cpus")?;
    if cpus.is_empty() {
        let span = section.span_of("cpus");
        section.notes.advise(span, "without a CPU nothing runs", "leave `cpus` out to let Linux choose");
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// `[listen]`: connections that are not classified yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The priority of handshakes among the paths of their executor.
    pub priority: u8,
    /// The most connections that wait for `accept`, whatever a program asks for.
    pub backlog: u32,
    /// The most half-open connections of one listening socket.
    pub syn_backlog: u32,
}

impl Listen {
    pub(crate) fn read(mut section: Section<'_, '_>, scheduler: &Scheduler) -> Self {
        let listen = Self {
            priority: read_priority(&mut section, "priority", scheduler, 1),
            backlog: section.within("backlog", 4096, 1..=4096),
            syn_backlog: section.within("syn_backlog", 4096, 1..=65535),
        };
        section.finish();
        listen
    }
}

/// A priority, such that its `SCHED_FIFO` priority exists.
pub(crate) fn read_priority(
    section: &mut Section<'_, '_>,
    key: &'static str,
    scheduler: &Scheduler,
    default: u8,
) -> u8 {
    let Some(priority) = section.placed::<u8>(key) else { return default };
    let highest = scheduler.highest_priority();
    if priority.value <= highest {
        return priority.value;
    }
    let base = scheduler.base_priority;
    section.notes.advise(
        priority.span,
        format!("priority {} is not between 0 and {highest}", priority.value),
        format!("priority p runs at SCHED_FIFO {base} + 2p, at most {HIGHEST_FIFO}"),
    );
    default
}
