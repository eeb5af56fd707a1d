//! What the daemon works with: the configuration, and what only the running machine can say
//! (the interface's addresses, its MTU).

use crate::classes::Classes;
use crate::scout::Recipe;
use crate::stack;
use silk_config::Config;
use silk_control::Kind;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// The settings.
pub struct Settings {
    /// The configuration they come from.
    pub config: Config,
    /// The file it was read from, for `silk reload`.
    pub file: PathBuf,
    /// The classes, with their domains.
    pub classes: Classes,
    /// The device turned out to have one receive ring for all classes.
    pub joined: bool,
    /// The local addresses that are silk's.
    pub addresses: Vec<Ipv4Addr>,
    /// Networks that are reached over silk's interface: prefix and length. Whatever is not
    /// in one of them, or behind the gateway, is Linux's to reach.
    pub networks: Vec<(Ipv4Addr, u8)>,
    /// The paths that sockets of `PF_SCOUT` can build.
    pub recipes: Vec<Recipe>,
    /// Whether a default route leads over silk's interface.
    pub default_route: bool,
    /// Bytes of the largest IP packet of the link.
    pub mtu: u16,
    /// Linux's number of the interface that it shares; zero: it shares none.
    pub interface: u32,
}

impl Settings {
    /// The settings of a configuration, before the device is known.
    pub fn new(config: Config, file: PathBuf) -> Self {
        let classes = Classes::new(&config);
        Self {
            config,
            file,
            classes,
            joined: false,
            addresses: Vec::new(),
            networks: Vec::new(),
            recipes: Vec::new(),
            default_route: false,
            mtu: 0,
            interface: 0,
        }
    }

    /// The device has one receive ring for all classes: they share a domain.
    pub fn join_classes(&mut self) {
        self.joined = true;
        self.classes.join();
    }

    /// The address that a socket bound to `address` reserves its port on. Streams can be served
    /// at every address of Linux's, so they need all of them; where silk's is its own alone,
    /// and for datagrams, there is nothing to be had from the others.
    pub fn reserve_at(&self, kind: Kind, address: Ipv4Addr) -> Ipv4Addr {
        let everywhere = kind == Kind::Stream && !stack::owns_link(&self.config);
        if address.is_unspecified() && !everywhere {
            self.addresses.first().copied().unwrap_or(address)
        } else {
            address
        }
    }

    /// The address to connect to `remote` from, or `None` when that is Linux's business.
    // RFC 9293 MUST-46.
    pub fn source_for(&self, remote: Ipv4Addr) -> Option<Ipv4Addr> {
        if remote.is_loopback()
            || remote.is_multicast()
            || remote.is_broadcast()
            || self.addresses.contains(&remote)
        {
            return None;
        }
        let reached = self.default_route
            || self.networks.iter().any(|(prefix, length)| {
                let mask = u32::MAX.checked_shl(32 - u32::from(*length)).unwrap_or(0);
                remote.to_bits() & mask == prefix.to_bits() & mask
            });
        self.addresses.first().copied().filter(|_| reached)
    }

    /// How many waiting threads ordinary connections leave for higher classes, in a family
    /// of `threads`: none where there are few, or nothing to keep them for.
    pub fn reserve(&self, threads: usize) -> u32 {
        let worth_it = self.config.scheduler.extend && self.classes.domains() > 1;
        if worth_it && threads >= 8 { 2 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(device: &str) -> Settings {
        let text = format!("[device]\n{device}\n[[class]]\nname = \"all\"\ndefault = true\n");
        let config = Config::parse("test", &text).unwrap_or_else(|faults| panic!("{faults}"));
        Settings { addresses: vec![Ipv4Addr::new(10, 0, 0, 1)], ..Settings::new(config, PathBuf::new()) }
    }

    #[test]
    fn a_stream_port_of_every_address_is_reserved_at_all_of_linuxs_where_it_shares_the_interface() {
        let (any, own) = (Ipv4Addr::UNSPECIFIED, Ipv4Addr::new(10, 0, 0, 1));
        let shared = settings("kind = \"xdp\"\ninterface = \"eth0\"");
        assert_eq!([Kind::Stream, Kind::Datagram].map(|kind| shared.reserve_at(kind, any)), [any, own]);
        assert_eq!(shared.reserve_at(Kind::Stream, own), own);
        let alone = settings("kind = \"tap\"\ninterface = \"tap0\"\naddress = \"10.0.0.1/24\"");
        assert_eq!(alone.reserve_at(Kind::Stream, any), own);
    }

    #[test]
    fn this_machine_is_reached_over_linux() {
        let settings = Settings { default_route: true, ..settings("interface = \"eth0\"") };
        let here = [Ipv4Addr::LOCALHOST, Ipv4Addr::new(10, 0, 0, 1)];
        assert_eq!(here.map(|address| settings.source_for(address)), [None, None]);
        assert!(settings.source_for(Ipv4Addr::new(192, 0, 2, 1)).is_some());
    }
}
