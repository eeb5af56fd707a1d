//! Which local ports silk owns, each on some of its addresses or groups or on all.

use super::flow::Protocol;
use super::layout::*;
use super::tables::Tables;
use core::net::IpAddr;
use core::sync::atomic::Ordering::{Acquire, Release};

impl Tables {
    /// Takes a port for silk: on one local address, or for one group that is heard; on all of a family, for an
    /// unspecified one; on every address with `None`. Answers whether the address is one of these.
    pub fn own_port(&self, protocol: Protocol, address: Option<IpAddr>, port: u16) -> bool {
        let Some(bits) = self.port_bits(protocol, address) else { return false };
        self.ports[usize::from(port)].fetch_or(bits, Release);
        true
    }

    /// Gives a port back to Linux, as [`Self::own_port`] took it.
    pub fn disown_port(&self, protocol: Protocol, address: Option<IpAddr>, port: u16) {
        self.disown_port_but(protocol, address, port, []);
    }

    /// The same, but for those of its addresses and groups at which others have it.
    pub fn disown_port_but(
        &self,
        protocol: Protocol,
        address: Option<IpAddr>,
        port: u16,
        others: impl IntoIterator<Item = IpAddr>,
    ) {
        let bits = |address| self.port_bits(protocol, address).unwrap_or(0);
        let kept = others.into_iter().fold(0, |kept, other| kept | bits(Some(other)));
        self.ports[usize::from(port)].fetch_and(!(bits(address) & !kept), Release);
    }

    /// Whether silk owns the port on that local address.
    pub fn owns_port(&self, protocol: Protocol, address: impl Into<IpAddr>, port: u16) -> bool {
        let owned = self.ports[usize::from(port)].load(Acquire);
        let bits = self.address_bit(address.into()).map(|bits| protocol.half(bits));
        bits.is_some_and(|bits| owned & bits != 0)
    }

    /// Whether silk hears the group and owns the port for it.
    pub fn owns_port_of_group(&self, protocol: Protocol, group: impl Into<IpAddr>, port: u16) -> bool {
        let owned = self.ports[usize::from(port)].load(Acquire);
        let bits = self.group_bit(group.into()).map(|bits| protocol.half(bits));
        bits.is_some_and(|bits| owned & bits != 0)
    }

    /// The bits of a ports word for an address, of a family for its unspecified address.
    fn port_bits(&self, protocol: Protocol, address: Option<IpAddr>) -> Option<u32> {
        let six = 0xffff & !(0xffff >> self.room6());
        let bits = match address {
            None => 0xffff,
            Some(any) if any.is_unspecified() => {
                if any.is_ipv6() {
                    six
                } else {
                    0xffff & !six
                }
            }
            Some(address) => self.address_bit(address).or_else(|| self.group_bit(address))?,
        };
        Some(protocol.half(bits))
    }
}

impl Protocol {
    /// The protocol's half of a ports word.
    fn half(self, bits: u32) -> u32 {
        if self == Self::Udp { bits << PORT_UDP_SHIFT } else { bits }
    }
}

#[cfg(test)]
mod tests {
    use super::super::configure::tests::{ALSO, HERE, tables};
    use super::*;
    use core::net::Ipv4Addr;

    #[test]
    fn a_port_is_owned_on_one_address_or_on_all() {
        let tables = tables(&[]);
        assert!(tables.own_port(Protocol::Tcp, Some(HERE.into()), 80));
        assert!(tables.own_port(Protocol::Udp, None, 53));
        assert!(!tables.own_port(Protocol::Tcp, Some(Ipv4Addr::LOCALHOST.into()), 80));
        let owns = |protocol, address, port| tables.owns_port(protocol, address, port);
        assert!(
            owns(Protocol::Tcp, HERE, 80) && !owns(Protocol::Tcp, ALSO, 80) && !owns(Protocol::Udp, HERE, 80)
        );
        assert!(owns(Protocol::Udp, HERE, 53) && owns(Protocol::Udp, ALSO, 53));
        tables.disown_port(Protocol::Udp, None, 53);
        assert!(!owns(Protocol::Udp, ALSO, 53));
    }

    #[test]
    fn a_port_is_owned_for_a_group_that_is_heard_and_kept_where_others_have_it() {
        let tables = tables(&[]);
        let any = IpAddr::from(Ipv4Addr::UNSPECIFIED);
        let [group, other] = [3, 4].map(|last| IpAddr::from(Ipv4Addr::new(239, 1, 2, last)));
        let owned = || [group, other].map(|group| tables.owns_port_of_group(Protocol::Udp, group, 5000));
        assert!(!tables.own_port(Protocol::Udp, Some(group), 5000), "nobody hears it");
        assert!(
            tables.hear(group) && tables.hear(other) && tables.own_port(Protocol::Udp, Some(group), 5000)
        );
        assert_eq!(owned(), [true, false]);
        tables.own_port(Protocol::Udp, Some(any), 5000);
        tables.disown_port_but(Protocol::Udp, Some(any), 5000, [group, HERE.into()]);
        assert_eq!(owned(), [true, false]);
        assert_eq!([HERE, ALSO].map(|at| tables.owns_port(Protocol::Udp, at, 5000)), [true, false]);
        tables.disown_port(Protocol::Udp, Some(group), 5000);
        assert_eq!(owned(), [false, false]);
    }
}
