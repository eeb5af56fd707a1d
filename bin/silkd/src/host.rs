//! What comes to a listening socket over Linux's own TCP: from this machine itself, over its
//! other interfaces. Linux's socket of the same port listens too; the domain of the default
//! class accepts from it, and the domain of the peer's class makes a path of each connection,
//! with HOST at the bottom. (Of datagrams: `host_datagrams.rs`.)

use crate::command::{Arrived, Command, ListenerHold};
use crate::datagrams::Sibling;
use crate::engine::{BURST, Engine};
use crate::host_datagrams::OverLinux;
use crate::host_socket::{LinuxSocket, accept, reset};
use crate::reserved::Reserved;
use crate::say::say;
use crate::sleep::Watch;
use crate::sys;
use rustix::io::Errno;
use silk_instant::Instant;
use silk_modules::host;
use silk_path::{Attr, Attrs, Bell, DropReason, PathId};
use silk_wire::ipv4;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// How long a listener waits that finds its accept queue full, or no descriptor left: nobody
/// tells when that is over. Connections wait in Linux's own backlog meanwhile.
const PAUSE: Duration = Duration::from_millis(10);

/// What one domain keeps of it.
pub struct Host {
    pub(crate) watch: Watch,
    /// Linux's listening sockets, by the index of the listen path.
    listeners: BTreeMap<u32, Arc<Reserved>>,
    /// Linux's datagram sockets, by the index of their sockets' first paths.
    pub(crate) datagrams: BTreeMap<u32, OverLinux>,
    /// Where a datagram lies between two copies; empty until there is one.
    pub(crate) piece: Vec<u8>,
    /// Room for what Linux tells of a datagram.
    pub(crate) control: Vec<u8>,
    /// Those of both that may have something.
    pub(crate) stirred: BTreeSet<u32>,
    /// Those that wait for [`PAUSE`] to be over, and when that is; FAR: none does.
    paused: BTreeSet<u32>,
    again: Instant,
}

impl Host {
    /// None yet.
    pub fn new(watch: Watch) -> Self {
        Self {
            watch,
            listeners: BTreeMap::new(),
            datagrams: BTreeMap::new(),
            piece: Vec::new(),
            control: crate::host_socket::control(),
            stirred: BTreeSet::new(),
            paused: BTreeSet::new(),
            again: Instant::FAR,
        }
    }

    /// When a listener is to be tried again.
    pub fn due(&self) -> Option<Instant> {
        Some(self.again).filter(|at| *at != Instant::FAR)
    }

    /// A listener goes on under other terms, if it is one.
    pub fn change_terms(&self, index: u32, hold: &ListenerHold, defer_accept: u32) {
        if let Some(linux) = self.listeners.get(&index)
            && let Err(error) = listen(linux, hold, defer_accept)
        {
            complain(hold, &error);
        }
    }

    /// The listen path ends.
    pub fn forget(&mut self, index: u32) {
        if let Some(linux) = self.listeners.remove(&index) {
            self.watch.remove(&linux);
            // Its socket may begin again, with the port that it has.
            linux.end_listening();
        }
        self.stirred.remove(&index);
        self.paused.remove(&index);
    }

    fn pause(&mut self, index: u32, now: Instant) {
        self.paused.insert(index);
        self.again = self.again.min(now + PAUSE);
    }
}

fn listen(linux: &Reserved, hold: &ListenerHold, defer_accept: u32) -> io::Result<()> {
    let backlog = hold.backlog.load(SeqCst).min(i32::MAX as u32) as i32;
    sys::defer_accept(linux.as_fd(), defer_accept)?;
    match linux.listen(backlog) {
        // The program has closed its socket meanwhile.
        Err(Errno::INVAL) => Ok(()),
        other => Ok(other?),
    }
}

fn complain(hold: &ListenerHold, error: &io::Error) {
    let end = hold.ends.first().map_or_else(String::new, ToString::to_string);
    say!("silkd: {end} cannot be reached from this machine itself: {error}");
}

impl Engine {
    /// A program listens: so does Linux's socket, from now on, since the classifier keeps from
    /// it what comes over silk's device. A graph without HOST has no use for it.
    pub(crate) fn listen_on_linux(&mut self, id: PathId, hold: &ListenerHold, defer_accept: u32) {
        let accepts = self.domain == self.classes.domain(self.classes.default);
        let Some(linux) = hold.linux.as_ref().filter(|_| accepts) else { return };
        if self.core.paths.module_mut::<host::Host>().is_none() {
            return;
        }
        let listens = listen(linux, hold, defer_accept).and_then(|()| self.host.watch.add(linux, id.index));
        match listens {
            Ok(()) => _ = self.host.listeners.insert(id.index, linux.clone()),
            Err(error) => complain(hold, &error),
        }
    }

    /// Something has changed at the socket of Linux's that the path of this index has.
    pub fn stirred(&mut self, index: u32, now: Instant) {
        let Some(id) = self.core.paths.at(index) else { return };
        if self.host.listeners.contains_key(&index) || self.host.datagrams.contains_key(&index) {
            self.host.stirred.insert(index);
            self.wake(id, now);
        } else {
            self.stir(id, now);
        }
    }

    /// A path is to look at its socket of Linux's.
    pub(crate) fn stir(&mut self, id: PathId, now: Instant) {
        let Some(name) = self.end_of(id).map(|end| end.name()) else { return };
        if let Some(socket) = self.sockets.find(name) {
            socket.ready = true;
            self.wake(id, now);
        }
    }

    /// Those whose pause is over look again.
    pub(crate) fn try_again(&mut self, now: Instant) {
        if self.host.again > now {
            return;
        }
        self.host.again = Instant::FAR;
        for index in std::mem::take(&mut self.host.paused) {
            self.stirred(index, now);
        }
    }

    /// Takes a bounded part of what Linux's socket has for a path, if that has stirred.
    pub(crate) fn attend_to_linux(&mut self, id: PathId, now: Instant) {
        if self.host.stirred.is_empty() || !self.host.stirred.remove(&id.index) {
            return;
        }
        match self.host.listeners.get(&id.index).cloned() {
            Some(linux) => self.accept_from_linux(id, &linux, now),
            None => self.receive_from_linux(id, now),
        }
    }

    /// Takes a bounded number of connections from Linux's socket of a listen path.
    fn accept_from_linux(&mut self, id: PathId, linux: &Reserved, now: Instant) {
        for _ in 0..BURST {
            if self.has_no_room(id) || self.siblings.iter().any(Sibling::is_busy) {
                return self.host.pause(id.index, now);
            }
            match accept(linux) {
                Ok((socket, local, remote)) => {
                    let Some(hold) = self.next_listener(id) else { return };
                    self.pass_to_class(Arrived { hold, socket, local, remote }, now);
                }
                // None is left; or the port has been given back.
                Err(Errno::AGAIN | Errno::INVAL) => return,
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    self.core.drops.count(DropReason::HostDescriptors);
                    return self.host.pause(id.index, now);
                }
                // That one has ended already.
                Err(_) => {}
            }
        }
        self.stirred(id.index, now);
    }

    /// Whether a connection of some class would find as many before it, at each of the sockets
    /// that share a listen path, as the backlog allows. Of what class the next one is, nobody
    /// knows before it is accepted.
    fn has_no_room(&self, id: PathId) -> bool {
        let is_full = |hold: &Arc<ListenerHold>| {
            let family = self.families.get(&hold.name.family);
            let listener = family.and_then(|family| family.arena.listener(hold.listener));
            let backlog = hold.backlog.load(SeqCst);
            listener.is_none_or(|listener| listener.queue.iter().any(|queue| queue.len() >= backlog))
        };
        self.listeners.get(&id.index).is_none_or(|holds| holds.iter().all(is_full))
    }

    /// Takes a connection to the domain of its peer's class.
    fn pass_to_class(&mut self, arrived: Arrived, now: Instant) {
        let domain = self.classes.domain_of(arrived.remote.ip(), 0, arrived.local.port());
        match self.siblings.get(domain).filter(|_| domain != self.domain) {
            Some(sibling) => {
                if let Err(reason) = sibling.give(|| Command::Host(arrived)) {
                    self.core.drops.count(reason);
                }
            }
            None => self.open_host(arrived, now),
        }
    }

    /// A connection that another domain has accepted.
    pub fn host_passed_on(&mut self, arrived: Arrived, now: Instant) {
        self.has_come();
        self.open_host(arrived, now);
    }

    /// Makes a path of a connection; it is reset where that cannot be.
    fn open_host(&mut self, arrived: Arrived, now: Instant) {
        let Arrived { hold, socket, local, remote } = arrived;
        let socket = Arc::new(socket);
        let attrs = Attrs::new()
            .with(Attr::Local(local))
            .with(Attr::Remote(remote))
            .with(Attr::ProtId(ipv4::TCP.into()))
            .with(Attr::Host(true));
        if let Some(id) = self.begin_host(attrs, &hold, &socket, now) {
            if self.host.watch.add(&socket, id.index).is_err() {
                // Nobody would tell what arrives.
                self.core.paths.bell(id, now, &mut self.core.port, Bell::Abort);
            }
            return self.settle(id, now);
        }
        if let Some(module) = self.core.paths.module_mut::<host::Host>() {
            module.withdraw();
        }
        reset(&socket);
        self.core.drops.count(DropReason::HostRefused);
    }

    fn begin_host(
        &mut self,
        attrs: Attrs,
        hold: &Arc<ListenerHold>,
        socket: &Arc<OwnedFd>,
        now: Instant,
    ) -> Option<PathId> {
        // Its program may have closed it while the connection was on its way here.
        self.listeners.values().flatten().find(|known| Arc::ptr_eq(known, hold))?;
        let top = self.top()?;
        self.core.paths.module_mut::<host::Host>()?.offer(Box::new(LinuxSocket(socket.clone())));
        self.take_connection(top, attrs, hold, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sleep::Sleeper;
    use std::os::fd::AsFd;

    #[test]
    fn the_first_pause_to_end_is_when_the_domain_wants_to_be_woken() {
        let event = silk_stream::wake::event().unwrap();
        let mut host = Host::new(Sleeper::new(&[], event.as_fd()).unwrap().watch());
        assert_eq!(host.due(), None);
        let now = Instant::from_nanos(5);
        host.pause(3, now);
        host.pause(4, now + PAUSE / 2);
        assert_eq!(host.due(), Some(now + PAUSE));
        host.forget(3);
        assert_eq!(host.paused, BTreeSet::from([4]));
    }
}
