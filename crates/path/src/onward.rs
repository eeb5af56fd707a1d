//! What a running stage sends on itself: messages up and down (down while one comes up is the back link of Scout §3.2),
//! events, reports, and whatever is for stages that it has taken the place of.

use crate::cx::{Cx, Env, Run};
use crate::drive::{climb, climb_inner, descend, tell, walk};
use crate::signal::{Event, Report};
use crate::stage::{Slot, Stage, Verdict};
use crate::stream::ByteStream;
use crate::{DropReason, Message};

impl<'e> Cx<'_, 'e> {
    /// Sends `msg` on up from this stage, to the end. A drop is already counted.
    pub fn up(&mut self, msg: &mut Message<'_>) -> Result<(), DropReason> {
        climb(self.env, &mut self.above, 0, msg).into()
    }

    /// Sends `msg` on down from this stage, to the end: on the way up, this is the back link.
    /// A drop is already counted.
    pub fn down(&mut self, msg: &mut Message<'_>) -> Result<(), DropReason> {
        let end = self.below.slots.len();
        descend(self.env, &mut self.below, end, msg).into()
    }

    /// Tells the stages above, and at last the port, what became true.
    pub fn raise(&mut self, event: Event) {
        for at in 0..self.above.slots.len() {
            let place = self.above.place(at);
            let Some((below, slot, above)) = self.above.split(at) else { return };
            let mut cx = Cx { env: &mut *self.env, place, module: slot.module, below, above };
            if !slot.stage.event(&mut cx, event) {
                return;
            }
        }
        self.env.port.event(self.env.state.id, event);
    }

    /// Tells the stages below what the network said of packets that this one sent.
    pub fn tell_below(&mut self, report: Report) {
        tell(self.env, &mut self.below, report);
    }

    /// The byte stream of the stage right above, and the way down beside it.
    pub fn stream_and_down(&mut self) -> Option<(&mut dyn ByteStream, Down<'_, 'e>)> {
        let stream = self.above.slots.first_mut()?.stage.stream()?;
        let below = Run { slots: &mut *self.below.slots, ..self.below };
        Some((stream, Down { env: self.env, below }))
    }

    /// Runs `msg` up through stages that this one, which is at the bottom of its path, has
    /// taken the place of. `Forward`: it has come out above them.
    pub fn inner_up(&mut self, inner: &mut [Slot], msg: &mut Message<'_>) -> Verdict {
        climb_inner(self.env, &mut inner_run(inner, self.place), msg)
    }

    /// Runs `msg` down through such stages, and out of the path.
    pub fn inner_down(&mut self, inner: &mut [Slot], msg: &mut Message<'_>) -> Result<(), DropReason> {
        let end = inner.len();
        descend(self.env, &mut inner_run(inner, self.place), end, msg).into()
    }

    /// Calls `each` for such stages, from the top, while it answers `true`; says whether all of
    /// them did.
    pub fn inner_each(
        &mut self,
        inner: &mut [Slot],
        mut each: impl FnMut(&mut dyn Stage, &mut Cx<'_, 'e>) -> bool,
    ) -> bool {
        let mut all = true;
        let places = (0..inner.len()).rev();
        walk(self.env, &mut inner_run(inner, self.place), places, |stage, cx| {
            all = each(stage, cx);
            all
        });
        all
    }
}

/// Stages inside a stage: all of them have that stage's place, so they share its timer.
fn inner_run(inner: &mut [Slot], place: usize) -> Run<'_> {
    Run { slots: inner, base: place, floor: true, ceiling: false, inner: true }
}

/// The way down from a stage, while the stream above it is borrowed.
pub struct Down<'c, 'e> {
    env: &'c mut Env<'e>,
    below: Run<'c>,
}

impl Down<'_, '_> {
    /// As [`Cx::down`].
    pub fn send(&mut self, msg: &mut Message<'_>) -> Result<(), DropReason> {
        let end = self.below.slots.len();
        descend(self.env, &mut self.below, end, msg).into()
    }
}
