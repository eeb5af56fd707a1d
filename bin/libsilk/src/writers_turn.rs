//! A writer's turn at the send ring of a socket: one thread writes at a time, and while it does the ring keeps its
//! memory ([`silk_stream::vacate`]).

use crate::cursor::Claim;
use crate::errno::Answer;
use crate::family::{self, Family};
use crate::own_turn::{OwnTurn, note_counted};
use crate::socket::Found;
use crate::state;
use silk_stream::{Slot, vacate, wake};
use std::time::Duration;

/// The memory of a ring is given back in some microseconds, and nobody is woken when it is done.
const MOMENT: Duration = Duration::from_millis(1);

/// While it lives the calling thread may write.
pub struct WritersTurn<'a> {
    socket: &'a Found,
    slot: &'a Slot,
    turn: OwnTurn<'a>,
}

impl<'a> WritersTurn<'a> {
    /// Waits until nobody else writes into the send ring of the socket.
    ///
    /// # Errors
    /// `EBADF` where another thread has closed it meanwhile, which waits for who has the turn.
    #[inline]
    pub fn take(socket: &'a Found) -> Answer<Self> {
        let turn = OwnTurn::writing(socket);
        let slot = socket.slot()?;
        vacate::enter(&slot.tx_writers, &slot.tx_vacating, |seen| until_vacated(slot, seen));
        note_counted(socket, true);
        Ok(Self { socket, slot, turn })
    }

    /// The socket's slot.
    pub fn slot(&self) -> &'a Slot {
        self.slot
    }

    /// As [`Cursor::claim`](crate::cursor::Cursor::claim).
    ///
    /// # Errors
    /// Those of `choose`.
    #[inline]
    pub fn claim<E>(&self, choose: impl Fn(u32) -> Result<u32, E>) -> Result<Claim<'_>, E> {
        self.socket.cursor.claim(self.slot, choose)
    }
}

/// Waits a moment for the memory of a send ring; whether it is of any use.
#[cold]
pub fn until_vacated(slot: &Slot, seen: u32) -> bool {
    wake::wait(&slot.tx_vacating, seen, Some(MOMENT));
    family::joined().inspect(|family| Family::feel_pulse(family));
    !state::is_dead()
}

impl Drop for WritersTurn<'_> {
    fn drop(&mut self) {
        if self.turn.is_parents() {
            // Which is counted once, and takes that back itself.
            return;
        }
        // Who leaves by a jump between the two stays counted: the ring keeps its memory, and nothing worse.
        note_counted(self.socket, false);
        vacate::leave(&self.slot.tx_writers);
    }
}
