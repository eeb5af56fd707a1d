//! What programs wish of their paths beyond the usual (`TCP_CONGESTION`, `IP_TTL`, …): read from
//! their slots, where nothing is believed that is out of bounds, and taken to the paths.

use crate::domain::engine::Engine;
use silk_instant::Instant;
use silk_path::{Attr, Attrs, Bell, Discovery, PathId, Wishes};
use silk_stream::{Slot, option, wish};
use silk_tcp::Algorithm;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Linux's bounds of `TCP_MAXSEG`, `TCP_SYNCNT` and `TCP_LINGER2`.
const SEGMENTS: std::ops::RangeInclusive<u32> = 88..=32_767;
const MOST_SYNS: u32 = 127;
const LONGEST_LINGER: u32 = 120;

/// Gives a new connection the wishes and options of the listening socket it came to over IPv4 or `six`, as Linux does: much may
/// come, or nothing, before the program takes it.
pub fn inherit(from: &Slot, to: &Slot, six: bool) {
    to.wishes.put_all(&from.wishes.words());
    to.service.store(service(from, six).into(), Relaxed);
    for (from, to) in option_words(from).into_iter().zip(option_words(to)) {
        to.store(from.load(Relaxed), Relaxed);
    }
}

fn option_words(slot: &Slot) -> [&AtomicU32; 6] {
    let Slot { options, keep_idle, keep_interval, keep_count, receive_limit, send_limit, .. } = slot;
    [options, keep_idle, keep_interval, keep_count, receive_limit, send_limit]
}

/// The service bits of a listening socket for what it sends over IPv4 or `six`, without those that are ECN's.
pub fn service(slot: &Slot, six: bool) -> u8 {
    let [four, over_six, ..] = slot.service.load(Relaxed).to_le_bytes();
    !3 & if six { over_six } else { four }
}

/// What a slot wishes.
pub fn of(slot: &Slot) -> Wishes {
    let (words, options) = (slot.wishes.words(), slot.options.load(Relaxed));
    let some = |place: usize| Some(words[place]).filter(|word| *word != 0);
    let rate = !(u64::from(words[wish::PACING_HIGH]) << 32 | u64::from(words[wish::PACING_LOW]));
    Wishes {
        congestion: some(wish::CONGESTION).and_then(|word| u8::try_from(word - 1).ok()),
        user_timeout: some(wish::USER_TIMEOUT),
        syn_retries: some(wish::SYN_RETRIES).map(|times| times.min(MOST_SYNS) as u8),
        linger: some(wish::LINGER).map(|word| (word - 1).min(LONGEST_LINGER)),
        max_segment: some(wish::MAX_SEGMENT).filter(|mss| SEGMENTS.contains(mss)).map(|mss| mss as u16),
        // As with Linux a rate of nothing is no limit.
        pacing_rate: Some(rate).filter(|rate| !matches!(*rate, 0 | u64::MAX)),
        quick_ack: words[wish::QUICK_ACK] == 2,
        ttl: some(wish::TTL).and_then(|ttl| u8::try_from(ttl).ok()),
        discovery: discovery(words[wish::DISCOVERY]),
        hops: some(wish::HOPS).and_then(|word| u8::try_from(word - 1).ok()),
        discovery6: discovery(words[wish::DISCOVERY6]),
        group_ttl: some(wish::GROUP_TTL).and_then(|word| u8::try_from(word - 1).ok()),
        group_hops: some(wish::GROUP_HOPS).and_then(|word| u8::try_from(word - 1).ok()),
        no_loop: options & option::NO_LOOP != 0,
        no_loop6: options & option::NO_LOOP6 != 0,
        group_link: some(wish::GROUP_LINK).and_then(|word| u16::try_from(word).ok()),
    }
}

/// What Linux's number plus one means.
fn discovery(word: u32) -> Discovery {
    match word {
        1 => Discovery::Dont,
        3 => Discovery::Do,
        4 | 5 => Discovery::Probe,
        6 => Discovery::Dont,
        _ => Discovery::Want,
    }
}

/// What of it a path must know before it sends anything.
pub fn attrs(wishes: &Wishes, mut attrs: Attrs) -> Attrs {
    if let Some(ttl) = wishes.ttl {
        attrs = attrs.with(Attr::Ttl(ttl));
    }
    if let Some(mss) = wishes.max_segment {
        attrs = attrs.with(Attr::MaxSegment(mss));
    }
    attrs
}

impl Engine {
    /// Takes the wishes of a path's socket to it, with its class's congestion control where the
    /// program wishes none, and lets the program see which it has.
    pub(crate) fn apply_wishes(&mut self, id: PathId, now: Instant) {
        if let Some(wishes) = self.wishes_now(id) {
            for bell in [Bell::Wishes(wishes), Bell::Sent] {
                self.core.bell(id, bell, now);
            }
        }
    }

    /// As [`Self::apply_wishes`], of a path that has just been made and so does as it is configured.
    pub(crate) fn apply_first_wishes(&mut self, id: PathId, now: Instant) {
        if let Some(wishes) = self.wishes_now(id).filter(|wishes| *wishes != Wishes::default()) {
            self.core.bell(id, Bell::Wishes(wishes), now);
        }
    }

    fn wishes_now(&mut self, id: PathId) -> Option<Wishes> {
        let class = self.core.paths.path(id).map_or(0, |path| usize::from(path.state.class));
        let end = self.end_of(id)?;
        let wishes = of(end.slot());
        end.limit_not_sent();
        let wishes = Wishes { congestion: self.congestion(&wishes, class), ..wishes };
        self.show_congestion(id, wishes.congestion);
        Some(wishes)
    }

    /// The congestion control of a connection, where it is not the one that all have.
    fn congestion(&self, wishes: &Wishes, class: usize) -> Option<u8> {
        let known = wishes.congestion.filter(|number| Algorithm::from_number(*number).is_some());
        let class = || self.classes.congestion(class).filter(|algorithm| *algorithm != self.usual_congestion);
        known.or_else(|| class().map(Algorithm::number))
    }

    fn show_congestion(&mut self, id: PathId, number: Option<u8>) {
        let number = number.unwrap_or(self.usual_congestion.number());
        if let Some(slot) = self.end_of(id).map(|end| end.slot()) {
            slot.congestion.store(u32::from(number) + 1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::SeqCst;

    #[test]
    fn an_empty_slot_wishes_nothing() {
        assert_eq!(of(&Slot::default()), Wishes::default());
    }

    #[test]
    fn what_a_program_scribbles_is_kept_within_bounds() {
        let slot = Slot::default();
        slot.wishes.put_all(&[u32::MAX; wish::COUNT]);
        let wild = of(&slot);
        assert_eq!((wild.congestion, wild.max_segment, wild.ttl, wild.pacing_rate), (None, None, None, None));
        assert_eq!((wild.syn_retries, wild.linger), (Some(127), Some(120)));
    }

    #[test]
    fn a_connection_inherits_what_its_listener_wished() {
        let (from, to) = (Slot::default(), Slot::default());
        from.wishes.put(wish::CONGESTION, 3);
        from.wishes.put(wish::LINGER, 1);
        from.receive_limit.store(5000, SeqCst);
        from.keep_idle.store(7, SeqCst);
        from.service.store(0xb9 | 0x48 << 8, SeqCst);
        inherit(&from, &to, false);
        assert_eq!((to.receive_limit.load(SeqCst), to.keep_idle.load(SeqCst)), (5000, 7));
        assert_eq!((to.service.load(SeqCst), service(&from, true)), (0xb8, 0x48));
        assert_eq!((of(&to).congestion, of(&to).linger), (Some(2), Some(0)));
    }
}
