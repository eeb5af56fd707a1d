//! A datagram port whose socket was just closed is free when the executors have let go of that, and its next socket waits so long, as on
//! Linux it need not.

use crate::control::server::Server;
use silk_control::{Kind, Refusal, Reply, Request};
use std::net::SocketAddr;

/// A program that waits for a port.
#[derive(Debug)]
pub struct Later {
    /// The lifeline that is to be answered.
    peer: u64,
    /// Which program, and which process of it.
    holder: (u32, u32),
    /// What it has asked.
    request: Request,
}

impl Server {
    /// Whether somebody who was refused is to ask again once sockets are gone that are being closed at the port.
    pub(crate) fn binds_later(
        &mut self,
        peer: u64,
        holder: (u32, u32),
        request: Request,
        reply: &Option<Reply>,
    ) -> bool {
        let is_in_use = matches!(reply, Some(Reply::Refused(Refusal { errno: libc::EADDRINUSE, .. })));
        let Request::Bind { kind: Kind::Datagram, local, .. } = request else { return false };
        // Who asks waits for the answer; whoever asks twice without waits for nothing.
        let is_first = self.later.iter().all(|later| later.peer != peer);
        let waits = is_in_use && is_first && self.is_being_closed(local);
        if waits {
            self.later.push(Later { peer, holder, request });
        }
        waits
    }

    fn is_being_closed(&self, local: SocketAddr) -> bool {
        let mut sockets = self.families.values().flat_map(|known| known.sockets.values());
        sockets.any(|socket| {
            let at = socket.held.filter(|held| held.kind == Kind::Datagram && held.port == local.port());
            socket.holders.is_empty() && at.is_some()
        })
    }

    /// A socket is gone: whoever waits for a port asks again.
    pub(crate) fn bind_now(&mut self) {
        for Later { peer, holder: (family, process), request } in std::mem::take(&mut self.later) {
            if !self.peers.contains_key(&peer) {
                continue;
            }
            if let Some(reply) = self.serve(peer, family, process, request, &mut Vec::new()) {
                self.reply(peer, &reply, &[]);
            }
        }
    }
}
