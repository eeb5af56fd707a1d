//! Whose a packet is, of either IP, once its protocol, addresses and ports are known: its flow's, a listening path's, or
//! nobody's. What the steps of the specification in [`layout`](super::layout) have in common.

use super::flow::{Between, Protocol};
use super::flows::Found;
use super::{Belongs, Tables};
use crate::Endpoint;
use core::net::IpAddr;

const UDP: usize = 8;

impl Tables {
    pub(super) fn control(&self) -> Belongs {
        Belongs::Control { domain: self.domains().control }
    }

    /// Where a packet of this flow belongs, `transport` what it has from the protocol's header on:
    /// its exact entry, or the listening path of the class it will belong to.
    pub fn whose(&self, flow: &Between, dscp: u8, transport: &[u8]) -> Option<Belongs> {
        if let Some(found) = self.flows.lookup(flow) {
            return Some(self.of_flow(flow.protocol, found, transport));
        }
        self.listener(flow.protocol, flow.local, flow.remote.ip(), dscp)
    }

    /// Where a packet belongs whose flow was found.
    #[inline]
    pub(super) fn of_flow(&self, protocol: Protocol, found: Found, transport: &[u8]) -> Belongs {
        match (protocol, transport.get(UDP..)) {
            (Protocol::Udp, Some(payload)) => self.or_discard(found, payload),
            _ => found.belongs(),
        }
    }

    /// Where a packet without an exact entry belongs.
    pub(super) fn listener(
        &self,
        protocol: Protocol,
        local: Endpoint,
        source: IpAddr,
        dscp: u8,
    ) -> Option<Belongs> {
        let owned = self.owns_port(protocol, local.ip(), local.port());
        owned.then(|| self.of_stranger(source, local.port(), dscp))
    }

    /// Where a packet for a port of ours belongs that has no exact entry.
    fn of_stranger(&self, source: IpAddr, port: u16, dscp: u8) -> Belongs {
        let domain = self.domain_for(source, port, dscp);
        if self.refuses(source) { Belongs::Refuse { domain } } else { Belongs::Listen { domain } }
    }

    /// Where a datagram to a group belongs.
    pub fn group_listener(&self, local: Endpoint, source: IpAddr, dscp: u8) -> Option<Belongs> {
        let owned = self.owns_port_of_group(Protocol::Udp, local.ip(), local.port());
        owned.then(|| self.of_stranger(source, local.port(), dscp))
    }

    /// Where an error belongs that quotes a packet of no flow: to the control domain, where a datagram
    /// socket that speaks with anybody may have sent it.
    pub(super) fn quoted_port(&self, quoted: Option<Between>) -> Option<Belongs> {
        let sent = quoted.is_some_and(|flow| {
            flow.protocol == Protocol::Udp
                && self.is_local(flow.local.ip())
                && self.owns_port(Protocol::Udp, flow.local.ip(), flow.local.port())
        });
        (sent || self.owned().icmp).then(|| self.control())
    }
}
