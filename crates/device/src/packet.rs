//! The `packet` device: raw frames of a Linux interface through `AF_PACKET`, with virtio-net
//! headers so that large TCP messages pass whole both ways. It needs `CAP_NET_RAW` alone,
//! also in a user namespace.
//!
//! Linux sees every frame too. So silk must use **an IP address that Linux does not have** on
//! that interface and answer ARP for it itself: for an address of its own Linux would answer
//! every connection with a reset, for one it has not it answers nothing (as long as it does
//! not forward: leave `net.ipv4.ip_forward` off there). Say the addresses in
//! [`Options::addresses`]: the socket then takes only ARP, neighbour discovery and packets to those
//! addresses, and the interface lets through what a card may filter: all groups, by which neighbours of IPv6 ask too, and
//! [`Options::mac`]. Of one VLAN, [`Options::vlan`], it takes no others: the kernel takes tags (IEEE
//! 802.1Q-2018 §9.6) out of frames before a socket sees them, but the socket's filter may ask for them,
//! so that what it has let through had that one, which is put back.

mod arrived;
mod receive;
mod tag;
mod transmit;

use std::net::IpAddr;
use std::os::fd::AsFd;

use silk_wire::eth;

use crate::bpf::Object;
use crate::sys::{self, Chooser, Filter};
use crate::{End, OpenError, Steered};

pub(crate) use receive::PacketReceive;
pub(crate) use transmit::PacketTransmit;

/// How the device is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// silk's own addresses, which Linux must not have; none: every frame is taken.
    pub addresses: Vec<IpAddr>,
    /// Addresses of IPv6 that end in this are silk's too, whatever network they are in.
    pub station: Option<[u8; 8]>,
    /// The Ethernet address that silk has instead of the interface's, which is then to let frames for it through.
    pub mac: Option<[u8; 6]>,
    /// The VLAN whose frames are taken, 1 to 4094; 0: those without a tag.
    pub vlan: u16,
    /// How many received frames may be held.
    pub buffers: u32,
    /// The longest frame that is received, in bytes. Linux coalesces TCP up to the default.
    pub longest: usize,
    /// Bytes that may wait to be received, as the kernel counts them: one message of 64 KB
    /// counts for more. Without `CAP_NET_ADMIN` it stops at `net.core.rmem_max`.
    pub waiting: i32,
    /// How to send.
    pub sending: Sending,
}

/// How frames are sent (also by the `xdp` device).
#[derive(Clone, Debug)]
pub struct Sending {
    /// Bytes that may be on their way, as the kernel counts them. Without `CAP_NET_ADMIN` it
    /// stops at `net.core.wmem_max`.
    pub buffer: i32,
    /// Sends past the queueing discipline: unshaped and unfair to Linux's own traffic, and a
    /// full hardware queue drops at once. On a veth, which has no discipline, it gains hardly anything.
    pub bypass_qdisc: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            addresses: Vec::new(),
            station: None,
            mac: None,
            vlan: 0,
            buffers: 256,
            longest: eth::HEADER + 65_535,
            waiting: 16 << 20,
            sending: Sending::default(),
        }
    }
}

impl Default for Sending {
    fn default() -> Self {
        Self { buffer: 8 << 20, bypass_qdisc: false }
    }
}

/// Opens the device on `interface`.
pub fn open(interface: &str, options: &Options) -> Result<End, OpenError> {
    Ok(End {
        receive: Box::new(PacketReceive::open(interface, options)?),
        transmit: Box::new(PacketTransmit::open(interface, &options.sending)?),
    })
}

/// Opens the device on `interface` for several domains, each with its own end: Linux asks the
/// classifier, whose tables are given, which one a packet belongs to (a fan-out of packet
/// sockets, packet(7)). What belongs to none of silk's paths arrives in the control domain.
/// It needs `CAP_BPF` as well.
pub fn open_domains(
    interface: &str,
    domains: u32,
    buckets: u32,
    options: &Options,
) -> Result<Steered, OpenError> {
    let mut object = Object::load(domains, 1, buckets, &[])?;
    let tables = object.tables()?;
    let nothing = [REFUSE];
    let receivers: Result<Vec<_>, _> =
        (0..domains).map(|_| PacketReceive::with_filter(interface, options, &nothing)).collect();
    let receivers = receivers?;
    let fds = receivers.iter().map(|receiver| receiver.socket(0));
    sys::fan_out(fds, &Chooser::Program(object.steering()?.as_fd()))
        .map_err(|error| OpenError::of(interface, "spread packets over domains", error))?;
    let mut ends = Vec::new();
    for receiver in receivers {
        // Only now: until all were members, packets would have come to the wrong ones.
        sys::filter(receiver.socket(0), &accept(options))
            .map_err(|error| OpenError::of(interface, "choose packets", error))?;
        let transmit = Box::new(PacketTransmit::open(interface, &options.sending)?);
        ends.push(End { receive: Box::new(receiver), transmit });
    }
    Ok(Steered { ends, tables })
}

const PACKET_VNET_HDR: i32 = 15;

const RETURN: u16 = 0x06;
const ACCEPT: Filter = (RETURN, 0, 0, u32::MAX);
/// What lets nothing through.
pub(crate) const REFUSE: Filter = (RETURN, 0, 0, 0);

/// The socket filter: frames of one VLAN, and with addresses only ARP and IP to those, and to
/// groups: neighbours ask through one.
fn accept(options: &Options) -> Vec<Filter> {
    let Options { addresses, station, vlan, .. } = options;
    const LOAD_WORD: u16 = 0x20;
    const LOAD_HALF: u16 = 0x28;
    const LOAD_BYTE: u16 = 0x30;
    const JUMP_EQUAL: u16 = 0x15;
    const JUMP_SET: u16 = 0x45;
    const JUMP: u16 = 0x05;
    const AND: u16 = 0x54;
    // What linux/filter.h calls SKF_AD_VLAN_TAG, …_TAG_PRESENT and …_TPID.
    const TCI: u32 = -0x1000i32 as u32 + 44;
    const HAS_TAG: u32 = -0x1000i32 as u32 + 48;
    const PROTOCOL: u32 = -0x1000i32 as u32 + 60;

    // Of a frame without a tag the VID reads as 0.
    let mut program = vec![
        (LOAD_WORD, 0, 0, HAS_TAG),
        (JUMP_EQUAL, 2, 0, 0),
        (LOAD_WORD, 0, 0, PROTOCOL),
        (JUMP_EQUAL, 0, 3, eth::TAGGED.into()),
        (LOAD_WORD, 0, 0, TCI),
        (AND, 0, 0, eth::VID.into()),
        (JUMP_EQUAL, 1, 0, u32::from(*vlan)),
        REFUSE,
    ];
    if !addresses.is_empty() {
        program.extend([(LOAD_HALF, 0, 0, 12), (JUMP_EQUAL, 0, 1, 0x0806), ACCEPT]);
        let mut six = vec![(LOAD_BYTE, 0, 0, 38), (JUMP_EQUAL, 0, 1, 0xff), ACCEPT];
        // What is for a group of stations, beside what is for us.
        let mut four = vec![(LOAD_BYTE, 0, 0, 0), (JUMP_SET, 0, 1, 1), ACCEPT, (LOAD_WORD, 0, 0, 30)];
        let [high, low] = station.map_or([0; 2], |station| {
            let (words, _) = station.as_chunks();
            [0, 1].map(|at| u32::from_be_bytes(words[at]))
        });
        if station.is_some() {
            six.extend([(LOAD_WORD, 0, 0, 46), (JUMP_EQUAL, 0, 3, high)]);
            six.extend([(LOAD_WORD, 0, 0, 50), (JUMP_EQUAL, 0, 1, low), ACCEPT]);
        }
        for &address in addresses {
            match address {
                IpAddr::V4(address) => four.extend([(JUMP_EQUAL, 0, 1, address.to_bits()), ACCEPT]),
                IpAddr::V6(address) => {
                    let octets = address.octets();
                    for (n, word) in octets.as_chunks().0.iter().enumerate() {
                        // Past the rest of this address, its acceptance included.
                        let rest = 2 * (3 - n as u8) + 1;
                        six.extend([
                            (LOAD_WORD, 0, 0, 38 + 4 * n as u32),
                            (JUMP_EQUAL, 0, rest, u32::from_be_bytes(*word)),
                        ]);
                    }
                    six.push(ACCEPT);
                }
            }
        }
        four.push(REFUSE);
        six.push(REFUSE);
        // The kind is still loaded; over a jump that reaches as far as a program may.
        program.extend([(JUMP_EQUAL, 1, 0, 0x0800), (JUMP, 0, 0, four.len() as u32)]);
        program.extend(four);
        program.extend([(JUMP_EQUAL, 1, 0, 0x86dd), REFUSE]);
        program.extend(six);
        return program;
    }
    program.push(ACCEPT);
    program
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn the_filter_grows_with_the_addresses() {
        let length = |addresses: &[IpAddr]| {
            accept(&Options { addresses: addresses.to_vec(), ..Options::default() }).len()
        };
        assert_eq!(length(&[]), 9);
        let four = IpAddr::V4(Ipv4Addr::LOCALHOST);
        assert_eq!(length(&[four, four]), 28);
        assert_eq!(length(&[four, four, IpAddr::V6(Ipv6Addr::LOCALHOST)]), 37);
        let own = Options { addresses: vec![four, four], station: Some([1; 8]), ..Options::default() };
        assert_eq!(accept(&own).len(), 33);
    }
}
