//! A listening socket, and what has come to it over Linux's own TCP.

use crate::between::names::SocketName;
use crate::between::reserved::Reserved;
use crate::between::told::Told;
use silk_path::{Endpoint, Sharing};
use silk_stream::mail::Sender;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;

/// A listening socket that executors serve together. When the last of them lets go, its
/// slot and record return to the control thread.
#[derive(Debug)]
pub struct ListenerHold {
    /// The socket.
    pub name: SocketName,
    /// Its record in the arena.
    pub listener: u32,
    /// Where it listens: one end, or the same port of both families. An unspecified address is
    /// every one of ours of its family.
    pub ends: Vec<Endpoint>,
    /// The most connections that may wait to be accepted, in each class.
    pub backlog: AtomicU32,
    /// How many more are on their way from Linux's socket to the domains of their classes.
    pub coming: AtomicU32,
    /// It shares its port with others that listen.
    pub sharing: Option<Sharing>,
    /// Linux's socket of the same address and port, where Linux has the address: what comes to
    /// the machine otherwise than over silk's device arrives there.
    pub linux: Option<Arc<Reserved>>,
    /// Where to report that it is free.
    pub events: Sender<Told>,
}

impl Drop for ListenerHold {
    fn drop(&mut self) {
        // The control thread may be gone at the end of the daemon.
        let _ = self.events.send(Told::ListenerFree { name: self.name, listener: self.listener });
    }
}

/// Counts a connection among those on their way, as long as it lives.
#[derive(Debug)]
pub struct Coming(Arc<ListenerHold>);

impl Coming {
    /// One more for this listening socket.
    pub fn to(hold: &Arc<ListenerHold>) -> Self {
        hold.coming.fetch_add(1, SeqCst);
        Self(hold.clone())
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        self.0.coming.fetch_sub(1, SeqCst);
    }
}

/// A connection that Linux's socket has accepted for a listening socket.
#[derive(Debug)]
pub struct Arrived {
    /// The listening socket.
    pub hold: Arc<ListenerHold>,
    /// It is on its way there.
    pub coming: Coming,
    /// The connection.
    pub socket: OwnedFd,
    /// Our end of it.
    pub local: Endpoint,
    /// The other end.
    pub remote: Endpoint,
}
