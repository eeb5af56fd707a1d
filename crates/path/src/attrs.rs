//! Attributes (Scout §3.2): typed name/value pairs given to path creation, added to and
//! rewritten by the modules on the way, and kept on the path. Few and small, so they sit
//! inline; setting one never allocates.

use crate::path::MAX_STAGES;
use crate::{Endpoint, ModuleId};
use core::mem::discriminant;
use core::net::IpAddr;

/// The modules a path is made to lead through, from its top: Scout's `PA_PATHNAME`. Where a
/// service has several links, the one to a module of the route is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Route {
    modules: [u8; MAX_STAGES],
    length: u8,
}

impl Route {
    /// A route through `modules`; `None` when there are more than eight.
    pub fn new(modules: &[ModuleId]) -> Option<Self> {
        let mut route = Self::default();
        modules.iter().all(|module| route.push(*module)).then_some(route)
    }

    /// Leads on through `module`; answers whether there was room.
    pub(crate) fn push(&mut self, module: ModuleId) -> bool {
        let Some(place) = self.modules.get_mut(usize::from(self.length)) else { return false };
        *place = module.0;
        self.length += 1;
        true
    }

    /// The modules, from the top.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = ModuleId> + '_ {
        self.modules[..usize::from(self.length)].iter().map(|module| ModuleId(*module))
    }

    /// Whether the route leads through `module`.
    pub fn contains(&self, module: ModuleId) -> bool {
        self.modules[..usize::from(self.length)].contains(&module.0)
    }
}

/// One attribute: its name is the variant, its value what the variant holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attr {
    /// `PA_PATHNAME`: forces routing decisions.
    PathName(Route),
    /// `PA_NET_PARTICIPANTS`, the other side. Absent: anyone.
    Remote(Endpoint),
    /// `PA_NET_PARTICIPANTS`, our side.
    Local(Endpoint),
    /// `PA_PROTID`: how the module above is known to the one below.
    ProtId(u16),
    /// The router, or the destination itself, that the packets go to next.
    NextHop(IpAddr),
    /// The Ethernet address of our side of the link.
    LinkAddress([u8; 6]),
    /// Frames to groups of stations are for this path too.
    Groups(bool),
    /// Which device is at the bottom.
    Device(u8),
    /// The largest IP packet, in bytes.
    Mtu(u16),
    /// The largest IP packet that the way to the one peer takes, as far as routers have said.
    PathMtu(u16),
    /// The largest message the device cuts up itself, in bytes; 0 or absent: none.
    Gso(u32),
    /// The device completes transport checksums.
    ChecksumOffload(bool),
    /// The class the path belongs to: an index.
    Class(u8),
    /// The priority within the system: higher is more urgent.
    Priority(u8),
    /// Tickets that may wait at the bottom (`PATH_SOURCE`'s length).
    InputQueue(u16),
    /// Bytes of memory that were granted to the path before it was made (Scout §4.4): its limit,
    /// where its class's is not lower.
    Memory(u64),
    /// The service bits of the packets sent.
    Tos(u8),
    /// The time to live of the packets sent.
    Ttl(u8),
    /// The largest segment that the program wants, bytes (`TCP_MAXSEG`).
    MaxSegment(u16),
    /// A listening path, not a connection.
    Listen(bool),
    /// The listening path's backlog: connections not accepted yet.
    Backlog(u16),
    /// A finished handshake that the TCP module keeps under this number.
    Handshake(u32),
    /// The connection is one of Linux's own TCP, which the HOST module has been offered.
    Host(bool),
    /// Whom the path serves: a number that only the creator understands (a socket's slot).
    Owner(u64),
    /// Average time to process a message, in ns: kept by the *measure* transformation.
    ProcessTime(u64),
    /// For a module of one's own: a number with a key of one's own.
    User(u16, u64),
}

/// The names alone, numbered for the mask of those present.
#[derive(Clone, Copy)]
enum Number {
    PathName,
    Remote,
    Local,
    ProtId,
    NextHop,
    LinkAddress,
    Groups,
    Device,
    Mtu,
    PathMtu,
    Gso,
    ChecksumOffload,
    Class,
    Priority,
    InputQueue,
    Memory,
    Tos,
    Ttl,
    MaxSegment,
    Listen,
    Backlog,
    Handshake,
    Host,
    Owner,
    ProcessTime,
    User,
}

impl Attr {
    #[inline]
    fn number(&self) -> Number {
        match self {
            Self::PathName(..) => Number::PathName,
            Self::Remote(..) => Number::Remote,
            Self::Local(..) => Number::Local,
            Self::ProtId(..) => Number::ProtId,
            Self::NextHop(..) => Number::NextHop,
            Self::LinkAddress(..) => Number::LinkAddress,
            Self::Groups(..) => Number::Groups,
            Self::Device(..) => Number::Device,
            Self::Mtu(..) => Number::Mtu,
            Self::PathMtu(..) => Number::PathMtu,
            Self::Gso(..) => Number::Gso,
            Self::ChecksumOffload(..) => Number::ChecksumOffload,
            Self::Class(..) => Number::Class,
            Self::Priority(..) => Number::Priority,
            Self::InputQueue(..) => Number::InputQueue,
            Self::Memory(..) => Number::Memory,
            Self::Tos(..) => Number::Tos,
            Self::Ttl(..) => Number::Ttl,
            Self::MaxSegment(..) => Number::MaxSegment,
            Self::Listen(..) => Number::Listen,
            Self::Backlog(..) => Number::Backlog,
            Self::Handshake(..) => Number::Handshake,
            Self::Host(..) => Number::Host,
            Self::Owner(..) => Number::Owner,
            Self::ProcessTime(..) => Number::ProcessTime,
            Self::User(..) => Number::User,
        }
    }
}

/// The most attributes of one path.
pub const MAX_ATTRS: usize = 16;

/// No room for another attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttrsFull;

/// The attributes of one path, each name once.
#[derive(Clone, Copy, Debug)]
pub struct Attrs {
    // The first `length` are set, no two of the same name.
    items: [Attr; MAX_ATTRS],
    length: u8,
    // Bit n: there is an attribute whose name has the number n. Most questions are about one
    // that is not there.
    present: u32,
}

impl Default for Attrs {
    fn default() -> Self {
        Self { items: [Attr::Listen(false); MAX_ATTRS], length: 0, present: 0 }
    }
}

macro_rules! typed {
    ($($(#[doc = $doc:literal])* $method:ident, $variant:ident, $kind:ty;)*) => {
        impl Attrs {
            $($(#[doc = $doc])*
            pub fn $method(&self) -> Option<$kind> {
                const NUMBER: u32 = Number::$variant as u32;
                if self.present & 1 << NUMBER == 0 {
                    return None;
                }
                self.iter().find_map(|attr| if let Attr::$variant(value) = attr { Some(*value) } else { None })
            })*
        }
    };
}

typed! {
    /// [`Attr::PathName`].
    path_name, PathName, Route;
    /// [`Attr::Remote`].
    remote, Remote, Endpoint;
    /// [`Attr::Local`].
    local, Local, Endpoint;
    /// [`Attr::ProtId`].
    prot_id, ProtId, u16;
    /// [`Attr::NextHop`].
    next_hop, NextHop, IpAddr;
    /// [`Attr::LinkAddress`].
    link_address, LinkAddress, [u8; 6];
    /// [`Attr::Groups`].
    groups, Groups, bool;
    /// [`Attr::Device`].
    device, Device, u8;
    /// [`Attr::Mtu`].
    mtu, Mtu, u16;
    /// [`Attr::PathMtu`].
    path_mtu, PathMtu, u16;
    /// [`Attr::Gso`].
    gso, Gso, u32;
    /// [`Attr::ChecksumOffload`].
    checksum_offload, ChecksumOffload, bool;
    /// [`Attr::Class`].
    class, Class, u8;
    /// [`Attr::Priority`].
    priority, Priority, u8;
    /// [`Attr::InputQueue`].
    input_queue, InputQueue, u16;
    /// [`Attr::Memory`].
    memory, Memory, u64;
    /// [`Attr::Tos`].
    tos, Tos, u8;
    /// [`Attr::Ttl`].
    ttl, Ttl, u8;
    /// [`Attr::MaxSegment`].
    max_segment, MaxSegment, u16;
    /// [`Attr::Listen`].
    listen, Listen, bool;
    /// [`Attr::Backlog`].
    backlog, Backlog, u16;
    /// [`Attr::Handshake`].
    handshake, Handshake, u32;
    /// [`Attr::Host`].
    host, Host, bool;
    /// [`Attr::Owner`].
    owner, Owner, u64;
    /// [`Attr::ProcessTime`].
    process_time, ProcessTime, u64;
}

impl Attrs {
    /// None set.
    pub fn new() -> Self {
        Self::default()
    }

    /// With `attr` set, for building; one too many is left out (there is room for
    /// [`MAX_ATTRS`]).
    #[must_use]
    #[inline]
    pub fn with(mut self, attr: Attr) -> Self {
        let _ = self.set(attr);
        self
    }

    /// Sets `attr`, in place of one of the same name.
    #[inline]
    pub fn set(&mut self, attr: Attr) -> Result<(), AttrsFull> {
        match self.position(&attr) {
            Some(at) => self.items[at] = attr,
            None => {
                *self.items.get_mut(usize::from(self.length)).ok_or(AttrsFull)? = attr;
                self.length += 1;
                self.present |= 1 << attr.number() as u32;
            }
        }
        Ok(())
    }

    /// Removes the attribute of the same name as `attr`, whatever its value.
    pub fn remove(&mut self, attr: &Attr) {
        if let Some(at) = self.position(attr) {
            self.length -= 1;
            self.items[at] = self.items[usize::from(self.length)];
            self.present = self.iter().fold(0, |present, attr| present | 1 << attr.number() as u32);
        }
    }

    /// The attributes, in no order.
    pub fn iter(&self) -> core::slice::Iter<'_, Attr> {
        self.items[..usize::from(self.length)].iter()
    }

    /// The number under a module's own key.
    pub fn user(&self, key: u16) -> Option<u64> {
        self.iter().find_map(|attr| match attr {
            Attr::User(k, value) if *k == key => Some(*value),
            _ => None,
        })
    }

    #[inline]
    fn position(&self, attr: &Attr) -> Option<usize> {
        if self.present & 1 << attr.number() as u32 == 0 {
            return None;
        }
        self.iter().position(|known| match (known, attr) {
            (Attr::User(a, _), Attr::User(b, _)) => a == b,
            _ => discriminant(known) == discriminant(attr),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_there_once() {
        let attrs = Attrs::new().with(Attr::Mtu(1500)).with(Attr::Class(2)).with(Attr::Mtu(1400));
        assert_eq!((attrs.mtu(), attrs.class(), attrs.iter().count()), (Some(1400), Some(2), 2));
    }

    #[test]
    fn user_keys_are_names_of_their_own() {
        let mut attrs = Attrs::new().with(Attr::User(1, 10)).with(Attr::User(2, 20));
        attrs.remove(&Attr::User(1, 0));
        assert_eq!((attrs.user(1), attrs.user(2)), (None, Some(20)));
    }

    #[test]
    fn one_too_many_is_refused() {
        let mut attrs = Attrs::new();
        for key in 0..MAX_ATTRS as u16 {
            assert_eq!(attrs.set(Attr::User(key, 0)), Ok(()));
        }
        assert_eq!(attrs.set(Attr::Mtu(1500)), Err(AttrsFull));
        assert_eq!(attrs.set(Attr::User(3, 7)), Ok(()), "replacing needs no room");
    }

    #[test]
    fn attributes_are_small() {
        assert!(size_of::<Attr>() <= 24 && size_of::<Attrs>() <= 24 * MAX_ATTRS + 8);
    }

    #[test]
    fn a_route_holds_eight_modules() {
        let nine: [ModuleId; 9] = core::array::from_fn(|n| ModuleId(n as u8));
        assert_eq!(Route::new(&nine), None);
        let route = Route::new(&nine[..8]).unwrap();
        assert!(route.contains(ModuleId(7)) && !route.contains(ModuleId(8)));
    }
}
