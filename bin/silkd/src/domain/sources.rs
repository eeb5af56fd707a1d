//! Which groups datagram sockets of a domain have joined, and which of their sources each hears (RFC 3678,
//! and Linux's `IP_MULTICAST_ALL`).

use crate::between::names::SocketName;
use silk_modules::filter::Filter;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// What each socket that is in a group hears of it.
#[derive(Default)]
pub struct Sources(BTreeMap<SocketName, Vec<(IpAddr, Filter<IpAddr>)>>);

impl Sources {
    /// A socket hears these sources of a group from now on; nobody: it has left.
    pub fn choose(&mut self, name: SocketName, group: IpAddr, filter: Filter<IpAddr>) {
        let chosen = self.0.entry(name).or_default();
        chosen.retain(|(known, _)| *known != group);
        if !filter.is_nobody() {
            chosen.push((group, filter));
        }
        if chosen.is_empty() {
            self.0.remove(&name);
        }
    }

    /// A socket is gone.
    pub fn forget(&mut self, name: SocketName) {
        self.0.remove(&name);
    }

    /// Whether a socket hears what a source sends to a group. One that it has not joined it hears too, where others
    /// have, unless it hears what it has joined `alone`.
    pub fn hears(&self, name: SocketName, source: IpAddr, group: IpAddr, alone: bool) -> bool {
        let chosen = self.0.get(&name).and_then(|chosen| chosen.iter().find(|(known, _)| *known == group));
        chosen.map_or(!alone, |(_, filter)| filter.hears(&source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_chosen_is_heard_and_the_rest_by_who_hears_all() {
        let [one, two] = [1, 2].map(|slot| SocketName { family: 0, slot });
        let [group, other] = [1, 2].map(|n| IpAddr::from([239, 0, 0, n]));
        let [a, b] = [1, 2].map(|n| IpAddr::from([10, 0, 0, n]));
        let (mut sources, mut only) = (Sources::default(), Filter::nobody());
        only.list(a);
        sources.choose(one, group, only);
        let hears = |sources: &Sources, name, source, group| {
            [false, true].map(|alone| sources.hears(name, source, group, alone))
        };
        assert_eq!(hears(&sources, one, a, group), [true, true]);
        assert_eq!(hears(&sources, one, b, group), [false, false]);
        assert_eq!(hears(&sources, one, b, other), [true, false], "which it has not joined");
        assert_eq!(hears(&sources, two, b, group), [true, false]);
        sources.choose(one, group, Filter::everybody());
        assert_eq!(hears(&sources, one, b, group), [true, true]);
        sources.choose(one, group, Filter::nobody());
        assert_eq!((hears(&sources, one, b, group), sources.0.len()), ([true, false], 0));
        sources.choose(two, group, Filter::everybody());
        sources.forget(two);
        assert!(sources.0.is_empty());
    }
}
