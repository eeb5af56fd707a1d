//! The classifier (Scout §3.4): packet → path, without side effects. Every protocol module
//! contributes a partial specification ([`Module::classify`](crate::Module::classify)); the
//! same specification is compiled into tables that user space ([`Tables`]) and the XDP
//! program read alike. A property test demands the same answers of all three.

mod addresses;
mod configure;
mod discard;
mod fields;
mod fingerprint;
mod flow;
mod flows;
mod homes;
pub mod layout;
mod owner;
mod ports;
mod refused;
mod rules;
pub(crate) mod spec;
mod spec6;
mod store;
mod tables;

pub use discard::{Filter, Framed, Taken};
pub use flow::{Between, Flow, Key, Protocol};
pub use flows::{FlowError, Flows, Found};
pub use refused::Refused;
pub use rules::ClassRule;
pub use spec6::skip_extensions;
pub use store::{Store32, Store64};
pub use tables::{Domains, Owned, Tables, TooMany};

use crate::Endpoint;

/// Where a packet belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Belongs {
    /// To this path of this domain.
    Path {
        /// The domain.
        domain: u8,
        /// The path's index.
        index: u32,
    },
    /// To the listening (or unconnected) path of this domain.
    Listen {
        /// The domain.
        domain: u8,
    },
    /// A fragment: to this domain's path that leads up to IP.
    Fragment {
        /// The domain.
        domain: u8,
    },
    /// ARP or ICMP: to this domain's control path.
    Control {
        /// The domain.
        domain: u8,
    },
    /// Of this path, which does not want it: dropped where it is classified.
    Discard {
        /// The domain.
        domain: u8,
        /// The path's index.
        index: u32,
    },
    /// For the listening (or unconnected) path of this domain, from somebody who is refused: dropped where it is classified.
    Refuse {
        /// The domain.
        domain: u8,
    },
    /// To Linux: no path owns it.
    Pass,
}

impl Belongs {
    /// It, as the XDP program writes it in front of a frame; 0 for what it
    /// does not hand over.
    pub fn hint(self) -> u32 {
        use layout::*;
        let with = |domain: u8, hint: u32| u32::from(domain) << DOMAIN_SHIFT | hint;
        match self {
            Self::Path { domain, index } => VALUE_VALID | with(domain, index),
            Self::Listen { domain } => with(domain, HINT_LISTEN),
            Self::Fragment { domain } => with(domain, HINT_FRAGMENT),
            Self::Control { domain } => with(domain, HINT_CONTROL),
            Self::Discard { .. } | Self::Refuse { .. } | Self::Pass => 0,
        }
    }

    /// Reads what the XDP program wrote in front of a frame; `None` where it says nothing.
    pub fn from_hint(hint: u32) -> Option<Self> {
        use layout::*;
        let domain = (hint >> DOMAIN_SHIFT & DOMAIN_MASK) as u8;
        if hint & VALUE_VALID != 0 {
            return Some(Found::from_value(hint).belongs());
        }
        match hint & 0xff {
            HINT_LISTEN => Some(Self::Listen { domain }),
            HINT_FRAGMENT => Some(Self::Fragment { domain }),
            HINT_CONTROL => Some(Self::Control { domain }),
            _ => None,
        }
    }

    /// The domain whose ring the packet goes to.
    pub fn domain(self) -> Option<u8> {
        match self {
            Self::Path { domain, .. }
            | Self::Listen { domain }
            | Self::Fragment { domain }
            | Self::Control { domain } => Some(domain),
            Self::Discard { .. } | Self::Refuse { .. } | Self::Pass => None,
        }
    }
}

/// A module's answer to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is known where the packet belongs.
    Found(Belongs),
    /// Ask the module above: the one at this service that is known by this protocol.
    Ask {
        /// The service to ask through.
        service: u8,
        /// Ethernet's kind or IP's protocol; `None` where only one module can be there.
        protocol: Option<u16>,
    },
    /// No path owns it.
    Pass,
}

/// A packet as the modules look at it: each moves the view behind its own header.
#[derive(Clone, Copy, Debug)]
pub struct View<'p> {
    frame: &'p [u8],
    // start <= end <= frame.len()
    start: usize,
    end: usize,
    /// The sender; filled in on the way.
    pub remote: Endpoint,
    /// The receiver; filled in on the way.
    pub local: Endpoint,
    /// The differentiated services code point; filled in by IP.
    pub dscp: u8,
    /// It was sent to a group of stations; filled in by ETH.
    pub group: bool,
    /// The device it came over.
    pub device: u8,
}

impl<'p> View<'p> {
    /// The whole frame, which came over this device.
    pub fn new(frame: &'p [u8], device: u8) -> Self {
        let nowhere = crate::message::NOWHERE;
        let (start, end) = (0, frame.len());
        Self { frame, start, end, remote: nowhere, local: nowhere, dscp: 0, group: false, device }
    }

    /// What has not been looked at.
    pub fn bytes(&self) -> &'p [u8] {
        &self.frame[self.start..self.end]
    }

    /// Moves behind the first `n` bytes.
    pub fn advance(&mut self, n: usize) {
        self.start = self.end.min(self.start + n);
    }

    /// Leaves out what is behind the next `n` bytes.
    pub fn truncate(&mut self, n: usize) {
        self.end = self.end.min(self.start + n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_reads_as_it_was_written() {
        for belongs in [
            Belongs::Path { domain: 63, index: 0 },
            Belongs::Path { domain: 0, index: layout::INDEX_LISTEN - 1 },
            Belongs::Listen { domain: 5 },
            Belongs::Fragment { domain: 6 },
            Belongs::Control { domain: 7 },
        ] {
            assert_eq!(Belongs::from_hint(belongs.hint()), Some(belongs));
        }
        for none in [Belongs::Pass, Belongs::Refuse { domain: 5 }, Belongs::Discard { domain: 5, index: 9 }] {
            assert_eq!(Belongs::from_hint(none.hint()), None);
        }
        assert_eq!(Belongs::from_hint(0x0100_00ff), None, "an unknown hint says nothing");
    }
}
