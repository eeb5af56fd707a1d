//! Who names a socket (`bind`, `listen`, `connect`, a first datagram) asks the daemon, and of the threads that do so at the
//! same moment one does: the others find what became of it. Who closes the socket meanwhile waits for the answer, which would
//! otherwise be that of the next socket with the same record.

use crate::errno::Answer;
use crate::gate::{self, Passage};
use crate::lock::Turn;
use crate::socket::Socket;
use crate::table;
use std::ffi::c_int;

/// A turn to name a socket. It is taken inside the [`gate`], as a close is, so that a fork waits for both.
pub struct NamingTurn {
    // Dropped first.
    _turn: Turn<'static>,
    _inside: Passage,
}

impl NamingTurn {
    /// The turn to name what `fd` names.
    ///
    /// # Errors
    /// `EBADF`: another thread has closed it meanwhile, and the record may be another socket's.
    pub fn begin(socket: &'static Socket, fd: c_int) -> Answer<Self> {
        let (inside, turn) = (gate::pass(), socket.naming.turn());
        let turn = Self { _turn: turn, _inside: inside };
        let is_it = table::socket(fd).is_some_and(|named| std::ptr::eq(named, socket));
        if is_it { Ok(turn) } else { Err(libc::EBADF) }
    }
}
