//! Who names a socket (`bind`, `listen`, `connect`, a first datagram) asks the daemon, and of the threads that do so at the
//! same moment one does: the others find what became of it. Who closes the socket meanwhile waits for the answer, which would
//! otherwise be that of the next socket with the same record. So no signal's handler comes either, which could leave by a jump
//! what the daemon has answered.

use crate::errno::Answer;
use crate::gate::{self, Passage};
use crate::lock::Turn;
use crate::signals::Undisturbed;
use crate::socket::{Socket, shape};
use crate::table;
use silk_stream::status;
use std::ffi::c_int;
use std::sync::atomic::Ordering::SeqCst;

/// A turn to name a socket. It is taken inside the [`gate`], as a close is, so that a fork waits for both.
pub struct NamingTurn {
    // Dropped in this order.
    _turn: Turn<'static>,
    _inside: Passage,
    _undisturbed: Undisturbed,
}

impl NamingTurn {
    /// The turn to name what `fd` names.
    ///
    /// # Errors
    /// `EBADF`: another thread has closed it meanwhile, and the record may be another socket's.
    pub fn begin(socket: &'static Socket, fd: c_int) -> Answer<Self> {
        let undisturbed = Undisturbed::begin();
        let (inside, turn) = (gate::pass(), socket.naming.turn());
        let turn = Self { _turn: turn, _inside: inside, _undisturbed: undisturbed };
        let is_it = table::socket(fd).is_some_and(|named| std::ptr::eq(named, socket));
        if is_it { Ok(turn) } else { Err(libc::EBADF) }
    }

    /// The same for who changes a byte stream of silk's without a connection: a thread that just connects it may find that it
    /// becomes Linux's ([`crate::given_up`]). Who serves it is to be looked at afterwards.
    ///
    /// # Errors
    /// As [`NamingTurn::begin`].
    pub fn before_connecting(socket: &'static Socket, fd: c_int) -> Answer<Option<Self>> {
        const BEGUN: u32 = status::CONNECTED | status::CONNECTING | status::FAILED;
        let is_free = !socket.is(shape::DATAGRAM)
            && socket.slot().is_ok_and(|slot| slot.status.load(SeqCst) & BEGUN == 0);
        is_free.then(|| Self::begin(socket, fd)).transpose()
    }
}
