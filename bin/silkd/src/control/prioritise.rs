//! A program sets the priority of one of its paths, within what the policy allows it (SILK §5.3). A path stays in the domain that
//! its class chose, with that domain's receive ring and executor, which is asked.

use crate::between::command::Command;
use crate::between::names::SocketName;
use crate::control::family::{Socket, State};
use crate::control::server::Server;
use silk_control::{Refusal, SlotNumber};
use silk_stream::kind;
use std::sync::atomic::Ordering::SeqCst;

fn refuse<T>(errno: i32, why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { errno, why: why.into() })
}

impl Server {
    /// Asks the executor that serves a socket; the answer to `peer` follows as an event.
    pub(crate) fn prioritise(
        &self,
        peer: u64,
        (family, process): (u32, u32),
        (slot, generation): (SlotNumber, u32),
        priority: u32,
    ) -> Result<(), Refusal> {
        let known = self.families.get(&family);
        let Some((known, record)) = known.and_then(|f| Some((f, f.arena.slot(slot)?))) else {
            return refuse(libc::EBADF, "there is no such socket");
        };
        // What is left of one that was accepted and shared says nothing of the next in its place.
        let is_old = |socket: &&Socket| {
            socket.state == State::Accepted && socket.generation != record.generation.load(SeqCst)
        };
        let named = known.sockets.get(&slot).filter(|socket| !is_old(socket));
        let holds = match named {
            Some(socket) => socket.generation == generation && socket.holders.contains(&process),
            None => record.generation.load(SeqCst) == generation && record.owner.load(SeqCst) == process,
        };
        if !holds {
            return refuse(libc::EBADF, "that socket is not this process's");
        }
        // What a program writes into its arena leads at most to an executor that knows nothing
        // of the socket.
        let domain = match named.map(|socket| socket.state) {
            Some(State::Bound | State::Leaving { .. }) => {
                return refuse(libc::ENOTCONN, "that socket has no path yet");
            }
            Some(State::Listening) => {
                return refuse(libc::EOPNOTSUPP, "listening paths have the priority of [listen]");
            }
            Some(State::Served { domain }) => domain,
            Some(State::Accepted) | None if record.kind.load(SeqCst) == kind::STREAM => {
                record.domain.load(SeqCst) as usize
            }
            _ => return refuse(libc::EBADF, "there is no such socket"),
        };
        let Some(orders) = self.orders.get(domain) else {
            return refuse(libc::EBADF, "there is no such socket");
        };
        let socket = SocketName { family, slot };
        // An executor that has ended says so at the daemon's end.
        let _ = orders.give(Command::Priority { peer, socket, priority });
        Ok(())
    }
}
