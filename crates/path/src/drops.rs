//! Why a message was dropped. A drop is a counted reason with an owner, never an error. One
//! enum for the whole house, so that a counter has one name everywhere; a path keeps a
//! bounded list of the reasons it has seen.

use alloc::boxed::Box;
use core::fmt;

macro_rules! reasons {
    ($($(#[doc = $doc:literal])* $name:ident = $text:literal,)*) => {
        /// Why a message was dropped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum DropReason { $($(#[doc = $doc])* $name,)* }

        impl DropReason {
            /// Every reason, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The reason's name in reports.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

reasons! {
    /// The path's queue was full.
    QueueFull = "queue full",
    /// The path is gone.
    NoPath = "no such path",
    /// For a listening path, or a datagram socket without a peer, from somebody who is refused.
    Refused = "refused source",
    /// A path's memory limit, its class's, or its program's.
    NoMemory = "memory limit",
    /// No room in front for a header.
    NoHeadroom = "no headroom",
    /// Turned around into a stage that was still running.
    Reentrant = "turned around into a running stage",
    /// The end of the path has nowhere to put it.
    NoReceiver = "no receiver",
    /// The device's transmit queue was full.
    DeviceFull = "device full",
    /// The device refused it.
    DeviceRefused = "device refused",
    /// Longer than the path's MTU, and not to be cut up.
    TooBig = "too big",
    /// Classified to this path, but not for it.
    NotForPath = "not for this path",
    /// The stage has no use for such a message.
    Unexpected = "unexpected message",
    /// Shorter than an Ethernet header.
    EthTruncated = "eth: truncated",
    /// For another station.
    EthNotForUs = "eth: for another station",
    /// Of another virtual LAN, or of none where there is to be one (IEEE 802.1Q-2018 §9.6).
    EthVlan = "eth: of another VLAN",
    /// A kind no module above handles.
    EthKind = "eth: unknown kind",
    /// Shorter than an ARP packet.
    ArpTruncated = "arp: truncated",
    /// ARP for something else than IPv4 over Ethernet.
    ArpUnsupported = "arp: unsupported",
    /// An ARP packet that asks or tells nothing we may act on.
    ArpIgnored = "arp: ignored",
    /// Another station says that it has an address of ours (RFC 5227 §2.4).
    ArpConflict = "arp: another station has our address",
    /// A question after groups that is malformed, not for us or not from this link.
    GroupIgnored = "groups: ignored",
    /// Sent to a group that the program does not hear, or by a source of it that it has not chosen.
    GroupSource = "groups: not chosen",
    /// The next hop's address is not known yet and as much waits for it as may.
    ArpPending = "arp: waiting for an answer",
    /// The next hop does not answer.
    ArpFailed = "arp: no answer",
    /// Neighbour discovery cut short.
    NdTruncated = "nd: truncated",
    /// Neighbour discovery that may come from beyond the link.
    NdForwarded = "nd: from beyond the link",
    /// Neighbour discovery with a wrong option or target.
    NdMalformed = "nd: malformed",
    /// Neighbour discovery that asks or tells nothing we may act on.
    NdIgnored = "nd: ignored",
    /// Another station says, before it is ours for certain, that it has an address of ours (RFC 4862 §5.4).
    NdConflict = "nd: another station has our address",
    /// The next hop's address is not known yet and as much waits for it as may.
    NdPending = "nd: waiting for an answer",
    /// The next hop does not answer.
    NdFailed = "nd: no answer",
    /// Shorter than an IP header.
    IpTruncated = "ip: truncated",
    /// Another version than the path's.
    IpVersion = "ip: wrong version",
    /// A wrong header length.
    IpHeaderLength = "ip: wrong header length",
    /// A wrong total length.
    IpTotalLength = "ip: wrong total length",
    /// A wrong header checksum.
    IpChecksum = "ip: wrong checksum",
    /// Extension headers of IPv6 cut short, in a wrong order, or too many.
    IpExtension = "ip: wrong extension headers",
    /// A routing header that we do not follow (RFC 5095).
    IpRouting = "ip: routing header",
    /// An option that asks to be refused by who does not know it.
    IpOption = "ip: unknown option",
    /// For another host.
    IpNotForUs = "ip: for another host",
    /// A source no host can have, or our own (a land attack).
    IpBadSource = "ip: impossible source",
    /// A protocol no module above handles.
    IpProtocol = "ip: unknown protocol",
    /// No route to the destination.
    IpNoRoute = "ip: no route",
    /// To a group, of no hops or of a scope that ends with this machine (RFC 1112 §6.1, RFC 4291 §2.7).
    IpStaysHere = "ip: not beyond this machine",
    /// From an address of ours that another station has (RFC 4862 §5.4.5).
    IpConflict = "ip: another station has our address",
    /// A fragment of a wrong length.
    IpFragment = "ip: wrong fragment",
    /// A fragment that overlaps another (RFC 5722 rejects the whole datagram).
    IpFragmentOverlap = "ip: overlapping fragments",
    /// Reassembly is at its limit of memory or of datagrams.
    IpFragmentLimit = "ip: reassembly limit",
    /// Fragments of which only some say that their sender knows ECN (RFC 3168 §5.3).
    IpFragmentEcn = "ip: fragments disagree about ECN",
    /// The other fragments did not come in time.
    IpFragmentTimeout = "ip: reassembly timed out",
    /// Shorter than an ICMP header.
    IcmpTruncated = "icmp: truncated",
    /// A wrong ICMP checksum.
    IcmpChecksum = "icmp: wrong checksum",
    /// An error that quotes too little, or nothing of ours.
    IcmpQuote = "icmp: quotes nothing of ours",
    /// Over the rate limit.
    IcmpRate = "icmp: rate limit",
    /// A type a host does not answer.
    IcmpIgnored = "icmp: ignored",
    /// Shorter than a UDP header.
    UdpTruncated = "udp: truncated",
    /// A wrong UDP length.
    UdpLength = "udp: wrong length",
    /// A wrong UDP checksum.
    UdpChecksum = "udp: wrong checksum",
    /// Nobody listens at the port.
    UdpNoPort = "udp: no such port",
    /// Shorter than a TCP header.
    TcpTruncated = "tcp: truncated",
    /// A wrong data offset.
    TcpDataOffset = "tcp: wrong data offset",
    /// An option of a wrong length.
    TcpOptions = "tcp: wrong options",
    /// A wrong TCP checksum.
    TcpChecksum = "tcp: wrong checksum",
    /// Nobody listens at the port.
    TcpNoPort = "tcp: no such port",
    /// It belongs to no connection, and as many resets as may be sent have been.
    TcpResetLimit = "tcp: too many resets",
    /// Outside the receive window.
    TcpWindow = "tcp: outside the window",
    /// All of it had been received before.
    TcpDuplicate = "tcp: duplicate",
    /// A timestamp from the past (PAWS).
    TcpPaws = "tcp: old timestamp",
    /// Timestamps were agreed and there is none.
    TcpNoTimestamp = "tcp: no timestamp",
    /// No acknowledgment where one is needed.
    TcpNoAck = "tcp: no acknowledgment",
    /// An acknowledgment of what was never sent.
    TcpAckUnsent = "tcp: acknowledges the unsent",
    /// An acknowledgment too far in the past (RFC 5961).
    TcpAckOld = "tcp: acknowledgment too old",
    /// A reset outside the window (RFC 5961).
    TcpResetWindow = "tcp: reset outside the window",
    /// A reset in the window but not at its edge: challenged (RFC 5961).
    TcpBlindReset = "tcp: blind reset",
    /// A SYN on a connection: challenged (RFC 5961).
    TcpUnexpectedSyn = "tcp: unexpected SYN",
    /// A handshake's segment that acknowledges something else.
    TcpBadHandshake = "tcp: wrong handshake",
    /// A reset that ended a half-open connection.
    TcpHandshakeReset = "tcp: handshake reset",
    /// A SYN with a FIN or a reset.
    TcpSynWithFin = "tcp: SYN with FIN",
    /// Nothing a listener takes.
    TcpNotForListener = "tcp: not for a listener",
    /// A handshake's last acknowledgment while the listener waits for text.
    TcpDeferred = "tcp: accept deferred",
    /// The connection is closed.
    TcpClosed = "tcp: closed",
    /// Too many half-open connections.
    TcpBacklog = "tcp: SYN backlog full",
    /// Too many connections wait to be accepted.
    TcpAcceptQueue = "tcp: accept queue full",
    /// Out of order, and reassembly is full.
    TcpReassembly = "tcp: reassembly full",
    /// The receive buffer took none of it.
    TcpBuffer = "tcp: receive buffer full",
    /// A segment in TIME-WAIT that needs no answer.
    TcpTimeWait = "tcp: in TIME-WAIT",
    /// A reset in TIME-WAIT (RFC 1337).
    TcpTimeWaitReset = "tcp: reset in TIME-WAIT",
    /// Shorter than a packet of MFLOW.
    MflowTruncated = "mflow: truncated",
    /// A version or kind that is not known.
    MflowVersion = "mflow: unknown version",
    /// A picture type or coding that is not known.
    MflowMalformed = "mflow: malformed",
    /// Older than what was passed on, or received before.
    MflowOld = "mflow: out of order or repeated",
    /// Far beyond what was advertised: from no source that obeys.
    MflowBeyond = "mflow: beyond the window",
    /// Of a picture that is not wanted: its packet was needed for its header only.
    MflowUnwanted = "mflow: not wanted",
    /// From somebody who may not command.
    ShellUnauthorised = "shell: not from a controller",
    /// A command that is being done already.
    ShellRepeated = "shell: repeated",
    /// More commands than may wait.
    ShellBusy = "shell: too many commands",
    /// Shorter than RTP's header says.
    RtpTruncated = "rtp: truncated",
    /// Another version than 2.
    RtpVersion = "rtp: wrong version",
    /// RTCP where RTP is expected.
    RtpControl = "rtp: control packet",
    /// Padding that is not there.
    RtpPadding = "rtp: wrong padding",
    /// A payload header that is cut short or that its format does not allow.
    RtpPayload = "rtp: wrong payload header",
    /// A payload type or format other than the path's.
    RtpType = "rtp: another payload type",
    /// From another source than the one the path belongs to.
    RtpSource = "rtp: another source",
    /// Received before.
    RtpDuplicate = "rtp: duplicate",
    /// Older than what has been passed on.
    RtpOld = "rtp: too old",
    /// A jump of the sequence number that nothing has confirmed yet (RFC 3550 A.1).
    RtpJump = "rtp: jump not confirmed",
    /// A connection over Linux's own TCP that could not become a path: it was reset.
    HostRefused = "host: connection refused",
    /// A datagram that Linux's own UDP did not take.
    HostDatagram = "host: datagram refused",
    /// The daemon has no descriptor left for a connection over Linux's own TCP, which waits.
    HostDescriptors = "host: no descriptor",
    /// The program's ring is full.
    SocketFull = "socket: receive ring full",
    /// The program has shut this direction down.
    SocketShut = "socket: shut down",
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Reasons one path tells apart.
const SLOTS: usize = 6;

/// A path's drops by reason: the first six reasons it saw, and the rest in one number.
/// Most paths never drop anything, and have no memory for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drops(Option<Box<List>>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct List {
    // The first `used` slots are in use, each reason once.
    slots: [(DropReason, u32); SLOTS],
    used: u8,
    other: u32,
}

impl Default for List {
    fn default() -> Self {
        Self { slots: [(DropReason::QueueFull, 0); SLOTS], used: 0, other: 0 }
    }
}

impl Drops {
    /// Counts one drop.
    pub fn count(&mut self, reason: DropReason) {
        let List { slots, used, other } = &mut **self.0.get_or_insert_default();
        let known = usize::from(*used);
        if let Some((_, n)) = slots[..known].iter_mut().find(|(known, _)| *known == reason) {
            *n = n.saturating_add(1);
        } else if let Some(slot) = slots.get_mut(known) {
            *slot = (reason, 1);
            *used += 1;
        } else {
            *other = other.saturating_add(1);
        }
    }

    /// The reasons seen and how often, first seen first.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u32)> + '_ {
        self.0.iter().flat_map(|list| &list.slots[..usize::from(list.used)]).copied()
    }

    /// Drops for reasons beyond the list.
    pub fn other(&self) -> u32 {
        self.0.as_ref().map_or(0, |list| list.other)
    }

    /// How often for this reason.
    pub fn of(&self, reason: DropReason) -> u32 {
        self.iter().find(|(known, _)| *known == reason).map_or(0, |(_, n)| n)
    }

    /// All drops.
    pub fn total(&self) -> u64 {
        self.iter().map(|(_, n)| u64::from(n)).sum::<u64>() + u64::from(self.other())
    }
}

/// Drops of everything that ever ran in one place (a class, a domain), by reason.
#[derive(Clone, Debug)]
pub struct DropTotals([u64; DropReason::ALL.len()], u64);

impl Default for DropTotals {
    fn default() -> Self {
        Self([0; DropReason::ALL.len()], 0)
    }
}

impl DropTotals {
    /// Counts one drop that no path owns.
    pub fn count(&mut self, reason: DropReason) {
        self.0[reason as usize] += 1;
    }

    /// Adds what a path has dropped.
    pub fn add(&mut self, drops: &Drops) {
        for (reason, n) in drops.iter() {
            self.0[reason as usize] += u64::from(n);
        }
        self.1 += u64::from(drops.other());
    }

    /// The reasons that happened and how often.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL.iter().map(|reason| (*reason, self.0[*reason as usize])).filter(|(_, n)| *n > 0)
    }

    /// Drops whose reasons did not fit their path's list.
    pub fn other(&self) -> u64 {
        self.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;

    #[test]
    fn reasons_are_numbered_in_order_and_named_apart() {
        for (n, reason) in DropReason::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, n);
        }
        let names: std::collections::HashSet<_> =
            DropReason::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), DropReason::ALL.len());
    }

    #[test]
    fn the_list_is_bounded_and_loses_no_drop() {
        let mut drops = Drops::default();
        for reason in DropReason::ALL {
            drops.count(*reason);
            drops.count(*reason);
        }
        assert_eq!(drops.total(), 2 * DropReason::ALL.len() as u64);
        assert_eq!(drops.iter().count(), SLOTS);
        let mut totals = DropTotals::default();
        totals.add(&drops);
        assert_eq!(totals.iter().map(|(_, n)| n).sum::<u64>() + totals.other(), drops.total());
    }
}
