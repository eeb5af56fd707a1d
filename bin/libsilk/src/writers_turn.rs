//! A writer's turn at the send ring of a socket: one thread writes at a time, and while it does the ring keeps its
//! memory ([`silk_stream::vacate`]).

use crate::errno::Answer;
use crate::family::{self, Family};
use crate::shared::OwnTurn;
use crate::socket::Socket;
use crate::state;
use silk_stream::{Slot, vacate, wake};
use std::time::Duration;

/// The memory of a ring is given back in some microseconds, and nobody is woken when it is done.
const MOMENT: Duration = Duration::from_millis(1);

/// While it lives the calling thread may write.
pub struct WritersTurn<'a> {
    slot: &'a Slot,
    _turn: OwnTurn<'a>,
}

impl<'a> WritersTurn<'a> {
    /// Waits until nobody else writes into the send ring of the socket that `uses` was asked of
    /// ([`Socket::slot_of`]).
    ///
    /// # Errors
    /// `EBADF` where another thread has closed it meanwhile, which waits for who has the turn.
    #[inline]
    pub fn take(socket: &'a Socket, uses: u32) -> Answer<Self> {
        let turn = OwnTurn::writing(socket);
        let slot = socket.slot_of(uses)?;
        vacate::enter(&slot.tx_writers, &slot.tx_vacating, |seen| wait(slot, seen));
        Ok(Self { slot, _turn: turn })
    }

    /// The socket's slot.
    pub fn slot(&self) -> &'a Slot {
        self.slot
    }
}

/// Waits a moment; whether it is of any use.
#[cold]
fn wait(slot: &Slot, seen: u32) -> bool {
    wake::wait(&slot.tx_vacating, seen, Some(MOMENT));
    family::joined().inspect(|family| Family::feel_pulse(family));
    !state::is_dead()
}

impl Drop for WritersTurn<'_> {
    fn drop(&mut self) {
        vacate::leave(&self.slot.tx_writers);
    }
}
