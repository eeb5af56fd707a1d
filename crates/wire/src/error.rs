//! What can be wrong with a packet: one variant per fault, so that a drop counter names it.
//! Never carries bytes of the packet.

use core::fmt;

/// A fault found while parsing a packet. Always the sender's (or the network's), never ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParseError {
    /// Shorter than an Ethernet header.
    EthTruncated,
    /// Shorter than an ARP packet for IPv4 over Ethernet.
    ArpTruncated,
    /// Not ARP for IPv4 over Ethernet (RFC 826), or an unknown operation.
    ArpUnsupported,
    /// Shorter than an IPv4 header.
    Ipv4Truncated,
    /// The version is not 4.
    Ipv4Version,
    /// The header length is below 20 bytes or beyond the packet.
    Ipv4HeaderLength,
    /// The total length is below the header's or beyond the packet.
    Ipv4TotalLength,
    /// The header checksum is wrong.
    Ipv4Checksum,
    /// A fragment whose length is no multiple of 8 though more follow, or beyond 65535 bytes.
    Ipv4Fragment,
    /// Shorter than an IPv6 header.
    Ipv6Truncated,
    /// The version is not 6.
    Ipv6Version,
    /// The payload length is beyond the packet.
    Ipv6Length,
    /// Extension headers cut short, in a wrong order, or more than a host looks at.
    Ipv6Extension,
    /// A routing header of type 0, or with hops left that we do not make.
    Ipv6Routing,
    /// An option cut short, or one that asks to be refused by who does not know it.
    Ipv6Option,
    /// A fragment whose length is no multiple of 8 though more follow, or beyond 65535 bytes.
    Ipv6Fragment,
    /// Shorter than a message of neighbour discovery.
    NdTruncated,
    /// Neighbour discovery with a hop limit below 255 or a code: it may come from beyond the link.
    NdForwarded,
    /// Neighbour discovery with a wrong option or target.
    NdMalformed,
    /// Shorter than an ICMP header.
    IcmpTruncated,
    /// The ICMP checksum is wrong.
    IcmpChecksum,
    /// An ICMP error that does not quote enough of the packet it is about.
    IcmpQuote,
    /// Shorter than a UDP header.
    UdpTruncated,
    /// The UDP length is below 8 or beyond the packet.
    UdpLength,
    /// The UDP checksum is wrong.
    UdpChecksum,
    /// Shorter than a TCP header.
    TcpTruncated,
    /// The data offset is below 5 words or beyond the segment.
    TcpDataOffset,
    /// The TCP checksum is wrong.
    TcpChecksum,
    /// Shorter than a packet of MFLOW.
    MflowTruncated,
    /// A version or kind of MFLOW's packets that is not known.
    MflowVersion,
    /// A picture type or coding that is not known.
    MflowMalformed,
    /// Shorter than RTP's header says it is.
    RtpTruncated,
    /// The RTP version is not 2.
    RtpVersion,
    /// RTCP where RTP is expected.
    RtpControl,
    /// No padding, or more than there is, where RTP's header says there is some.
    RtpPadding,
    /// Shorter than the header of its payload format.
    RtpPayloadTruncated,
    /// A payload header that its format does not allow.
    RtpPayload,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EthTruncated => "truncated Ethernet header",
            Self::ArpTruncated => "truncated ARP packet",
            Self::ArpUnsupported => "ARP for something else than IPv4 over Ethernet",
            Self::Ipv4Truncated => "truncated IPv4 header",
            Self::Ipv4Version => "IP version is not 4",
            Self::Ipv4HeaderLength => "wrong IPv4 header length",
            Self::Ipv4TotalLength => "wrong IPv4 total length",
            Self::Ipv4Checksum => "wrong IPv4 header checksum",
            Self::Ipv4Fragment => "wrong IPv4 fragment length",
            Self::Ipv6Truncated => "truncated IPv6 header",
            Self::Ipv6Version => "IP version is not 6",
            Self::Ipv6Length => "wrong IPv6 payload length",
            Self::Ipv6Extension => "wrong IPv6 extension headers",
            Self::Ipv6Routing => "IPv6 routing header",
            Self::Ipv6Option => "IPv6 option that is not known",
            Self::Ipv6Fragment => "wrong IPv6 fragment length",
            Self::NdTruncated => "truncated neighbour discovery",
            Self::NdForwarded => "neighbour discovery from beyond the link",
            Self::NdMalformed => "malformed neighbour discovery",
            Self::IcmpTruncated => "truncated ICMP header",
            Self::IcmpChecksum => "wrong ICMP checksum",
            Self::IcmpQuote => "ICMP error quotes too little",
            Self::UdpTruncated => "truncated UDP header",
            Self::UdpLength => "wrong UDP length",
            Self::UdpChecksum => "wrong UDP checksum",
            Self::TcpTruncated => "truncated TCP header",
            Self::TcpDataOffset => "wrong TCP data offset",
            Self::TcpChecksum => "wrong TCP checksum",
            Self::MflowTruncated => "truncated MFLOW packet",
            Self::MflowVersion => "MFLOW packet of another version",
            Self::MflowMalformed => "malformed MFLOW packet",
            Self::RtpTruncated => "truncated RTP header",
            Self::RtpVersion => "RTP version is not 2",
            Self::RtpControl => "RTCP where RTP is expected",
            Self::RtpPadding => "wrong RTP padding",
            Self::RtpPayloadTruncated => "truncated RTP payload header",
            Self::RtpPayload => "wrong RTP payload header",
        })
    }
}

impl core::error::Error for ParseError {}
