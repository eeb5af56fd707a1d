//! The paths of a domain that wait at a port for anyone, shared by UDP and TCP, and what both
//! do with the classifier's tables. No two of them may have overlapping addresses.

use alloc::vec::Vec;
use silk_path::classify::{Answer, Between, FlowError, Found, Protocol, Tables, View};
use silk_path::{CreateError, Endpoint, NOWHERE, PathId};

/// Paths by the address and port they wait at. Few, so a list.
#[derive(Default)]
pub(crate) struct Bound(Vec<(Endpoint, PathId)>);

impl Bound {
    /// Enters a path: takes the port for silk. An unspecified address means all
    /// of ours of its family.
    pub fn enter(
        &mut self,
        tables: &Tables,
        protocol: Protocol,
        local: Endpoint,
        path: PathId,
    ) -> Result<(), CreateError> {
        let overlap = CreateError::Overlap { local, remote: NOWHERE };
        if self.0.iter().any(|(known, _)| overlaps(known, &local)) {
            return Err(overlap);
        }
        if !tables.own_port(protocol, Some(local.ip()), local.port()) {
            return Err(CreateError::NoRoute(local.ip()));
        }
        self.0.push((local, path));
        Ok(())
    }

    /// Takes a path out and gives the port back.
    pub fn leave(&mut self, tables: &Tables, protocol: Protocol, local: Endpoint, path: PathId) {
        let before = self.0.len();
        self.0.retain(|(known, id)| *known != local || *id != path);
        if self.0.len() < before {
            tables.disown_port(protocol, Some(local.ip()), local.port());
        }
    }

    /// The path that waits for packets to `local`.
    pub fn find(&self, local: Endpoint) -> Option<PathId> {
        self.0.iter().find(|(known, _)| overlaps(known, &local)).map(|(_, path)| *path)
    }
}

/// Whether one packet could be for both.
fn overlaps(a: &Endpoint, b: &Endpoint) -> bool {
    let addresses = a.ip() == b.ip() || a.ip().is_unspecified() || b.ip().is_unspecified();
    addresses && a.is_v6() == b.is_v6() && a.port() == b.port()
}

/// Enters an exact flow.
pub(crate) fn enter_flow(tables: &Tables, flow: &Between, found: Found) -> Result<(), CreateError> {
    tables.flows.insert(flow, found).map_err(|error| match error {
        FlowError::Overlap => CreateError::Overlap { local: flow.local, remote: flow.remote },
        FlowError::Full => CreateError::ClassifierFull,
    })
}

/// The part of the classifier of a protocol whose header begins with the ports and has at
/// least `header` bytes.
pub(crate) fn classify(tables: &Tables, protocol: Protocol, header: usize, view: &mut View<'_>) -> Answer {
    let [a, b, c, d, ..] = *view.bytes() else { return Answer::Pass };
    if view.bytes().len() < header {
        return Answer::Pass;
    }
    view.remote.set_port(u16::from_be_bytes([a, b]));
    view.local.set_port(u16::from_be_bytes([c, d]));
    if view.group {
        let verdict = tables.group_listener(view.local, view.remote.ip(), view.dscp);
        return verdict.filter(|_| protocol == Protocol::Udp).map_or(Answer::Pass, Answer::Found);
    }
    let flow = Between { protocol, local: view.local, remote: view.remote };
    tables.verdict_for(&flow, view.dscp, view.bytes()).map_or(Answer::Pass, Answer::Found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;
    use silk_path::classify::{Domains, Owned};

    const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

    fn path(index: u32) -> PathId {
        PathId { index, generation: 0 }
    }

    #[test]
    fn overlapping_addresses_are_refused() {
        let tables = Tables::with_room(8, 1);
        tables.configure(Owned::default(), Domains::default(), &[], &[HERE]).unwrap();
        let mut bound = Bound::default();
        let mut enter = |ip, port, n| bound.enter(&tables, Protocol::Udp, Endpoint::v4(ip, port), path(n));
        assert_eq!(enter(HERE, 53, 1), Ok(()));
        assert!(matches!(enter(Ipv4Addr::UNSPECIFIED, 53, 2), Err(CreateError::Overlap { .. })));
        assert!(matches!(enter(HERE, 53, 3), Err(CreateError::Overlap { .. })));
        assert_eq!(enter(Ipv4Addr::UNSPECIFIED, 54, 4), Ok(()));
        assert_eq!(enter(Ipv4Addr::LOCALHOST, 55, 5), Err(CreateError::NoRoute(Ipv4Addr::LOCALHOST.into())));
        assert_eq!(bound.find(Endpoint::v4(HERE, 54)), Some(path(4)));
    }

    #[test]
    fn leaving_gives_the_port_back() {
        let tables = Tables::with_room(8, 1);
        tables.configure(Owned::default(), Domains::default(), &[], &[HERE]).unwrap();
        let (mut bound, local) = (Bound::default(), Endpoint::v4(HERE, 53));
        bound.enter(&tables, Protocol::Udp, local, path(1)).unwrap();
        assert!(tables.owns_port(Protocol::Udp, HERE, 53));
        bound.leave(&tables, Protocol::Udp, local, path(1));
        assert!(!tables.owns_port(Protocol::Udp, HERE, 53) && bound.find(local).is_none());
    }
}
