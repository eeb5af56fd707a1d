//! Explicit congestion notification (RFC 3168): routers mark packets instead of dropping them, the
//! receiver echoes the mark until the sender says that it has slowed down. New text alone is sent
//! as capable: not what is sent again, no probes, no acknowledgements, no SYNs (§6.1.4 to §6.1.6), and
//! nothing of a connection with BBR, which has no answer to a mark. The peer's marks are echoed there, too.
//! Whether it is used is agreed on by the SYNs; by default we agree when asked and never ask.

use crate::codepoint::Codepoint;
use crate::segment::Flags;
use crate::seq::SeqNumber;

/// When connections use ECN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// Never.
    Off,
    /// When the peer asks for it.
    #[default]
    Accept,
    /// We ask for it, too.
    Ask,
}

/// Both bits on a SYN: an ECN-setup SYN (§6.1.1).
const SETUP: Flags = Flags::from_bits(Flags::ECE.bits() | Flags::CWR.bits());

impl Ecn {
    /// What our first SYN says. One that was lost goes out again without: the path may not like it
    /// (§6.1.1.1).
    // RFC 3168 §6.1.1.
    pub(crate) fn syn(self, again: bool) -> Flags {
        if self == Self::Ask && !again { SETUP } else { Flags::NONE }
    }

    /// Whether we agree to a peer's SYN.
    // RFC 3168 §6.1.1.
    pub(crate) fn agrees_to_syn(self, flags: Flags) -> bool {
        self != Self::Off && flags.contains(SETUP)
    }

    /// Whether the answer to our SYN is an agreement: a SYN-ACK with ECE and without CWR.
    // RFC 3168 §6.1.1.
    pub(crate) fn agrees_to_syn_ack(self, flags: Flags) -> bool {
        self == Self::Ask && flags.contains(Flags::ECE) && !flags.contains(Flags::CWR)
    }
}

/// How far it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Not,
    /// Marks are heeded, but no text of ours can be marked: our SYN was repeated without asking, and the
    /// peer has agreed to the one before (§6.1.1).
    Heeded,
    Fully,
}

/// What a connection remembers of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notification {
    pub(crate) wanted: Ecn,
    agreed: Use,
    /// CE came: acknowledgements carry ECE until CWR comes (§6.1.3).
    echo: bool,
    /// The next new text carries CWR (§6.1.2).
    reduced: bool,
    /// No echo counts until this is acknowledged: one reaction in a round trip.
    point: SeqNumber,
}

impl Notification {
    pub(crate) const fn new(wanted: Ecn, iss: SeqNumber) -> Self {
        Self { wanted, agreed: Use::Not, echo: false, reduced: false, point: iss }
    }

    /// What the SYNs agreed on; `repeated` when ours left again without asking.
    // RFC 3168 §6.1.1.
    pub(crate) const fn agree(&mut self, agreed: bool, repeated: bool) {
        self.agreed = match (agreed, repeated) {
            (false, _) => Use::Not,
            (true, true) => Use::Heeded,
            (true, false) => Use::Fully,
        };
    }

    /// Whether both ends have agreed.
    pub(crate) const fn is_on(&self) -> bool {
        !matches!(self.agreed, Use::Not)
    }

    /// Whether an acceptable segment needs a look from here.
    pub(crate) const fn concerns(&self, codepoint: Codepoint) -> bool {
        self.is_on() && matches!(codepoint, Codepoint::Ce)
    }

    /// A segment with text came, in the window (§6.1.3; §6.1.5 for what lies outside).
    // RFC 9293 SHLD-8; RFC 3168 §6.1.3, §6.1.5.
    pub(crate) fn on_text(&mut self, flags: Flags, codepoint: Codepoint) {
        if flags.contains(Flags::CWR) {
            self.echo = false;
        }
        self.echo |= self.concerns(codepoint);
    }

    /// Whether an acknowledgement up to `ack` is to be taken as a sign of congestion (§6.1.2).
    // RFC 3168 §6.1.2.
    pub(crate) fn is_echo(&self, flags: Flags, ack: SeqNumber) -> bool {
        self.says_mark(flags) && ack.after(self.point)
    }

    /// Whether an acknowledgement tells of a mark, of which the window does not grow (§6.1.2).
    // RFC 3168 §6.1.2.
    pub(crate) const fn says_mark(&self, flags: Flags) -> bool {
        self.is_on() && flags.contains(Flags::ECE)
    }

    /// SND.UNA is now `una`: `point` is kept near, so that it never comes to lie half the circle
    /// away.
    pub(crate) fn advance(&mut self, una: SeqNumber) {
        self.point = self.point.max(una - 1);
    }

    /// The congestion window was reduced, for whatever reason, when `nxt` was to be sent next.
    pub(crate) fn on_reduced(&mut self, nxt: SeqNumber) {
        (self.reduced, self.point) = (self.agreed == Use::Fully, nxt);
    }

    /// What every acknowledgement says.
    // RFC 3168 §6.1.3.
    pub(crate) const fn flags(&self) -> Flags {
        if self.echo { Flags::ECE } else { Flags::NONE }
    }

    /// Whether the next new text must say that the window was reduced.
    pub(crate) const fn owes_cwr(&self) -> bool {
        self.reduced
    }

    /// New text leaves; what it says beside [`Notification::flags`].
    // RFC 3168 §6.1.2.
    pub(crate) fn take_cwr(&mut self) -> Flags {
        if core::mem::take(&mut self.reduced) { Flags::CWR } else { Flags::NONE }
    }

    /// The codepoint of a transmission; `fresh` when it is text that was never sent, of a connection that heeds marks.
    // RFC 3168 §6.1.2, §6.1.5.
    pub(crate) const fn codepoint(&self, fresh: bool) -> Codepoint {
        if matches!(self.agreed, Use::Fully) && fresh { Codepoint::Ect0 } else { Codepoint::NotEct }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seq(raw: u32) -> SeqNumber {
        SeqNumber::new(raw)
    }

    fn agreed() -> Notification {
        Notification { agreed: Use::Fully, ..Notification::new(Ecn::Ask, seq(0)) }
    }

    // RFC 3168 §6.1.1.
    #[test]
    fn only_who_wants_it_agrees_and_only_who_asks_is_answered() {
        let setup = Flags::SYN | SETUP;
        assert_eq!(
            [Ecn::Off, Ecn::Accept, Ecn::Ask].map(|ecn| ecn.agrees_to_syn(setup)),
            [false, true, true]
        );
        assert!(!Ecn::Ask.agrees_to_syn(Flags::SYN | Flags::ECE));
        let answer = Flags::SYN | Flags::ACK | Flags::ECE;
        let agreed = [Ecn::Off, Ecn::Accept, Ecn::Ask].map(|ecn| ecn.agrees_to_syn_ack(answer));
        assert_eq!(agreed, [false, false, true]);
        // Some reflect whatever a SYN says.
        assert!(!Ecn::Ask.agrees_to_syn_ack(answer | Flags::CWR));
    }

    // RFC 3168 §6.1.3.
    #[test]
    fn a_mark_is_echoed_until_the_peer_has_slowed_down() {
        let mut ecn = agreed();
        ecn.on_text(Flags::ACK, Codepoint::Ce);
        ecn.on_text(Flags::ACK, Codepoint::Ect0);
        assert_eq!(ecn.flags(), Flags::ECE);
        ecn.on_text(Flags::ACK | Flags::CWR, Codepoint::Ect0);
        assert_eq!(ecn.flags(), Flags::NONE);
        ecn.on_text(Flags::ACK | Flags::CWR, Codepoint::Ce);
        assert_eq!(ecn.flags(), Flags::ECE);
    }

    #[test]
    fn an_echo_counts_once_in_a_round_trip() {
        let (mut ecn, echo) = (agreed(), Flags::ACK | Flags::ECE);
        assert!(ecn.is_echo(echo, seq(10)));
        ecn.on_reduced(seq(100));
        assert!(!ecn.is_echo(echo, seq(20)) && !ecn.is_echo(echo, seq(100)));
        assert!(!ecn.is_echo(Flags::ACK, seq(101)) && ecn.is_echo(echo, seq(101)));
        ecn.advance(seq(2_000_000_000));
        ecn.advance(seq(3_000_000_000));
        assert!(ecn.is_echo(echo, seq(3_000_000_000)));
    }

    #[test]
    fn without_an_agreement_marks_and_echoes_mean_nothing() {
        let mut ecn = Notification::new(Ecn::Accept, seq(0));
        ecn.on_text(Flags::ACK, Codepoint::Ce);
        ecn.on_reduced(seq(5));
        assert_eq!(
            (ecn.flags(), ecn.owes_cwr(), ecn.codepoint(true)),
            (Flags::NONE, false, Codepoint::NotEct)
        );
        assert!(!ecn.is_echo(Flags::ECE, seq(10)));
    }
}
