//! The sockets of a domain: which path each has, and what is left of those whose path has
//! ended while their program still holds them.

use crate::between::names::{FamilyIndex, SocketName};
use crate::domain::socket_end::SocketEnd;
use silk_path::PathId;
use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// A socket of this domain.
pub struct Socket {
    /// Its path, while it has one. The path holds the end.
    pub path: Option<PathId>,
    /// Its other path, of a datagram socket that hears both families.
    pub twin: Option<PathId>,
    /// Its end, once the path is gone.
    pub end: Option<Box<SocketEnd>>,
    /// The class its path had, once that is gone.
    pub past_class: u8,
    /// The program has closed it.
    pub closed: bool,
    // The thread that serves it, plus one, and the CPU time it had used when it began.
    thread: Option<NonZeroU32>,
    began: u64,
    /// The priority that thread has for this socket alone, above its class's.
    pub raised: Option<u8>,
    /// What the program has rung for and the path has not been told yet.
    pub rung: bool,
    /// Something has changed at its socket of Linux's and the path has not been told yet.
    pub ready: bool,
    /// Known to the control thread by name (bound, connected; not merely accepted).
    pub named: bool,
}

impl Socket {
    /// A socket with a path.
    pub fn on(path: PathId, named: bool) -> Self {
        Self { path: Some(path), ..Self::without_path(named) }
    }

    /// A socket whose path could not be made.
    pub fn without_path(named: bool) -> Self {
        Self {
            path: None,
            twin: None,
            end: None,
            past_class: 0,
            closed: false,
            thread: None,
            began: 0,
            raised: None,
            rung: false,
            ready: false,
            named,
        }
    }

    /// The thread that serves it, and the CPU time it had used when it began.
    pub fn thread(&self) -> Option<(u32, u64)> {
        self.thread.map(|thread| (thread.get() - 1, self.began))
    }

    /// This thread, which has used so much CPU time, serves it from now on.
    pub fn serve_by(&mut self, thread: u32, used: u64) {
        (self.thread, self.began) = (NonZeroU32::new(thread.wrapping_add(1)), used);
    }

    /// Nobody serves it any more; who did.
    pub fn end_service(&mut self) -> Option<(u32, u64)> {
        let served = self.thread();
        self.thread = None;
        served
    }
}

/// The sockets by family and slot.
#[derive(Default)]
pub struct Sockets(BTreeMap<FamilyIndex, Vec<Option<Box<Socket>>>>);

impl Sockets {
    /// The socket of that name.
    pub fn find(&mut self, name: SocketName) -> Option<&mut Socket> {
        self.0.get_mut(&name.family)?.get_mut(name.slot as usize)?.as_deref_mut()
    }

    /// The socket of that name, to look at.
    pub fn get(&self, name: SocketName) -> Option<&Socket> {
        self.0.get(&name.family)?.get(name.slot as usize)?.as_deref()
    }

    /// Remembers a socket.
    pub fn insert(&mut self, name: SocketName, socket: Socket) {
        let family = self.0.entry(name.family).or_default();
        let at = name.slot as usize;
        if at >= family.len() {
            family.resize_with(at + 1, || None);
        }
        family[at] = Some(Box::new(socket));
    }

    /// Forgets a socket.
    pub fn remove(&mut self, name: SocketName) -> Option<Box<Socket>> {
        self.0.get_mut(&name.family)?.get_mut(name.slot as usize)?.take()
    }

    /// The sockets of a family.
    pub fn of_family(&self, family: FamilyIndex) -> Vec<SocketName> {
        let slots = self.0.get(&family).into_iter().flatten().enumerate();
        slots
            .filter(|(_, socket)| socket.is_some())
            .map(|(slot, _)| SocketName { family, slot: slot as u32 })
            .collect()
    }

    /// The first socket of a family whose slot is not below `from`.
    pub fn next_of(&self, family: FamilyIndex, from: u32) -> Option<SocketName> {
        let slots = self.0.get(&family)?.get(from as usize..)?;
        let at = slots.iter().position(Option::is_some)?;
        Some(SocketName { family, slot: from + at as u32 })
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.0.values().flatten().all(Option::is_none)
    }

    /// All sockets of a family are in slots below this.
    pub fn slots_of(&self, family: FamilyIndex) -> u32 {
        self.0.get(&family).map_or(0, |slots| slots.len() as u32)
    }

    /// Forgets a family, whose sockets are all gone.
    pub fn remove_family(&mut self, family: FamilyIndex) {
        self.0.remove(&family);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each connection has one. What is beyond 56 bytes takes the C library's allocator 80 for each.
    #[test]
    fn a_socket_is_small() {
        assert!(size_of::<Socket>() <= 56, "{}", size_of::<Socket>());
    }

    #[test]
    fn the_first_thread_is_one_as_any() {
        let mut socket = Socket::without_path(false);
        assert_eq!(socket.thread(), None);
        socket.serve_by(0, 7);
        assert_eq!(
            (socket.thread(), socket.end_service(), socket.thread()),
            (Some((0, 7)), Some((0, 7)), None)
        );
    }
}
