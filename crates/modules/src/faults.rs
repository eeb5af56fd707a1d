//! Faults of packets as reasons of drops; those of either IP have one name.

use silk_path::{Checksum, DropReason, Meta};
use silk_wire::{Accept, ParseError};

/// The reason to drop a packet with this fault.
pub(crate) fn reason(fault: ParseError) -> DropReason {
    match fault {
        ParseError::EthTruncated => DropReason::EthTruncated,
        ParseError::ArpTruncated => DropReason::ArpTruncated,
        ParseError::ArpUnsupported => DropReason::ArpUnsupported,
        ParseError::Ipv4Truncated => DropReason::IpTruncated,
        ParseError::Ipv4Version => DropReason::IpVersion,
        ParseError::Ipv4HeaderLength => DropReason::IpHeaderLength,
        ParseError::Ipv4TotalLength => DropReason::IpTotalLength,
        ParseError::Ipv4Checksum => DropReason::IpChecksum,
        ParseError::Ipv4Fragment => DropReason::IpFragment,
        ParseError::Ipv6Truncated => DropReason::IpTruncated,
        ParseError::Ipv6Version => DropReason::IpVersion,
        ParseError::Ipv6Length => DropReason::IpTotalLength,
        ParseError::Ipv6Extension => DropReason::IpExtension,
        ParseError::Ipv6Routing => DropReason::IpRouting,
        ParseError::Ipv6Option => DropReason::IpOption,
        ParseError::Ipv6Fragment => DropReason::IpFragment,
        ParseError::NdTruncated => DropReason::NdTruncated,
        ParseError::NdForwarded => DropReason::NdForwarded,
        ParseError::NdMalformed => DropReason::NdMalformed,
        ParseError::IcmpTruncated => DropReason::IcmpTruncated,
        ParseError::IcmpChecksum => DropReason::IcmpChecksum,
        ParseError::IcmpQuote => DropReason::IcmpQuote,
        ParseError::UdpTruncated => DropReason::UdpTruncated,
        ParseError::UdpLength => DropReason::UdpLength,
        ParseError::UdpChecksum => DropReason::UdpChecksum,
        ParseError::TcpTruncated => DropReason::TcpTruncated,
        ParseError::TcpDataOffset => DropReason::TcpDataOffset,
        ParseError::TcpChecksum => DropReason::TcpChecksum,
        ParseError::MflowTruncated => DropReason::MflowTruncated,
        ParseError::MflowVersion => DropReason::MflowVersion,
        ParseError::MflowMalformed => DropReason::MflowMalformed,
        ParseError::RtpTruncated => DropReason::RtpTruncated,
        ParseError::RtpVersion => DropReason::RtpVersion,
        ParseError::RtpControl => DropReason::RtpControl,
        ParseError::RtpPadding => DropReason::RtpPadding,
        ParseError::RtpPayloadTruncated => DropReason::RtpPayload,
        ParseError::RtpPayload => DropReason::RtpPayload,
    }
}

/// Which transport checksums are good on a message that arrived like this.
pub(crate) fn accept(meta: &Meta) -> Accept {
    match meta.checksum {
        Checksum::Verified => Accept::Verified,
        Checksum::MaybePartial => Accept::FullOrPartial,
        Checksum::Unknown | Checksum::Unsummed { .. } | Checksum::Partial { .. } => Accept::Full,
    }
}
