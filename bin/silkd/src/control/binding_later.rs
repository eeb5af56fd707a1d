//! A datagram port whose socket was just closed is free when the executors have let go of that, and its next socket waits so long, as on
//! Linux it need not.

use crate::control::server::Server;
use silk_control::{Kind, Refusal, Reply, Request};
use std::net::SocketAddr;

/// Who waits for a datagram port.
#[derive(Debug, Default)]
pub struct Later {
    waiting: Vec<Waiting>,
    /// A port is free since they have asked.
    ask_again: bool,
}

/// A program that waits for a port.
#[derive(Debug)]
struct Waiting {
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
        let is_first = self.later.waiting.iter().all(|other| other.peer != peer);
        let waits = is_in_use && is_first && self.is_being_closed(local);
        if waits {
            self.later.waiting.push(Waiting { peer, holder, request });
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

    /// A port is free, by whatever way its socket went: whoever waits for one is to ask again.
    pub(crate) fn ask_again(&mut self) {
        self.later.ask_again = true;
    }

    /// Whoever waits asks again, if a port is free since.
    pub(crate) fn bind_now(&mut self) {
        if !std::mem::take(&mut self.later.ask_again) {
            return;
        }
        for Waiting { peer, holder: (family, process), request } in std::mem::take(&mut self.later.waiting) {
            if !self.peers.contains_key(&peer) {
                continue;
            }
            let bind = |server: &mut Self| server.serve(peer, family, process, request, &mut Vec::new());
            if let Some(reply) = self.for_family(family, bind) {
                self.reply(peer, &reply, &[]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::family::{Family, Socket, State};
    use crate::control::ports::Held;
    use crate::control::server::tests::server;
    use silk_stream::{Arena, Sizes};
    use std::net::IpAddr;

    const AT: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)), 4100);

    /// A family with a datagram socket that is bound there, of which an executor is yet to let go.
    fn closing() -> Family {
        let arena = Arena::create(Sizes { rings: 4 << 20, domains: 1 }).unwrap();
        let mut family = Family::new(0, 7, arena, "gone".into());
        let socket = Socket {
            kind: Kind::Datagram,
            generation: 1,
            local: None,
            held: Some(Held::at(Kind::Datagram, AT.ip(), AT.port())),
            state: State::Served { domain: 0 },
            holders: Vec::new(),
            chose_port: true,
            has_peer: false,
            is_of_graph: false,
            opened: 0,
            rings: None,
        };
        family.sockets.insert(0, socket);
        family
    }

    #[test]
    fn whoever_waits_for_a_port_asks_again_when_the_family_of_its_socket_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let mut server = server(folder.path());
        let (number, theirs) = server.adopt_peer();
        server.families.insert(0, closing());
        let (kind, local) = (Kind::Datagram, AT);
        let request = Request::Bind { kind, local, reuse_address: false, reuse_port: false, only_v6: false };
        let in_use = || Some(Reply::Refused(Refusal { errno: libc::EADDRINUSE, why: String::new() }));
        assert!(server.binds_later(number, (1, 1), request.clone(), &in_use()));
        assert!(!server.binds_later(number, (1, 1), request, &in_use()), "who asks twice waits for nothing");
        server.bind_now();
        assert!(theirs.try_receive::<Reply>().is_err(), "it is not free yet");
        server.take_leave(0);
        server.bind_now();
        // Such a server has no address; the answer is what it waited for.
        let told = theirs.try_receive::<Reply>().unwrap().message;
        assert_eq!(told, Reply::NotOurs);
        assert!(server.later.waiting.is_empty());
    }
}
