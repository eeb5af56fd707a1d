//! Datagrams of a socket on silk that come, or leave, another way than over silk's device: from this
//! machine itself, over its other interfaces, and in fragments, which Linux puts together. Linux's
//! socket that holds the port hears them. They are a path of their own beside that of the device, with
//! HOST at its bottom, which is made when there is first something for it.

use crate::between::names::SocketName;
use crate::between::reserved::Reserved;
use crate::binding::{Sides, any_like};
use crate::domain::datagrams::options_in;
use crate::domain::engine::{BURST, Engine};
use crate::domain::host_socket::{Heard, LinuxDatagrams, receive};
use crate::domain::linux_sockets::OverLinux;
use nix::errno::Errno;
use silk_instant::Instant;
use silk_modules::host;
use silk_modules::ip::{Address, Ip, Routes};
use silk_modules::ip6::Ip6;
use silk_path::{Attr, Checksum, DropReason, Endpoint, Message, Meta, NOWHERE, PathId};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The longest datagram, with room to spare.
const LONGEST: usize = 64 << 10;
/// Where an address is, seen from silk's devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whereabouts {
    /// Here, or where none of them leads; a group, where Linux shares the interfaces.
    Elsewhere,
    /// On a network of theirs; a group, where silk has its own.
    Beside,
    /// Beyond a router.
    Beyond,
}

fn find<A: Address>(routes: &Routes<A>, address: A) -> Whereabouts {
    match routes.lookup(address).map(|route| route.gateway.is_some()) {
        None => Whereabouts::Elsewhere,
        Some(false) => Whereabouts::Beside,
        Some(true) => Whereabouts::Beyond,
    }
}

impl Engine {
    fn whereabouts(&mut self, address: IpAddr) -> Whereabouts {
        if address.is_loopback() {
            return Whereabouts::Elsewhere;
        }
        let shared = self.core.itself.is_none();
        if self.is_to_many(address) {
            // Where Linux shares the interfaces it lets the machine itself hear it, too.
            return if shared { Whereabouts::Elsewhere } else { Whereabouts::Beside };
        }
        let paths = &mut self.core.paths;
        let found = match address {
            IpAddr::V4(address) => paths.module_mut::<Ip>().map(|ip| find(&ip.routes, address)),
            IpAddr::V6(address) => paths.module_mut::<Ip6>().map(|ip| find(&ip.routes, address)),
        };
        found.unwrap_or(Whereabouts::Elsewhere)
    }

    /// Whether a peer is reached over Linux alone.
    pub(crate) fn is_elsewhere(&mut self, peer: Endpoint) -> bool {
        self.whereabouts(peer.ip()) == Whereabouts::Elsewhere
    }

    /// What leads to Linux's socket, for the path that is created next. Whether the graph has a use for it.
    pub(crate) fn offer_datagrams(&mut self, linux: &Arc<Reserved>) -> bool {
        let link = self.core.port.first_interface();
        let module = self.core.paths.module_mut::<host::Host>();
        module.map(|module| module.offer_datagrams(Box::new(LinuxDatagrams::new(linux, link)))).is_some()
    }

    /// The path that a socket of Linux's was offered for is not created.
    pub(crate) fn withdraw_offer(&mut self) {
        if let Some(module) = self.core.paths.module_mut::<host::Host>() {
            module.withdraw();
        }
    }

    /// What Linux's socket hears is for the datagram socket with these ends whose first path this is, too.
    pub(crate) fn hear_linux(
        &mut self,
        (socket, locals): (SocketName, &[Endpoint]),
        first: PathId,
        linux: &Arc<Reserved>,
    ) {
        if self.core.paths.module_mut::<host::Host>().is_none() {
            return;
        }
        // Several sockets may share a port: the first of them looks, for all.
        match self.host.watch.add_readable(linux, first.index) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return,
            _ => {}
        }
        let own = self.core.paths.path(first).is_some_and(|path| path.state.attrs.host() == Some(true));
        let path = own.then_some(first);
        let at = |six| locals.iter().any(|local| local.is_v6() == six);
        let sides = Sides { four: at(false), six: at(true) };
        let over = OverLinux { socket, linux: Arc::downgrade(linux), sides, path, heard: VecDeque::new() };
        self.host.datagrams.insert(first.index, over);
    }

    /// The first paths of the sockets that share this one of Linux's.
    fn sharers(&self, linux: &Arc<Reserved>) -> Vec<u32> {
        let is_one = |over: &OverLinux| std::ptr::eq(over.linux.as_ptr(), Arc::as_ptr(linux));
        let all = self.host.datagrams.iter();
        all.filter(|(_, over)| is_one(over)).map(|(index, _)| *index).collect()
    }

    /// Whose a datagram is of those that share Linux's socket: everybody's, where it is to a group or to everyone.
    fn whose(&mut self, sharers: &[u32], first: PathId, heard: &Heard) -> Vec<PathId> {
        if !self.is_to_many(heard.to) {
            return vec![self.sharer(sharers, first, heard.remote)];
        }
        let peer = |id: &PathId| self.core.paths.path(*id).and_then(|path| path.state.attrs.remote());
        let hears = |id: &PathId| {
            peer(id).is_none_or(|peer| peer == heard.remote) && self.is_at_ip_of(*id, heard.remote)
        };
        sharers.iter().filter_map(|index| self.core.paths.at(*index)).filter(hears).collect()
    }

    /// Whether the datagram socket whose first path this is hears at the IP of this peer. Linux's socket may
    /// hear at both, for another that shares the port.
    fn is_at_ip_of(&self, first: PathId, remote: Endpoint) -> bool {
        let over = self.host.datagrams.get(&first.index);
        over.is_none_or(|over| over.sides.has(remote.is_v6()))
    }

    /// Whether an address is a group's, or everyone's on a network.
    fn is_to_many(&mut self, address: IpAddr) -> bool {
        let everyone = |ip: &mut Ip| matches!(address, IpAddr::V4(four) if ip.routes.is_broadcast(four));
        address.is_multicast() || self.core.paths.module_mut::<Ip>().is_some_and(everyone)
    }

    /// Whose of them a datagram is: that one's whose only peer has sent it, else one's who hears all, the same that
    /// hears this peer over silk's devices.
    pub(crate) fn sharer(&self, sharers: &[u32], first: PathId, remote: Endpoint) -> PathId {
        let local = |id| self.core.paths.path(id)?.state.attrs.local();
        let peer = |id: &PathId| self.core.paths.path(*id).and_then(|path| path.state.attrs.remote());
        let mut all = sharers.iter().filter_map(|index| self.core.paths.at(*index));
        let connected = all.find(|id| peer(id) == Some(remote));
        let waiting = |local: Endpoint| {
            let index = self.core.port.first(self.waiting_for(local, remote)?);
            self.core.paths.at(index).filter(|_| sharers.contains(&index))
        };
        // They are bound to one address, or all to any, and then not all to that of the peer's IP.
        let local = local(first).unwrap_or(NOWHERE);
        let one = Some(local).filter(|local| local.is_v6() == remote.is_v6());
        let any = Endpoint::new(any_like(remote.ip()), local.port());
        connected.or_else(|| waiting(one?)).or_else(|| waiting(any)).unwrap_or(first)
    }

    /// It no longer is; the path over Linux ends.
    pub(crate) fn end_hearing_linux(&mut self, first: PathId, now: Instant) {
        let Some(over) = self.host.datagrams.remove(&first.index) else { return };
        if let Some(linux) = over.linux.upgrade() {
            self.host.watch.remove(&linux);
            // Whichever looked, another does from now on; what waits there already stirs it.
            if let Some(next) = self.sharers(&linux).first() {
                let _ = self.host.watch.add_readable(&linux, *next);
            }
        }
        self.host.stirred.remove(&first.index);
        if let Some(path) = over.path.filter(|path| *path != first) {
            self.core.port.part(path);
            self.destroy(path, now);
        }
    }

    /// The path over Linux of a socket that has one.
    pub(crate) fn path_over_linux(&self, first: PathId) -> Option<PathId> {
        self.host.datagrams.get(&first.index)?.path
    }

    /// The same; made, if it is the first time.
    fn make_path_over_linux(&mut self, first: PathId, now: Instant) -> Option<PathId> {
        let over = self.host.datagrams.get(&first.index)?;
        if over.path.is_some() {
            return over.path;
        }
        let (socket, linux, top) = (over.socket, over.linux.upgrade()?, self.top()?);
        let like = self.core.paths.path(first)?.state.attrs;
        let class = usize::from(like.class().unwrap_or(0));
        let mut attrs = self.attrs_of(like.local()?, class).with(Attr::Host(true));
        if let Some(remote) = like.remote() {
            attrs = attrs.with(Attr::Remote(remote));
        }
        self.offer_datagrams(&linux);
        // Its class may have as many paths as it may.
        let Ok(path) = self.core.paths.create(top, attrs, None, now, &mut self.core.port) else {
            self.withdraw_offer();
            return None;
        };
        self.admit(path, class);
        self.core.port.pair(first, path);
        let slot = self.slot_of(socket);
        let options = slot.map(options_in);
        for bell in options.into_iter().flatten() {
            self.core.bell(path, bell, now);
        }
        if let Some(over) = self.host.datagrams.get_mut(&first.index) {
            over.path = Some(path);
        }
        Some(path)
    }

    /// The path to send to `remote` by, if that is not one over silk's device.
    pub(crate) fn leaves_over_linux(
        &mut self,
        first: PathId,
        remote: Endpoint,
        now: Instant,
    ) -> Option<PathId> {
        let over = self.host.datagrams.get(&first.index)?;
        // To whom it is connected a socket has one way.
        if self.core.paths.path(first)?.state.attrs.remote() == Some(remote) {
            return None;
        }
        let heard = over.heard.contains(&remote);
        let there = match self.whereabouts(remote.ip()) {
            Whereabouts::Elsewhere => true,
            Whereabouts::Beside => false,
            Whereabouts::Beyond => heard,
        };
        if there { self.make_path_over_linux(first, now) } else { None }
    }

    /// Takes a bounded number of datagrams from Linux's socket up the path over it.
    pub(crate) fn receive_from_linux(&mut self, first: PathId, now: Instant) {
        let over = self.host.datagrams.get(&first.index);
        let Some(linux) = over.and_then(|over| over.linux.upgrade()) else { return };
        let sharers = self.sharers(&linux);
        let mut piece = std::mem::take(&mut self.host.piece);
        piece.resize(LONGEST, 0);
        let (mut more, mut errs) = (true, false);
        for _ in 0..BURST {
            match receive(&linux, &mut piece, &mut self.host.control) {
                Ok(heard) => {
                    let (alone, several);
                    let whose: &[PathId] = if sharers.len() < 2 {
                        alone = [first];
                        &alone
                    } else {
                        several = self.whose(&sharers, first, &heard);
                        &several
                    };
                    for path in whose {
                        if !self.is_at_ip_of(*path, heard.remote) {
                            // Whoever was at that IP has ended.
                            self.core.drops.count(DropReason::UdpNoPort);
                            continue;
                        }
                        self.take_from_linux(*path, &mut piece, heard, now);
                        if *path != first {
                            self.tell_program(*path);
                        }
                    }
                }
                // None is left.
                Err(Errno::EAGAIN) => {
                    more = false;
                    break;
                }
                // What Linux has to say of a datagram that was sent.
                Err(_) => errs = true,
            }
        }
        self.host.piece = piece;
        if errs || linux.has_erred.load(Relaxed) {
            self.hear_errors(&linux, (first, &sharers), now);
        }
        if more {
            self.stirred(first.index, now);
        }
    }

    fn take_from_linux(&mut self, first: PathId, data: &mut [u8], heard: Heard, now: Instant) {
        let Heard { length, remote, to, interface, hops, service: tos } = heard;
        let known = self.core.paths.path(first).and_then(|path| path.state.attrs.remote());
        if known.is_none() && self.core.tables.refuses(remote.ip()) {
            return self.core.drops.count(DropReason::Refused);
        }
        let Some(path) = self.make_path_over_linux(first, now) else { return };
        if self.whereabouts(remote.ip()) == Whereabouts::Beyond
            && let Some(over) = self.host.datagrams.get_mut(&first.index)
        {
            over.note(remote);
        }
        let (local, checksum) = (Endpoint::new(to, 0), Checksum::Verified);
        let meta = Meta { local, remote, arrival: now, checksum, hops, tos, ..Meta::default() };
        let mut message = Message::new(data, 0, length, meta);
        self.core.port.over_linux = interface;
        let _ = self.core.paths.up(path, now, &mut self.core.port, &mut message);
        self.core.port.over_linux = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use silk_modules::Standing;
    use std::net::Ipv4Addr;

    #[test]
    fn what_is_here_what_is_beside_and_what_is_beyond() {
        let ip = |text: &str| text.parse::<Ipv4Addr>().unwrap();
        let ours = [(ip("10.0.0.1").into(), 24)];
        let mut routes = Routes::of(&Standing::of(&ours, None));
        let there = |routes: &Routes, text| find(routes, ip(text));
        assert_eq!(there(&routes, "10.0.0.1"), Whereabouts::Elsewhere);
        assert_eq!(there(&routes, "10.0.0.9"), Whereabouts::Beside);
        assert_eq!(there(&routes, "192.0.2.1"), Whereabouts::Elsewhere);
        routes = Routes::of(&Standing::of(&ours, [ip("10.0.0.2").into()]));
        assert_eq!(there(&routes, "192.0.2.1"), Whereabouts::Beyond);
    }
}
