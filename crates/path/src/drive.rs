//! The driver: carries a message, a bell or a report from stage to stage, iteratively. It is
//! where drops are counted and where messages leave the path.

use crate::cx::{Cx, Env, Run};
use crate::signal::{Bell, Report};
use crate::stage::{Stage, Verdict};
use crate::{CreateError, DropReason, Message};

/// How a run ended. A drop has been counted already, so the answer may be ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The message reached an end or was used up on the way.
    Done,
    /// It was dropped; the path has counted it.
    Dropped(DropReason),
    /// It is for a path that has been asked for: create that, then classify it again.
    Handoff,
}

impl From<Outcome> for Result<(), DropReason> {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Ok(()),
            Outcome::Dropped(reason) => Err(reason),
            // Nobody asks for a path on the way down or from a stage in the middle.
            Outcome::Handoff => Err(DropReason::Unexpected),
        }
    }
}

impl Env<'_> {
    fn drop(&mut self, reason: DropReason) -> Outcome {
        self.state.drops.count(reason);
        Outcome::Dropped(reason)
    }

    fn leave_bottom(&mut self, msg: &Message<'_>) -> Outcome {
        let bytes = msg.len() as u64;
        match self.port.transmit(self.state.id, msg) {
            Ok(()) => {
                self.state.account.packets_out += 1;
                self.state.account.bytes_out += bytes;
                Outcome::Done
            }
            Err(reason) => self.drop(reason),
        }
    }

    fn leave_top(&mut self, msg: &Message<'_>) -> Outcome {
        match self.port.deliver(self.state.id, msg) {
            Ok(()) => Outcome::Done,
            Err(reason) => self.drop(reason),
        }
    }
}

/// Runs `msg` up through the stages from the one at `first` on, and out at the top.
pub(crate) fn climb(env: &mut Env<'_>, run: &mut Run<'_>, first: usize, msg: &mut Message<'_>) -> Outcome {
    match carry_up(env, run, first, msg) {
        Verdict::Forward if run.ceiling => env.leave_top(msg),
        Verdict::Forward => env.drop(DropReason::Reentrant),
        Verdict::Consumed => Outcome::Done,
        Verdict::Drop(reason) => env.drop(reason),
        Verdict::Handoff => Outcome::Handoff,
    }
}

/// Runs `msg` up through the stages inside a stage; a drop is that stage's to answer.
pub(crate) fn climb_inner(env: &mut Env<'_>, run: &mut Run<'_>, msg: &mut Message<'_>) -> Verdict {
    carry_up(env, run, 0, msg)
}

/// `Forward`: `msg` has come out above the last stage.
fn carry_up(env: &mut Env<'_>, run: &mut Run<'_>, first: usize, msg: &mut Message<'_>) -> Verdict {
    for at in first..run.slots.len() {
        let place = run.place(at);
        let Some((below, slot, above)) = run.split(at) else { break };
        let mut cx = Cx { env: &mut *env, place, module: slot.module, below, above };
        match slot.stage.up(&mut cx, msg) {
            Verdict::Forward => {}
            verdict => return verdict,
        }
    }
    Verdict::Forward
}

/// Runs `msg` down through the stages below `end`.
pub(crate) fn descend(env: &mut Env<'_>, run: &mut Run<'_>, end: usize, msg: &mut Message<'_>) -> Outcome {
    for at in (0..end).rev() {
        let place = run.place(at);
        let Some((below, slot, above)) = run.split(at) else { break };
        let mut cx = Cx { env: &mut *env, place, module: slot.module, below, above };
        match slot.stage.down(&mut cx, msg) {
            Verdict::Forward => {}
            Verdict::Consumed => return Outcome::Done,
            Verdict::Drop(reason) => return env.drop(reason),
            Verdict::Handoff => return env.drop(DropReason::Unexpected),
        }
    }
    if run.floor { env.leave_bottom(msg) } else { env.drop(DropReason::Reentrant) }
}

/// Calls `each` for every stage in turn, in the order of `places`, while it answers `true`.
pub(crate) fn walk<'e>(
    env: &mut Env<'e>,
    run: &mut Run<'_>,
    places: impl Iterator<Item = usize>,
    mut each: impl FnMut(&mut dyn Stage, &mut Cx<'_, 'e>) -> bool,
) {
    for at in places {
        let place = run.place(at);
        let Some((below, slot, above)) = run.split(at) else { return };
        let mut cx = Cx { env: &mut *env, place, module: slot.module, below, above };
        if !each(&mut *slot.stage, &mut cx) {
            return;
        }
    }
}

/// Carries `bell` down from the top.
pub(crate) fn ring(env: &mut Env<'_>, run: &mut Run<'_>, bell: Bell) {
    let places = (0..run.slots.len()).rev();
    walk(env, run, places, |stage, cx| stage.bell(cx, bell));
}

/// Carries `report` down from the top.
pub(crate) fn tell(env: &mut Env<'_>, run: &mut Run<'_>, report: Report) {
    let places = (0..run.slots.len()).rev();
    walk(env, run, places, |stage, cx| stage.report(cx, report));
}

/// Runs every timer that is due.
pub(crate) fn expire(env: &mut Env<'_>, run: &mut Run<'_>) {
    let places = 0..run.slots.len();
    walk(env, run, places, |stage, cx| {
        if cx.env.state.deadlines.of(cx.place) <= cx.env.now {
            cx.arm(silk_instant::Instant::FAR);
            stage.timer(cx);
        }
        true
    });
}

/// Establishes the stages, first (the top, where creation began) to last.
pub(crate) fn establish(env: &mut Env<'_>, run: &mut Run<'_>) -> Result<(), CreateError> {
    let mut result = Ok(());
    let places = (0..run.slots.len()).rev();
    walk(env, run, places, |stage, cx| {
        result = stage.establish(cx);
        result.is_ok()
    });
    result
}

/// Lets every stage begin, from the top.
pub(crate) fn start(env: &mut Env<'_>, run: &mut Run<'_>) {
    let places = (0..run.slots.len()).rev();
    walk(env, run, places, |stage, cx| {
        stage.start(cx);
        true
    });
}

/// Lets every stage give back what it holds, from the top.
pub(crate) fn dissolve(env: &mut Env<'_>, run: &mut Run<'_>) {
    let places = (0..run.slots.len()).rev();
    walk(env, run, places, |stage, cx| {
        stage.destroy(cx);
        true
    });
}
