//! The state machine's reasons to drop as the house's: one for one.

use silk_path::DropReason;
use silk_tcp::DropReason as Tcp;

/// The reason under which a path counts it.
pub(super) fn reason(reason: Tcp) -> DropReason {
    match reason {
        Tcp::Closed => DropReason::TcpClosed,
        Tcp::OutOfWindow => DropReason::TcpWindow,
        Tcp::Duplicate => DropReason::TcpDuplicate,
        Tcp::OldTimestamp => DropReason::TcpPaws,
        Tcp::MissingTimestamp => DropReason::TcpNoTimestamp,
        Tcp::NoAck => DropReason::TcpNoAck,
        Tcp::AckOfUnsent => DropReason::TcpAckUnsent,
        Tcp::AckTooOld => DropReason::TcpAckOld,
        Tcp::ResetOutOfWindow => DropReason::TcpResetWindow,
        Tcp::BlindReset => DropReason::TcpBlindReset,
        Tcp::UnexpectedSyn => DropReason::TcpUnexpectedSyn,
        Tcp::BadHandshake => DropReason::TcpBadHandshake,
        Tcp::HandshakeReset => DropReason::TcpHandshakeReset,
        Tcp::ReassemblyFull => DropReason::TcpReassembly,
        Tcp::NoRoom => DropReason::TcpBuffer,
        Tcp::BacklogFull => DropReason::TcpBacklog,
        Tcp::AcceptQueueFull => DropReason::TcpAcceptQueue,
        Tcp::SynWithFin => DropReason::TcpSynWithFin,
        Tcp::NotForListener => DropReason::TcpNotForListener,
        Tcp::Deferred => DropReason::TcpDeferred,
        Tcp::ResetInTimeWait => DropReason::TcpTimeWaitReset,
        Tcp::InTimeWait => DropReason::TcpTimeWait,
    }
}
