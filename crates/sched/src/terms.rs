//! On which terms a member is scheduled: the scheduling attributes of a path (Scout §3.3).
//! One structure serves every policy, each reads the fields it knows, so that a path can
//! move to another policy without being described anew.

use core::fmt;
use core::time::Duration;

/// What a member asks for and is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Fixed priority, higher first: 0 to [`Terms::PRIORITIES`] − 1.
    pub priority: u8,
    /// Weight against the other members that share the processor (WFQ, BERT); not 0.
    pub weight: u32,
    /// Processor time set aside (EDF, BERT, deadline/workahead); `None` reserves nothing.
    /// Where there is no delay, its period stands in for one (EDF).
    pub reserved: Option<Reservation>,
    /// How long after its logical arrival a message may take (CM §2.2). Gives a deadline
    /// to messages that name none (EDF, BERT), and marks the member as real-time
    /// (deadline/workahead).
    pub delay: Option<Duration>,
    /// May steal to make its deadlines and cannot be stolen from (BERT).
    pub important: bool,
    /// Runs only when nothing else wants to (deadline/workahead).
    pub background: bool,
    /// Which of the policies of [`crate::Shares`] the member belongs to.
    pub policy: u8,
}

impl Terms {
    /// How many fixed priorities there are.
    pub const PRIORITIES: u8 = 64;

    /// The default terms with this fixed priority.
    pub fn with_priority(priority: u8) -> Self {
        Self { priority, ..Self::default() }
    }

    /// The default terms with this weight.
    pub fn with_weight(weight: u32) -> Self {
        Self { weight, ..Self::default() }
    }
}

impl Default for Terms {
    /// Priority 0, weight 1, nothing reserved, no deadlines, unimportant, interactive, in
    /// the first policy.
    fn default() -> Self {
        Self {
            priority: 0,
            weight: 1,
            reserved: None,
            delay: None,
            important: false,
            background: false,
            policy: 0,
        }
    }
}

/// A reservation: at most `budget` of processor time in every `period`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Processor time per period.
    pub budget: Duration,
    /// The period.
    pub period: Duration,
}

/// Why a member, or its new terms, were not taken. The terms are the caller's: nothing was
/// changed, and other terms may be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The member's number is not below the limit the policy was made with.
    BeyondLimit {
        /// That limit.
        limit: u32,
    },
    /// The priority is not below [`Terms::PRIORITIES`].
    Priority(u8),
    /// A weight of 0 would never run, or, beyond [`Refused::WEIGHT_MAX`], not be exact.
    Weight(u32),
    /// The period is 0, or the budget 0 or longer than the period.
    Reservation(Reservation),
    /// More is asked for than is left, both in millionths of the processor.
    Overcommitted {
        /// What the reservation needs.
        asked: u32,
        /// What is not reserved yet.
        left: u32,
    },
    /// There is no policy with this number.
    Policy(u8),
}

impl Refused {
    /// The largest weight.
    pub const WEIGHT_MAX: u32 = 1 << 20;
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeyondLimit { limit } => write!(f, "the scheduler holds at most {limit} members"),
            Self::Priority(priority) => {
                write!(f, "priority {priority} is not between 0 and {}", Terms::PRIORITIES - 1)
            }
            Self::Weight(weight) => {
                write!(f, "weight {weight} is not between 1 and {}", Self::WEIGHT_MAX)
            }
            Self::Reservation(Reservation { budget, period }) => {
                write!(f, "a budget of {budget:?} in a period of {period:?} cannot be reserved")
            }
            Self::Overcommitted { asked, left } => write!(
                f,
                "a reservation of {}.{:04} % was asked for and {}.{:04} % of the processor is left",
                asked / 10_000,
                asked % 10_000,
                left / 10_000,
                left % 10_000
            ),
            Self::Policy(policy) => write!(f, "there is no scheduling policy number {policy}"),
        }
    }
}

impl core::error::Error for Refused {}
