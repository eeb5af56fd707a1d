//! Groups that a socket joins before it is decided who serves it.

use super::Call;
use crate::address;
use crate::family;
use crate::socket::Socket;
use silk_control::{Membership, Request};
use silk_stream::SharedAddress;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Groups that are remembered of a socket before it is decided who serves it.
const EARLY: usize = 4;

/// The groups that a socket has joined before it was decided who serves it, each with the source that it has chosen
/// or an unspecified one: Linux's descriptor has joined them already.
pub struct Early([[SharedAddress; 2]; EARLY]);

impl Early {
    /// None.
    pub const fn new() -> Self {
        Self(
            [const {
                [const {
                    let ip = [const { AtomicU64::new(0) }; 2];
                    SharedAddress { ip, port: AtomicU32::new(0), scope: AtomicU32::new(0) }
                }; 2]
            }; EARLY],
        )
    }

    /// Remembers what was asked; `false`: there is no room, or it is none of what is remembered.
    pub fn note(&self, asked: Call) -> bool {
        let (joins, source) = match asked.change {
            Membership::Join => (true, None),
            Membership::Leave => (false, None),
            Membership::Add(source) => (true, Some(source)),
            Membership::Drop(source) => (false, Some(source)),
            Membership::Block(_) | Membership::Unblock(_) => return false,
        };
        let mut its = self.0.iter().filter(|place| group_of(place) == asked.group);
        // Whoever leaves a group leaves all its sources.
        let is = |place: &&[SharedAddress; 2]| source_of(place) == source;
        match (joins, source) {
            (false, None) => return its.map(forget).count() > 0,
            (false, Some(_)) => return its.find(is).map(forget).is_some(),
            (true, _) if its.any(|place| is(&place)) => return true,
            (true, _) => {}
        }
        let free = self.0.iter().find(|place| !group_of(place).is_multicast());
        free.map(|[group, chosen]| {
            store(chosen, wide(source.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED))), 0);
            store(group, wide(asked.group), asked.at.1);
        })
        .is_some()
    }

    /// Forgets all.
    pub fn clear(&self) {
        self.0.iter().for_each(forget);
    }

    /// Takes them to the daemon, now that it serves the socket. What it refuses is Linux's alone.
    pub fn tell(&self, socket: &Socket) {
        for place in &self.0 {
            let group = group_of(place);
            if group.is_multicast() {
                let at = (None, place[0].scope.load(Relaxed));
                let change = source_of(place).map_or(Membership::Join, Membership::Add);
                let (slot, generation) = socket.name();
                let _ = family::ask(&Request::Group { slot, generation, group, at, change }, &[]);
                forget(place);
            }
        }
    }
}

fn group_of([group, _]: &[SharedAddress; 2]) -> IpAddr {
    address::shared(group).ip()
}

fn source_of([_, source]: &[SharedAddress; 2]) -> Option<IpAddr> {
    Some(address::shared(source).ip()).filter(|source| !source.is_unspecified())
}

fn forget(place: &[SharedAddress; 2]) {
    place.iter().for_each(|part| store(part, Ipv6Addr::UNSPECIFIED, 0));
}

fn wide(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}

fn store(place: &SharedAddress, ip: Ipv6Addr, interface: u32) {
    place.ip[0].store((ip.to_bits() >> 64) as u64, Relaxed);
    place.ip[1].store(ip.to_bits() as u64, Relaxed);
    place.scope.store(interface, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_joined_early_is_remembered_until_it_is_left() {
        let early = Early::new();
        let asked = |n, joins| Call {
            group: IpAddr::from([239, 0, 0, n]),
            at: (None, 0),
            change: if joins { Membership::Join } else { Membership::Leave },
        };
        assert!((0..4).all(|n| early.note(asked(n, true))));
        assert!(!early.note(asked(9, true)) && !early.note(asked(9, false)));
        assert!(early.note(asked(1, false)) && early.note(asked(9, true)));
    }

    #[test]
    fn sources_that_were_chosen_early_are_remembered_until_their_group_is_left() {
        let early = Early::new();
        let group = IpAddr::from([232, 0, 0, 1]);
        let note = |change| early.note(Call { group, at: (None, 0), change });
        let source = |n| IpAddr::from([192, 0, 2, n]);
        assert!(note(Membership::Add(source(1))) && note(Membership::Add(source(2))));
        assert!(note(Membership::Drop(source(1))) && !note(Membership::Drop(source(1))));
        let known = || early.0.iter().filter_map(source_of).collect::<Vec<_>>();
        assert_eq!(known(), [source(2)]);
        assert!(!note(Membership::Block(source(3))));
        assert!(note(Membership::Leave) && !note(Membership::Leave));
        assert!(known().is_empty());
    }
}
