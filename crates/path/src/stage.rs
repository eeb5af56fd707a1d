//! Stages (Scout §3.2): what one module contributes to one path. A stage holds its state and
//! has two interfaces, `up` and `down`, one per direction of data flow. The driver calls them
//! in turn; a stage that wants to send data on itself, or turn it around (the back link of
//! the paper), uses its [`Cx`]. A stage reads no clock and touches nothing but its path, its
//! module and its port.

use crate::signal::{Bell, Event, Report};
use crate::stream::ByteStream;
use crate::{CreateError, Cx, DropReason, Message};
use alloc::boxed::Box;
use core::any::Any;

/// What a stage did with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// The message goes on to the next stage.
    Forward,
    /// The stage has used the message up.
    Consumed,
    /// The message ends here, for this reason. The driver counts it.
    Drop(DropReason),
    /// The message is for a path that the stage has just asked for
    /// ([`Request::Create`](crate::Request::Create)): classify it again when that exists.
    Handoff,
}

impl From<DropReason> for Verdict {
    fn from(reason: DropReason) -> Self {
        Self::Drop(reason)
    }
}

/// One module's part of one path.
pub trait Stage: Any + Send {
    /// Phase 3 of path creation: the path is whole now, its attributes are complete.
    fn establish(&mut self, cx: &mut Cx<'_, '_>) -> Result<(), CreateError> {
        let _ = cx;
        Ok(())
    }

    /// The path is established and transformed: the first messages may be sent.
    fn start(&mut self, cx: &mut Cx<'_, '_>) {
        let _ = cx;
    }

    /// A message on its way up.
    fn up(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict;

    /// A message on its way down.
    fn down(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict;

    /// The timer this stage set with [`Cx::arm`] is due. It is off now.
    fn timer(&mut self, cx: &mut Cx<'_, '_>) {
        let _ = cx;
    }

    /// Something the program's end asks. `true`: it goes on down.
    fn bell(&mut self, cx: &mut Cx<'_, '_>, bell: Bell) -> bool {
        let _ = (cx, bell);
        true
    }

    /// Something that became true below. `true`: it goes on up.
    fn event(&mut self, cx: &mut Cx<'_, '_>, event: Event) -> bool {
        let _ = (cx, event);
        true
    }

    /// Something the network told about this path's packets. `true`: it is believed, and goes
    /// on down.
    fn report(&mut self, cx: &mut Cx<'_, '_>, report: Report) -> bool {
        let _ = (cx, report);
        true
    }

    /// The path ends. Gives back everything that was charged or entered into a table; called
    /// once, also for a path whose creation failed half-way.
    fn destroy(&mut self, cx: &mut Cx<'_, '_>) {
        let _ = cx;
    }

    /// Whether this stage takes messages whose checksum nobody has verified
    /// ([`Checksum::Unsummed`](crate::Checksum::Unsummed)): it sums what it reads, and drops the message as
    /// [`DropReason::UdpChecksum`] before anything comes of it.
    fn sums(&self) -> bool {
        false
    }

    /// The program's buffers, where this stage is the top of a byte stream.
    fn stream(&mut self) -> Option<&mut dyn ByteStream> {
        None
    }

    /// Gives the program's buffers back to whoever made the path, before it is destroyed: the
    /// program may still read what has arrived.
    fn take_stream(&mut self) -> Option<Box<dyn ByteStream>> {
        None
    }

    /// The state a person would want to see: `ESTABLISHED`, or nothing.
    fn state(&self) -> &'static str {
        ""
    }
}

/// A stage in its place.
pub struct Slot {
    /// The stage.
    pub stage: Box<dyn Stage>,
    /// The module it comes from.
    pub module: crate::ModuleId,
}
