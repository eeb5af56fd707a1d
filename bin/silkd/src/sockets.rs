//! The sockets of a domain: which path each has, and what is left of those whose path has
//! ended while their program still holds them.

use crate::command::{FamilyIndex, SocketName};
use crate::socket_end::SocketEnd;
use silk_path::PathId;
use std::collections::BTreeMap;

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
    /// The thread that serves it, and the CPU time it had used when it began.
    pub thread: Option<(u32, u64)>,
    /// The priority that thread has for this socket alone, above its class's.
    pub raised: Option<u32>,
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
            raised: None,
            rung: false,
            ready: false,
            named,
        }
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
