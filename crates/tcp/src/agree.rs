//! What two SYNs agree on (RFC 9293 §3.7.1, RFC 7323 §2.2 and §3.2, RFC 2018 §2). An option counts
//! only when both sides sent it; sizes that would cripple the connection are raised to a floor.

use crate::config::Config;
use crate::options::Options;

/// The MSS of a peer that sent none (RFC 9293 §3.7.1, MUST-15).
const DEFAULT_MSS: u16 = 536;
/// A smaller MSS would let a peer make us spend a segment for every few octets (CVE-2019-11479);
/// options of forty bytes still leave eight octets of text.
const SMALLEST_MSS: u16 = 48;

/// The outcome of a SYN exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreed {
    /// The largest segment the peer takes, options included.
    pub(crate) peer_mss: u16,
    /// Snd.Wind.Shift and Rcv.Wind.Shift, when both sides scale.
    pub(crate) shifts: Option<(u8, u8)>,
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
    /// Told by flags and not by options (RFC 3168 §6.1.1).
    pub(crate) ecn: bool,
}

impl Agreed {
    /// What the options of `our` SYN and of the `peer`'s agree on, and on ECN.
    pub(crate) fn new(our: &Options, peer: &Options, ecn: bool) -> Self {
        Self {
            // What we would not take ourselves, for the link or the program (TCP_MAXSEG), we do not send.
            peer_mss: peer.mss.unwrap_or(DEFAULT_MSS).max(SMALLEST_MSS).min(our.mss.unwrap_or(u16::MAX)),
            shifts: peer.window_scale.zip(our.window_scale),
            sack: our.sack_permitted && peer.sack_permitted,
            timestamps: our.timestamp.is_some() && peer.timestamp.is_some(),
            ecn,
        }
    }

    /// The largest segment to send on a path that takes `mss`.
    // RFC 9293 MUST-16.
    pub(crate) fn mss(&self, mss: u16) -> u16 {
        self.peer_mss.min(mss.max(SMALLEST_MSS))
    }
}

/// What a SYN of ours offers; the timestamp's values are filled in when it is sent.
// RFC 9293 MUST-14, SHLD-5; RFC 2018 §2; RFC 1191 §3.1.
pub(crate) fn syn_options(config: &Config) -> Options {
    Options {
        mss: Some(config.mss),
        window_scale: config.window_scaling.then(|| config.window_shift()),
        sack_permitted: config.sack,
        timestamp: config.timestamps.then_some((0, 0)),
        ..Options::default()
    }
}

/// The initial congestion window (RFC 6928 §2) for `segments` of `mss` octets: no more than as many
/// of 1460.
pub(crate) fn initial_window(segments: u16, mss: u16) -> u32 {
    let (segments, mss) = (u32::from(segments), u32::from(mss));
    (segments * mss).min((segments * 1460).max(2 * mss))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_must_offer() {
        let ours = syn_options(&Config::default());
        let agreed = Agreed::new(&ours, &Options { mss: Some(1400), ..Options::default() }, false);
        let nothing = Agreed { peer_mss: 1400, shifts: None, sack: false, timestamps: false, ecn: false };
        assert_eq!(agreed, nothing);
        let agreed = Agreed::new(&ours, &ours, true);
        let everything =
            Agreed { peer_mss: 1460, shifts: Some((7, 7)), sack: true, timestamps: true, ecn: true };
        assert_eq!(agreed, everything);
    }

    // RFC 9293 MUST-15.
    #[test]
    fn an_absent_mss_is_536_and_a_tiny_one_is_raised() {
        let peer_mss = |mss| Agreed::new(&Options::default(), &Options { mss, ..Options::default() }, false);
        assert_eq!(peer_mss(None).mss(9_000), 536);
        assert_eq!(peer_mss(Some(1)).mss(9_000), 48);
    }

    #[test]
    fn the_initial_window_is_ten_ordinary_segments() {
        assert_eq!([536, 1460, 9000].map(|mss| initial_window(10, mss)), [5_360, 14_600, 18_000]);
    }
}
