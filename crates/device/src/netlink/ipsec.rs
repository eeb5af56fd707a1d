//! Linux's IPsec (ip-xfrm(8)), as much as tells whether it is there: what silk sends is not encrypted by it.

use netlink_packet_core::NLM_F_ACK;

use super::NetlinkError;
use super::line::Line;

/// `NETLINK_XFRM` (netlink.h).
const XFRM: isize = 6;
/// `XFRM_MSG_GETSPDINFO` and `XFRMA_SPD_INFO` (xfrm.h).
const GET_INFO: u16 = 0x25;
const INFO: u16 = 1;

/// How many policies say what is to be encrypted, coming in or going out.
///
/// # Errors
/// The kernel has no IPsec, or does not tell.
pub fn policies() -> Result<u32, NetlinkError> {
    let answers = Line::open(XFRM)?.ask((GET_INFO, NLM_F_ACK), [0xff; 4], &[])?;
    let all = answers.iter().flat_map(|(_, attributes)| attributes);
    let info = all.filter(|(number, _)| *number == INFO).map(|(_, value)| value);
    // Those that come in, then those that go out (`xfrmu_spdinfo`).
    let words = info.flat_map(|value| value.chunks_exact(4).take(2));
    Ok(words
        .filter_map(|word| word.first_chunk())
        .map(|word| u32::from_ne_bytes(*word))
        .fold(0, u32::saturating_add))
}
