//! A stream socket that ends what it does and goes on: a connection that failed, or that the program
//! takes apart (`connect` with `AF_UNSPEC`), and a listener that is shut down. It is then as it was
//! when it was bound. The executors let go of it first; whoever asked is answered when they have.

use crate::between::command::Command;
use crate::between::names::SocketName;
use crate::control::family::{Socket, State};
use crate::control::server::{Server, refused};
use crate::slots::{begin_again, retire, store_address};
use silk_control::{Kind, Refusal, Reply, SlotNumber};
use silk_path::NOWHERE;
use silk_stream::{kind, request};
use std::sync::atomic::Ordering::SeqCst;

impl Server {
    /// Begins to take a socket's connection apart, or to end its listening. Whether nothing was to
    /// be done; else `peer` is answered later.
    ///
    /// # Errors
    /// `EOPNOTSUPP` where the process does not hold the socket by name (it was accepted, say),
    /// `EALREADY` where somebody does it already.
    pub(crate) fn disconnect(
        &mut self,
        peer: u64,
        (family, process): (u32, u32),
        (slot, generation): (SlotNumber, u32),
    ) -> Result<bool, Refusal> {
        let refuse = |errno, why: &str| Err(Refusal { errno, why: why.into() });
        let held = self.families.get_mut(&family).and_then(|f| f.held(process, (slot, generation)));
        let begins_again = |socket: &&mut Socket| socket.kind == Kind::Stream && socket.local.is_some();
        let Some(socket) = held.filter(begins_again) else {
            return refuse(libc::EOPNOTSUPP, "only a socket that was bound or has connected can begin again");
        };
        let held = socket.held;
        let before = std::mem::replace(&mut socket.state, State::Leaving { peer });
        let name = SocketName { family, slot };
        match before {
            State::Bound => {
                socket.state = before;
                return Ok(true);
            }
            State::Listening => {
                held.iter().for_each(|held| self.ports.end_listening(held));
                // Whoever waits for connections in another process sees that there will be none.
                if let Some(record) = self.families.get(&family).and_then(|f| f.arena.slot(slot)) {
                    record.kind.store(kind::STREAM, SeqCst);
                }
                self.tell_all(|| Command::Unlisten(name));
            }
            State::Served { domain } => {
                if let Some(orders) = self.orders.get(domain) {
                    // An executor that has ended says so at the daemon's end.
                    let _ = orders.give(Command::Disconnect(name));
                }
            }
            State::Accepted | State::Leaving { .. } => {
                socket.state = before;
                return refuse(libc::EALREADY, "that socket cannot begin again now");
            }
        }
        Ok(false)
    }

    /// The executors have let go of a socket. Whether it was to begin again; so it does, or it is
    /// gone if nobody holds it any more.
    pub(crate) fn has_left(&mut self, name: SocketName) -> bool {
        let Some(known) = self.families.get_mut(&name.family) else { return false };
        let Some(socket) = known.sockets.get_mut(&name.slot) else { return false };
        let State::Leaving { peer } = socket.state else { return false };
        socket.state = State::Bound;
        let (rings, local, is_held) = (socket.rings.take(), socket.local, !socket.holders.is_empty());
        known.return_rings(rings);
        if !is_held {
            if let Some(before) = known.sockets.remove(&name.slot) {
                self.close(name.family, name.slot, &before, false);
                self.answer_in_vain(&Socket { state: State::Leaving { peer }, ..before });
            }
            return true;
        }
        if let (Some(record), Some(local)) = (known.arena.slot(name.slot), local) {
            begin_again(record);
            // What the program has set is told to its next path.
            record.request.store(request::OPTIONS | request::WISHES, SeqCst);
            store_address(&record.local, local);
            store_address(&record.peer, NOWHERE);
        }
        self.reply(peer, &Reply::Done, &[]);
        true
    }

    /// Whether a socket is still its program's, of which no executor could make a listener: it is bound and no more, as
    /// it was.
    pub(crate) fn listens_no_longer(&mut self, name: SocketName) -> bool {
        let Some(known) = self.families.get_mut(&name.family) else { return false };
        let Some(socket) = known.sockets.get_mut(&name.slot) else { return false };
        let failed = socket.state == State::Listening;
        if failed {
            socket.state = State::Bound;
            socket.held.iter().for_each(|held| self.ports.end_listening(held));
            known.arena.slot(name.slot).iter().for_each(|slot| slot.kind.store(kind::STREAM, SeqCst));
        }
        failed
    }

    /// A socket has been closed while it was to begin again.
    pub(crate) fn answer_in_vain(&mut self, socket: &Socket) {
        if let State::Leaving { peer } = socket.state {
            self.reply(peer, &refused(libc::EBADF, "that socket has been closed".into()), &[]);
        }
    }

    /// A slot is free again.
    pub(crate) fn retire(&mut self, name: SocketName) {
        if let Some(known) = self.families.get_mut(&name.family) {
            retire(&known.arena, name.slot);
            known.pool.return_slot(name.slot);
        }
    }
}
