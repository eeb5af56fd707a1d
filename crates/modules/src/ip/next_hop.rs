//! Whom a path's packets are handed to, and the Ethernet address of that: asked of the
//! resolver, used for a while, and until there is an answer, where the peer's last packet came
//! from.

use super::{Ip, RES};
use core::net::Ipv4Addr;
use core::time::Duration;
use silk_instant::Instant;
use silk_path::{Cx, Meta, Resolution};
use silk_wire::MacAddr;

/// How long a resolved address is used before the resolver is asked again.
const FRESH: Duration = Duration::from_secs(1);
/// No address.
const NONE: [u8; 6] = [0; 6];

/// The next hop of one path.
#[derive(Default)]
pub(crate) struct NextHop {
    /// The router, or the peer itself; only with a fixed peer, else it is found for each packet.
    pub fixed: Option<Ipv4Addr>,
    /// Its Ethernet address, good until then.
    pub link: [u8; 6],
    /// Until when `link` is used; only with a fixed peer.
    pub until: Instant,
    /// Where the fixed peer's last packet came from.
    pub seen: [u8; 6],
}

impl NextHop {
    /// The link address for packets to `destination`, asked for where it is not known. `meta`
    /// says where the message that is answered came from, if one is.
    pub fn resolve(
        &mut self,
        cx: &mut Cx<'_, '_>,
        destination: Ipv4Addr,
        meta: &Meta,
    ) -> Result<[u8; 6], Resolution> {
        let now = cx.now();
        if self.fixed.is_some() && now < self.until {
            return Ok(self.link);
        }
        let routes = &cx.module::<Ip>().routes;
        if routes.is_broadcast(destination) {
            return Ok(MacAddr::BROADCAST.0);
        }
        if destination.is_multicast() {
            return Ok(multicast(destination));
        }
        let found = || routes.lookup(destination).map(|route| route.next_hop(destination));
        let hop = self.fixed.or_else(found).ok_or(Resolution::Failed)?;
        match ask(cx, hop, meta) {
            Resolution::Known(link) => {
                (self.link, self.until) = (link, now + FRESH);
                Ok(link)
            }
            // An answer goes back where the question came from, so that nobody can hold up
            // strangers by asking for neighbours that are not there.
            Resolution::Pending if self.seen != NONE => Ok(self.seen),
            Resolution::Pending if meta.link != NONE => Ok(meta.link),
            other => Err(other),
        }
    }

    /// The resolver has news: it is asked again.
    pub fn forget(&mut self) {
        self.until = Instant::ZERO;
    }
}

fn ask(cx: &mut Cx<'_, '_>, hop: Ipv4Addr, meta: &Meta) -> Resolution {
    let (now, path) = (cx.now(), cx.path());
    match cx.linked(RES) {
        Some((module, port)) => match module.resolver() {
            Some(resolver) => resolver.resolve(now, hop, path, port),
            None => Resolution::Failed,
        },
        // Nobody to ask: to the sender of what is answered, or to everyone.
        None if meta.link != NONE => Resolution::Known(meta.link),
        None => Resolution::Known(MacAddr::BROADCAST.0),
    }
}

/// The group address of a multicast destination (RFC 1112 §6.4).
fn multicast(destination: Ipv4Addr) -> [u8; 6] {
    let [_, b, c, d] = destination.octets();
    [0x01, 0x00, 0x5e, b & 0x7f, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_23_bits_of_its_own() {
        assert_eq!(multicast(Ipv4Addr::new(239, 129, 2, 3)), [1, 0, 0x5e, 1, 2, 3]);
    }
}
