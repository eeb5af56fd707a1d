//! A listening socket, and what has come to it over Linux's own TCP.

use crate::between::event::Event;
use crate::between::names::SocketName;
use crate::between::reserved::Reserved;
use silk_path::{Endpoint, Sharing};
use silk_stream::mail::Sender;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

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
    /// It shares its port with others that listen.
    pub sharing: Option<Sharing>,
    /// Linux's socket of the same address and port, where Linux has the address: what comes to
    /// the machine otherwise than over silk's device arrives there.
    pub linux: Option<Arc<Reserved>>,
    /// Where to report that it is free.
    pub events: Sender<Event>,
}

impl Drop for ListenerHold {
    fn drop(&mut self) {
        // The control thread may be gone at the end of the daemon.
        let _ = self.events.send(Event::ListenerFree { name: self.name, listener: self.listener });
    }
}

/// A connection that Linux's socket has accepted for a listening socket.
#[derive(Debug)]
pub struct Arrived {
    /// The listening socket.
    pub hold: Arc<ListenerHold>,
    /// The connection.
    pub socket: OwnedFd,
    /// Our end of it.
    pub local: Endpoint,
    /// The other end.
    pub remote: Endpoint,
}
