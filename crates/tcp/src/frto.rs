//! F-RTO (RFC 5682): after a time-out only the first segment is sent again. If acknowledgements then go
//! on for text that was not, it had only been delayed, and the time-out was a mistake. Where there
//! are timestamps, `undo` sees that with the first acknowledgement, and this is not used.

use crate::choose::Text;
use crate::connection::Connection;
use crate::flight::Outstanding;
use crate::recovery::Phase;

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frto {
    /// Nothing is to be found out, or nothing can be any more.
    Off,
    /// The first segment was sent again, and nothing else (§2.1, step 1).
    First,
    /// It is acknowledged. New text is sent, so that what is acknowledged next tells which of the two
    /// transmissions arrived (step 2b).
    Second,
}

impl Connection {
    /// The time-out came, for the first time.
    pub(crate) fn start_frto(&mut self, first: bool) {
        let frto = if first && !self.stamps.on { Frto::First } else { Frto::Off };
        if let Some(undo) = &mut self.undo {
            undo.frto = frto;
        }
    }

    fn frto(&self) -> Frto {
        self.undo.as_ref().map_or(Frto::Off, |undo| undo.frto)
    }

    fn set_frto(&mut self, frto: Frto) {
        if let Some(undo) = &mut self.undo {
            undo.frto = frto;
        }
    }

    /// An acknowledgement was taken. `before` is what was outstanding until then.
    pub(crate) fn weigh_frto(&mut self, before: Outstanding) {
        let (frto, advanced) = (self.frto(), self.snd.una != before.una);
        if frto == Frto::Off {
            return;
        }
        if self.recovery.phase() != Phase::Loss {
            return self.set_frto(Frto::Off);
        }
        // With SACK it is certain (§3.1, step 3b); without, only the second tells (§2.1, step 3b).
        let certain =
            if self.recovery.sack() { self.recovery.original } else { frto == Frto::Second && advanced };
        match frto {
            _ if certain => {
                self.undo_recovery();
            }
            Frto::First if advanced => self.set_frto(Frto::Second),
            _ => {
                // The new text may fill the window (step 3a): what is lost goes out all the same.
                self.recovery.force |= frto == Frto::Second;
                self.set_frto(Frto::Off);
            }
        }
    }

    /// Whether new text comes before what is lost. Where there is none, there is nothing to be found
    /// out (§2.1, step 2b).
    pub(crate) fn tries_new_text(&mut self, fresh: Option<Text>) -> Option<Option<Text>> {
        if self.frto() != Frto::Second || self.recovery.phase() != Phase::Loss {
            return None;
        }
        if fresh.is_none() && self.snd.nxt == self.recovery.point {
            self.set_frto(Frto::Off);
            return None;
        }
        Some(fresh)
    }

    /// Whether F-RTO waits for its second acknowledgement.
    pub(crate) fn is_trying_new_text(&self) -> bool {
        self.frto() == Frto::Second
    }
}
