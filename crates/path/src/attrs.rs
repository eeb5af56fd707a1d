//! Attributes (Scout §3.2): typed name/value pairs given to path creation, added to and
//! rewritten by the modules on the way, and kept on the path. Each has its own place, so asking
//! for one is a load, all together are small, and setting one never allocates.

use crate::route::Route;
use crate::{Endpoint, NOWHERE};
use core::fmt;
use core::net::IpAddr;

/// How a path shares its port with others that wait there too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Each hears its part of the peers.
    Peers,
    /// The one that came last hears all.
    Latest,
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
    /// Others that say so too may wait at the same port.
    Shared(Sharing),
    /// The connection is one of Linux's own TCP, which the HOST module has been offered.
    Host(bool),
    /// Whom the path serves: a number that only the creator understands (a socket's slot).
    Owner(u64),
    /// Average time to process a message, in ns: kept by the *measure* transformation.
    ProcessTime(u64),
    /// For a module of one's own: a number with a key of one's own.
    User(u16, u64),
}

/// The most attributes of one path with keys of a module's own.
pub const MAX_USER: usize = 2;

/// No room for another attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttrsFull;

macro_rules! typed {
    ($($(#[doc = $doc:literal])* $name:ident, $variant:ident, $kind:ty, $blank:expr;)*) => {
        /// The place of each name's bit in [`Attrs`].
        enum Bit { $($variant,)* User }

        /// The attributes of one path, each name once.
        // Which are set is told apart from the values, so that they lie close together.
        #[derive(Clone, Copy)]
        pub struct Attrs {
            set: u32,
            $($name: $kind,)*
            user_keys: [u16; MAX_USER],
            user_values: [u64; MAX_USER],
        }

        impl Default for Attrs {
            fn default() -> Self {
                Self { set: 0, $($name: $blank,)* user_keys: [0; MAX_USER], user_values: [0; MAX_USER] }
            }
        }

        impl Attrs {
            $($(#[doc = $doc])*
            #[inline]
            pub fn $name(&self) -> Option<$kind> {
                self.has(Bit::$variant).then_some(self.$name)
            })*

            /// Sets `attr`, in place of one of the same name.
            ///
            /// # Errors
            /// There is no room for another with a key of a module's own.
            #[inline]
            pub fn set(&mut self, attr: Attr) -> Result<(), AttrsFull> {
                match attr {
                    $(Attr::$variant(value) => {
                        self.set |= 1 << Bit::$variant as u32;
                        self.$name = value;
                    })*
                    Attr::User(key, value) => return self.set_user(key, value),
                }
                Ok(())
            }

            /// Removes the attribute of the same name as `attr`, whatever its value.
            pub fn remove(&mut self, attr: &Attr) {
                match attr {
                    $(Attr::$variant(_) => self.set &= !(1 << Bit::$variant as u32),)*
                    Attr::User(key, _) => self.remove_user(*key),
                }
            }

            /// The attributes, in the order of their names.
            pub fn iter(&self) -> impl Iterator<Item = Attr> + '_ {
                let user = self.places().map(|at| Attr::User(self.user_keys[at], self.user_values[at]));
                [$(self.$name().map(Attr::$variant),)*].into_iter().flatten().chain(user)
            }
        }
    };
}

typed! {
    /// [`Attr::PathName`].
    path_name, PathName, Route, Route::default();
    /// [`Attr::Remote`].
    remote, Remote, Endpoint, NOWHERE;
    /// [`Attr::Local`].
    local, Local, Endpoint, NOWHERE;
    /// [`Attr::ProtId`].
    prot_id, ProtId, u16, 0;
    /// [`Attr::NextHop`].
    next_hop, NextHop, IpAddr, NOWHERE.ip();
    /// [`Attr::LinkAddress`].
    link_address, LinkAddress, [u8; 6], [0; 6];
    /// [`Attr::Groups`].
    groups, Groups, bool, false;
    /// [`Attr::Device`].
    device, Device, u8, 0;
    /// [`Attr::Mtu`].
    mtu, Mtu, u16, 0;
    /// [`Attr::PathMtu`].
    path_mtu, PathMtu, u16, 0;
    /// [`Attr::Gso`].
    gso, Gso, u32, 0;
    /// [`Attr::ChecksumOffload`].
    checksum_offload, ChecksumOffload, bool, false;
    /// [`Attr::Class`].
    class, Class, u8, 0;
    /// [`Attr::Priority`].
    priority, Priority, u8, 0;
    /// [`Attr::InputQueue`].
    input_queue, InputQueue, u16, 0;
    /// [`Attr::Memory`].
    memory, Memory, u64, 0;
    /// [`Attr::Tos`].
    tos, Tos, u8, 0;
    /// [`Attr::Ttl`].
    ttl, Ttl, u8, 0;
    /// [`Attr::MaxSegment`].
    max_segment, MaxSegment, u16, 0;
    /// [`Attr::Listen`].
    listen, Listen, bool, false;
    /// [`Attr::Backlog`].
    backlog, Backlog, u16, 0;
    /// [`Attr::Handshake`].
    handshake, Handshake, u32, 0;
    /// [`Attr::Shared`].
    shared, Shared, Sharing, Sharing::Peers;
    /// [`Attr::Host`].
    host, Host, bool, false;
    /// [`Attr::Owner`].
    owner, Owner, u64, 0;
    /// [`Attr::ProcessTime`].
    process_time, ProcessTime, u64, 0;
}

// Names and keys of modules' own have a bit each.
const _: () = assert!(Bit::User as usize + MAX_USER <= u32::BITS as usize);

impl fmt::Debug for Attrs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Attrs {
    /// None set.
    pub fn new() -> Self {
        Self::default()
    }

    /// With `attr` set, for building; one too many with a key of a module's own is left out (there
    /// is room for [`MAX_USER`]).
    #[must_use]
    #[inline]
    pub fn with(mut self, attr: Attr) -> Self {
        let _ = self.set(attr);
        self
    }

    /// The number under a module's own key.
    pub fn user(&self, key: u16) -> Option<u64> {
        self.places().find(|at| self.user_keys[*at] == key).map(|at| self.user_values[at])
    }

    #[inline]
    const fn has(&self, bit: Bit) -> bool {
        self.set & 1 << bit as u32 != 0
    }

    /// The bit of the place `at` for a module's own.
    const fn user_bit(at: usize) -> u32 {
        1 << (Bit::User as usize + at)
    }

    /// The places of modules' own that are taken.
    fn places(&self) -> impl Iterator<Item = usize> + '_ {
        (0..MAX_USER).filter(|at| self.set & Self::user_bit(*at) != 0)
    }

    fn set_user(&mut self, key: u16, value: u64) -> Result<(), AttrsFull> {
        let known = self.places().find(|at| self.user_keys[*at] == key);
        let free = || (0..MAX_USER).find(|at| self.set & Self::user_bit(*at) == 0);
        let at = known.or_else(free).ok_or(AttrsFull)?;
        self.set |= Self::user_bit(at);
        (self.user_keys[at], self.user_values[at]) = (key, value);
        Ok(())
    }

    fn remove_user(&mut self, key: u16) {
        let known = self.places().find(|at| self.user_keys[*at] == key);
        self.set &= !known.map_or(0, Self::user_bit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_there_once() {
        let attrs = Attrs::new().with(Attr::Mtu(1500)).with(Attr::Class(2)).with(Attr::Mtu(1400));
        assert_eq!(attrs.iter().collect::<alloc::vec::Vec<_>>(), [Attr::Mtu(1400), Attr::Class(2)]);
        assert_eq!((attrs.mtu(), attrs.class(), attrs.gso()), (Some(1400), Some(2), None));
    }

    #[test]
    fn user_keys_are_names_of_their_own() {
        let mut attrs = Attrs::new().with(Attr::User(1, 10)).with(Attr::User(2, u64::MAX - 1));
        attrs.remove(&Attr::User(1, 0));
        assert_eq!((attrs.user(1), attrs.user(2)), (None, Some(u64::MAX - 1)));
    }

    #[test]
    fn one_too_many_is_refused() {
        let mut attrs = Attrs::new();
        for key in 0..MAX_USER as u16 {
            assert_eq!(attrs.set(Attr::User(key, 0)), Ok(()));
        }
        assert_eq!(attrs.set(Attr::User(9, 0)), Err(AttrsFull));
        assert_eq!(attrs.set(Attr::User(0, 1)), Ok(()));
    }

    #[test]
    fn attributes_are_small() {
        assert!(size_of::<Attr>() <= 24 && size_of::<Attrs>() <= 152, "{}", size_of::<Attrs>());
    }
}
