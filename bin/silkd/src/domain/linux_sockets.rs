//! Linux's sockets that a domain takes from, and which of them may have something.

use crate::between::listener_hold::ListenerHold;
use crate::between::names::SocketName;
use crate::between::reserved::Reserved;
use crate::between::watch::Watch;
use crate::binding::Sides;
use crate::say::say;
use crate::sys;
use rustix::io::Errno;
use silk_instant::Instant;
use silk_path::{Endpoint, PathId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How long a listener waits that finds its accept queue full, or no descriptor left: nobody
/// tells when that is over. Connections wait in Linux's own backlog meanwhile.
const PAUSE: Duration = Duration::from_millis(10);

/// Linux's listening and datagram sockets of one domain.
pub struct Host {
    /// What tells of changes at them.
    pub watch: Watch,
    /// Linux's listening sockets, by the index of the listen path.
    pub listeners: BTreeMap<u32, Arc<Reserved>>,
    /// Linux's datagram sockets, by the index of their sockets' first paths.
    pub datagrams: BTreeMap<u32, OverLinux>,
    /// Where a datagram lies between two copies; empty until there is one.
    pub piece: Vec<u8>,
    /// Room for what Linux tells of a datagram.
    pub control: Vec<u8>,
    /// Those of both that may have something.
    pub stirred: BTreeSet<u32>,
    /// Those that wait for [`PAUSE`] to be over.
    pub paused: BTreeSet<u32>,
    /// When the first of them is tried again; FAR: none waits.
    pub again: Instant,
}

impl Host {
    /// None yet.
    pub fn new(watch: Watch) -> Self {
        Self {
            watch,
            listeners: BTreeMap::new(),
            datagrams: BTreeMap::new(),
            piece: Vec::new(),
            control: crate::domain::host_socket::control(),
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

    /// The listen path ends. Its socket of Linux's goes on for `heir`, if one has that too.
    pub fn forget(&mut self, index: u32, heir: Option<u32>) {
        if let Some(linux) = self.listeners.remove(&index) {
            self.watch.remove(&linux);
            // What waits there already stirs the heir.
            match heir.filter(|heir| self.watch.add(&linux, *heir).is_ok()) {
                Some(heir) => _ = self.listeners.insert(heir, linux),
                // Its socket may begin again, with the port that it has.
                None => linux.end_listening(),
            }
        }
        self.stirred.remove(&index);
        self.paused.remove(&index);
    }

    /// A listener is tried again when its pause is over.
    pub fn pause(&mut self, index: u32, now: Instant) {
        self.paused.insert(index);
        self.again = self.again.min(now + PAUSE);
    }
}

/// Linux's socket listens for a program's.
///
/// # Errors
/// The kernel's.
pub fn listen(linux: &Reserved, hold: &ListenerHold, defer_accept: u32) -> io::Result<()> {
    let backlog = hold.backlog.load(SeqCst).min(i32::MAX as u32) as i32;
    sys::defer_accept(linux.as_fd(), defer_accept)?;
    match linux.listen(backlog) {
        // The program has closed its socket meanwhile.
        Err(Errno::INVAL) => Ok(()),
        other => Ok(other?),
    }
}

/// People are told what cannot be reached.
pub fn complain(hold: &ListenerHold, error: &io::Error) {
    let end = hold.ends.first().map_or_else(String::new, ToString::to_string);
    say!(Error, "silkd: {end} cannot be reached from this machine itself: {error}");
}

/// Whom one socket has heard so and would else answer over silk's device: the last of them.
pub const HEARD: usize = 64;

/// What a datagram socket has of Linux.
pub struct OverLinux {
    /// Whose it is.
    pub socket: SocketName,
    /// Linux's socket; nothing, as soon as the port is not the program's any more.
    pub linux: Weak<Reserved>,
    /// At which IPs it hears: Linux's socket may hear at another, for whoever shares the port.
    pub sides: Sides,
    /// The path, once there is one.
    pub path: Option<PathId>,
    /// Those from beyond silk's own networks, the latest at the end: no route says that they are to be
    /// answered this way.
    pub heard: VecDeque<Endpoint>,
}

impl OverLinux {
    /// It has heard from this.
    pub fn note(&mut self, remote: Endpoint) {
        if !self.heard.contains(&remote) {
            if self.heard.len() == HEARD {
                self.heard.pop_front();
            }
            self.heard.push_back(remote);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::sleep::Sleeper;
    use std::net::Ipv4Addr;
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
        host.forget(3, None);
        assert_eq!(host.paused, BTreeSet::from([4]));
    }

    #[test]
    fn linuxs_socket_goes_on_for_another_listen_path_that_has_it() {
        let event = silk_stream::wake::event().unwrap();
        let mut host = Host::new(Sleeper::new(&[], event.as_fd()).unwrap().watch());
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = socket.local_addr().unwrap();
        let linux = Arc::new(Reserved::new(socket.into()));
        host.watch.add(&linux, 3).unwrap();
        host.listeners.insert(3, linux);
        let listens = || std::net::TcpStream::connect(at).is_ok();
        host.forget(3, Some(4));
        assert!(host.listeners.keys().eq([&4]) && listens());
        host.forget(4, None);
        assert!(host.listeners.is_empty() && !listens());
    }

    #[test]
    fn the_last_that_were_heard_are_known_and_each_once() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let linux = Arc::new(Reserved::new(socket.into()));
        let socket = SocketName { family: 0, slot: 0 };
        let linux = Arc::downgrade(&linux);
        let mut over = OverLinux { socket, linux, sides: Sides::BOTH, path: None, heard: VecDeque::new() };
        let from = |port| Endpoint::v4(Ipv4Addr::LOCALHOST, port);
        (0..2 * HEARD as u16).for_each(|port| over.note(from(port / 2)));
        assert_eq!(over.heard.len(), HEARD);
        over.note(from(999));
        assert_eq!((over.heard.front(), over.heard.back()), (Some(&from(1)), Some(&from(999))));
    }
}
