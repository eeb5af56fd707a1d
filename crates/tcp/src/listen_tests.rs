//! Tests of the table of half-open connections.

use super::*;
use crate::codepoint::Codepoint;
use alloc::vec::Vec;

const NOW: Instant = Instant::from_millis(1_000);
const OPEN: Admission = Admission { accept_queue_full: false, no_room: false, iss_floor: None };
const FULL: Admission = Admission { accept_queue_full: true, ..OPEN };

fn table(backlog: usize) -> SynTable<u16> {
    let config = Config { syn_cookies: false, ..Config::default() };
    SynTable::new(config, IsnSecret::new([1, 2]), backlog)
}

fn seg(flags: Flags, seq: u32, ack: SeqNumber) -> Segment<'static> {
    let options = Options::default();
    Segment {
        seq: SeqNumber::new(seq),
        ack,
        flags,
        window: 500,
        urgent: 0,
        ecn: Codepoint::NotEct,
        options,
        payload: &[],
    }
}

fn syn(seq: u32) -> Segment<'static> {
    seg(Flags::SYN, seq, SeqNumber::default())
}

/// Sends the SYN numbered 100 and answers the SYN-ACK.
fn half_open(table: &mut SynTable<u16>, key: u16) -> Header {
    match table.on_segment(NOW, key, &syn(100), OPEN) {
        ListenAction::Reply(header) => header,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_syn_is_answered_and_its_acknowledgement_establishes() {
    let mut table = table(8);
    let reply = half_open(&mut table, 1);
    assert_eq!((reply.flags, reply.ack.raw()), (Flags::SYN | Flags::ACK, 101));
    let action = table.on_segment(NOW, 1, &seg(Flags::ACK, 101, reply.seq + 1), OPEN);
    let ListenAction::Established(established) = action else { panic!("{action:?}") };
    assert_eq!((established.iss, established.irs.raw(), established.window), (reply.seq, 100, 500));
    assert!(table.is_empty());
}

#[test]
fn options_are_answered_only_when_offered() {
    let mut table = table(8);
    assert_eq!(half_open(&mut table, 1).options, Options { mss: Some(1460), ..Options::default() });
    let options = Options {
        mss: Some(1400),
        window_scale: Some(3),
        sack_permitted: true,
        timestamp: Some((55, 0)),
        ..Options::default()
    };
    let action = table.on_segment(NOW, 2, &Segment { options, ..syn(100) }, OPEN);
    let ListenAction::Reply(reply) = action else { panic!("{action:?}") };
    assert_eq!((reply.options.window_scale, reply.options.sack_permitted), (Some(7), true));
    assert_eq!(reply.options.timestamp.map(|stamp| stamp.1), Some(55));
}

// RFC 9293 MUST-42.
#[test]
fn a_full_backlog_drops_further_syns() {
    let mut table = table(2);
    half_open(&mut table, 1);
    half_open(&mut table, 2);
    assert_eq!(table.on_segment(NOW, 3, &syn(1), OPEN), ListenAction::Drop(DropReason::BacklogFull));
    assert_eq!(table.len(), 2);
}

// RFC 4987 §3.4.
#[test]
fn an_overdue_half_open_connection_makes_room_for_a_new_one() {
    let mut table = table(2);
    half_open(&mut table, 1);
    let later = NOW + Duration::from_millis(1_500);
    assert!(table.on_timeout(later).is_some());
    let reply = |table: &mut SynTable<u16>, key| table.on_segment(later, key, &syn(1), OPEN);
    assert!(matches!(reply(&mut table, 2), ListenAction::Reply(_)));
    assert!(matches!(reply(&mut table, 3), ListenAction::Reply(_)));
    assert_eq!(reply(&mut table, 4), ListenAction::Drop(DropReason::BacklogFull));
    assert!(!table.contains(&1) && table.contains(&2) && table.contains(&3));
}

#[test]
fn a_full_accept_queue_drops_syns_and_last_acknowledgements_but_forgets_nothing() {
    let mut table = table(8);
    assert_eq!(table.on_segment(NOW, 1, &syn(1), FULL), ListenAction::Drop(DropReason::AcceptQueueFull));
    let reply = half_open(&mut table, 1);
    let last = seg(Flags::ACK, 101, reply.seq + 1);
    assert_eq!(table.on_segment(NOW, 1, &last, FULL), ListenAction::Drop(DropReason::AcceptQueueFull));
    assert!(matches!(table.on_segment(NOW, 1, &last, OPEN), ListenAction::Established(_)));
}

#[test]
fn strays_are_reset_or_dropped() {
    let mut table = table(8);
    let stray = table.on_segment(NOW, 1, &seg(Flags::ACK, 5, SeqNumber::new(9)), OPEN);
    assert!(matches!(stray, ListenAction::Reset(header) if header.seq.raw() == 9));
    for (flags, why) in [
        (Flags::RST, DropReason::NotForListener),
        (Flags::FIN, DropReason::NotForListener),
        (Flags::SYN | Flags::FIN, DropReason::SynWithFin),
    ] {
        let action = table.on_segment(NOW, 1, &seg(flags, 5, SeqNumber::default()), OPEN);
        assert_eq!(action, ListenAction::Drop(why), "{flags:?}");
    }
    assert!(table.is_empty());
}

#[test]
fn the_same_syn_again_gets_the_same_answer() {
    let mut table = table(8);
    let first = half_open(&mut table, 1);
    let later = NOW + Duration::from_secs(2);
    let again = table.on_segment(later, 1, &syn(100), OPEN);
    assert!(matches!(again, ListenAction::Reply(header) if header.seq == first.seq));
    assert_eq!(table.len(), 1);
}

#[test]
fn a_repeated_syn_is_answered_with_its_own_timestamp() {
    let mut table = table(8);
    let echoed = |table: &mut SynTable<u16>, value| {
        let options = Options { timestamp: Some((value, 0)), ..Options::default() };
        match table.on_segment(NOW, 1, &Segment { options, ..syn(100) }, OPEN) {
            ListenAction::Reply(header) => header.options.timestamp.map(|stamp| stamp.1),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!([55, 66, 60].map(|value| echoed(&mut table, value)), [Some(55), Some(66), Some(66)]);
}

// RFC 9293 MUST-11.
#[test]
fn a_reset_counts_only_at_the_expected_number() {
    let mut table = table(8);
    half_open(&mut table, 1);
    let blind = table.on_segment(NOW, 1, &seg(Flags::RST, 102, SeqNumber::default()), OPEN);
    assert!(matches!(blind, ListenAction::Challenge(DropReason::BlindReset, _)));
    let outside = table.on_segment(NOW, 1, &seg(Flags::RST, 50, SeqNumber::default()), OPEN);
    assert_eq!(outside, ListenAction::Drop(DropReason::ResetOutOfWindow));
    let exact = table.on_segment(NOW, 1, &seg(Flags::RST, 101, SeqNumber::default()), OPEN);
    assert_eq!(exact, ListenAction::Drop(DropReason::HandshakeReset));
    assert!(table.is_empty());
}

// RFC 5961 §7.
#[test]
fn who_is_no_part_of_it_is_challenged_within_the_limit() {
    let mut table = table(8);
    let reply = half_open(&mut table, 1);
    let mut challenged = |now| {
        let outside = || seg(Flags::ACK, 99_999_999, reply.seq + 1);
        let answers = (0..50).map(|_| table.on_segment(now, 1, &outside(), OPEN));
        let is_one = |answer: &ListenAction| matches!(answer, ListenAction::Challenge(..));
        answers.filter(is_one).count()
    };
    assert_eq!(
        [NOW, NOW + Duration::from_secs(1), NOW + Duration::from_secs(5)].map(&mut challenged),
        [10, 0, 10]
    );
}

#[test]
fn another_syn_and_a_wrong_acknowledgement_do_not_disturb() {
    let mut table = table(8);
    let reply = half_open(&mut table, 1);
    let other = table.on_segment(NOW, 1, &syn(70_000), OPEN);
    assert!(matches!(other, ListenAction::Challenge(DropReason::UnexpectedSyn, _)));
    let wrong = table.on_segment(NOW, 1, &seg(Flags::ACK, 101, reply.seq + 2), OPEN);
    assert!(matches!(wrong, ListenAction::Reset(header) if header.seq == reply.seq + 2));
    let outside = table.on_segment(NOW, 1, &seg(Flags::ACK, 99_999_999, reply.seq + 1), OPEN);
    assert!(matches!(outside, ListenAction::Challenge(DropReason::OutOfWindow, _)));
    assert_eq!(table.len(), 1);
}

// RFC 5961 §4.2.
#[test]
fn another_syn_is_challenged_though_it_has_no_timestamp() {
    let mut table = table(8);
    let options = Options { timestamp: Some((7, 0)), ..Options::default() };
    let reply = table.on_segment(NOW, 1, &Segment { options, ..syn(100) }, OPEN);
    assert!(matches!(reply, ListenAction::Reply(header) if header.options.timestamp.is_some()), "{reply:?}");
    let other = table.on_segment(NOW, 1, &syn(70_000), OPEN);
    assert!(matches!(other, ListenAction::Challenge(DropReason::UnexpectedSyn, _)), "{other:?}");
}

// RFC 3168 §6.1.1.
#[test]
fn who_asks_for_ecn_and_then_no_longer_does_without() {
    let mut table = table(8);
    let asks = Segment { flags: Flags::SYN | Flags::ECE | Flags::CWR, ..syn(100) };
    let mut answer = |seg: &Segment| match table.on_segment(NOW, 1, seg, OPEN) {
        ListenAction::Reply(header) => header,
        other => panic!("{other:?}"),
    };
    let reply = answer(&asks);
    assert_eq!([reply.flags, answer(&asks).flags], [Flags::SYN | Flags::ACK | Flags::ECE; 2]);
    assert_eq!(answer(&syn(100)).flags, Flags::SYN | Flags::ACK);
    let action = table.on_segment(NOW, 1, &seg(Flags::ACK, 101, reply.seq + 1), OPEN);
    let ListenAction::Established(established) = action else { panic!("{action:?}") };
    assert!(!established.agreed.ecn);
}

#[test]
fn a_table_that_may_not_grow_is_as_good_as_full() {
    let mut table = table(64);
    let no_room = Admission { no_room: true, ..OPEN };
    let keys = 0..64;
    let taken = keys.map(|key| {
        let admission = if table.growth() > 0 && key > 0 { no_room } else { OPEN };
        table.on_segment(NOW, key, &syn(100), admission)
    });
    let refused = taken.filter(|action| *action == ListenAction::Drop(DropReason::BacklogFull)).count();
    assert_eq!((table.len(), refused), (4, 60));
    // Who has let its first time-out pass makes room, without a byte more.
    let (later, memory) = (NOW + Config::default().initial_rto, table.memory());
    while table.on_timeout(later).is_some() {}
    assert!(matches!(table.on_segment(later, 70, &syn(100), no_room), ListenAction::Reply(_)));
    assert_eq!((table.len(), table.memory()), (4, memory));
}

#[test]
fn an_unanswered_syn_ack_is_sent_again_with_back_off_and_then_forgotten() {
    let mut table = table(8);
    half_open(&mut table, 1);
    let mut sent = Vec::new();
    while let Some(at) = table.poll_timeout() {
        while let Some((key, header)) = table.on_timeout(at) {
            assert_eq!((key, header.flags), (1, Flags::SYN | Flags::ACK));
            sent.push((at - NOW).as_secs());
        }
    }
    assert_eq!(sent, [1, 3, 7, 15, 31]);
    assert!(table.is_empty());
}

// What a program wishes (TCP_SYNCNT) is known after the table has been made.
#[test]
fn who_may_be_asked_more_often_than_at_first_is_still_asked_in_time() {
    let config = Config { syn_ack_retries: 0, ..Config::default() };
    let mut table = SynTable::new(config, IsnSecret::new([1, 2]), 8);
    table.set_config(Config { syn_ack_retries: 9, ..table.config().clone() });
    half_open(&mut table, 1);
    let mut asked = Vec::new();
    for second in 1..60 {
        let now = NOW + Duration::from_secs(second);
        if second == 16 {
            assert!(matches!(table.on_segment(now, 2, &syn(100), OPEN), ListenAction::Reply(_)));
        }
        while let Some((key, _)) = table.on_timeout(now) {
            asked.push((key, second));
        }
    }
    let (first, second) = ([1, 3, 7, 15, 31].map(|at| (1, at)), [17, 19, 23, 31, 47].map(|at| (2, at)));
    let mut expected = [first, second].concat();
    expected.sort_by_key(|(_, at)| *at);
    asked.sort_by_key(|(key, at)| (*at, *key));
    assert_eq!(asked, expected);
}

#[test]
fn a_deferred_accept_waits_for_text_or_its_time() {
    let config = Config { defer_accept: Some(Duration::from_secs(10)), ..Config::default() };
    let mut table = SynTable::new(config, IsnSecret::new([1, 2]), 8);
    let reply = half_open(&mut table, 1);
    let bare = seg(Flags::ACK, 101, reply.seq + 1);
    assert_eq!(table.on_segment(NOW, 1, &bare, OPEN), ListenAction::Drop(DropReason::Deferred));
    // Not sent again while it only waits for text.
    assert_eq!(table.on_timeout(NOW + Duration::from_secs(1)), None);
    let text = Segment { payload: b"GET", ..bare };
    assert!(matches!(table.on_segment(NOW, 1, &text, OPEN), ListenAction::Established(_)));
    half_open(&mut table, 2);
    let late = table.on_segment(NOW + Duration::from_secs(11), 2, &bare, OPEN);
    assert!(matches!(late, ListenAction::Reset(_)), "another key has another number: {late:?}");
}

#[test]
fn the_round_trip_of_a_deferred_connection_is_that_of_its_acknowledgement() {
    let config = Config { defer_accept: Some(Duration::from_secs(10)), ..Config::default() };
    let round_trip = |again: bool| {
        let mut table = SynTable::new(config.clone(), IsnSecret::new([1, 2]), 8);
        let reply = half_open(&mut table, 1);
        if again {
            half_open(&mut table, 1);
        }
        let bare = seg(Flags::ACK, 101, reply.seq + 1);
        for millis in [20, 30] {
            table.on_segment(NOW + Duration::from_millis(millis), 1, &bare, OPEN);
        }
        let text = Segment { payload: b"GET", ..bare };
        let action = table.on_segment(NOW + Duration::from_secs(5), 1, &text, OPEN);
        let ListenAction::Established(established) = action else { panic!("{action:?}") };
        established.round_trip
    };
    assert_eq!([false, true].map(round_trip), [Some(Duration::from_millis(20)), None]);
}

#[test]
fn after_its_time_a_deferred_connection_is_handed_over_bare() {
    let config = Config { defer_accept: Some(Duration::from_secs(10)), ..Config::default() };
    let mut table = SynTable::new(config, IsnSecret::new([1, 2]), 8);
    let reply = half_open(&mut table, 1);
    let bare = seg(Flags::ACK, 101, reply.seq + 1);
    table.on_segment(NOW, 1, &bare, OPEN);
    let late = table.on_segment(NOW + Duration::from_secs(11), 1, &bare, OPEN);
    assert!(matches!(late, ListenAction::Established(_)));
}

// RFC 5681 §3.1: only where the SYN-ACK was lost.
#[test]
fn a_syn_ack_that_asks_who_was_silent_once_more_has_not_been_lost() {
    let config = Config { defer_accept: Some(Duration::from_secs(2)), ..Config::default() };
    let lost = |acknowledged: bool| {
        let mut table = SynTable::new(config.clone(), IsnSecret::new([1, 2]), 8);
        let reply = half_open(&mut table, 1);
        let bare = seg(Flags::ACK, 101, reply.seq + 1);
        if acknowledged {
            table.on_segment(NOW + Duration::from_millis(20), 1, &bare, OPEN);
        }
        let asked = (1..9).find(|seconds| table.on_timeout(NOW + Duration::from_secs(*seconds)).is_some());
        let action = table.on_segment(NOW + Duration::from_secs(9), 1, &bare, OPEN);
        let ListenAction::Established(established) = action else { panic!("{action:?}") };
        assert!(asked.is_some(), "it is sent again");
        (established.answered_again, established.round_trip)
    };
    assert_eq!([true, false].map(lost), [(false, Some(Duration::from_millis(20))), (true, None)]);
}

#[test]
fn a_reused_connection_starts_above_the_floor() {
    let floor = SeqNumber::new(0x4000_0000) + half_open(&mut table(8), 1).seq.raw();
    let admission = Admission { iss_floor: Some(floor), ..OPEN };
    let action = table(8).on_segment(NOW, 1, &syn(100), admission);
    assert!(matches!(action, ListenAction::Reply(header) if header.seq == floor));
}

#[test]
fn a_closing_listener_resets_what_is_half_open() {
    let mut table = table(8);
    let reply = half_open(&mut table, 1);
    let (key, reset) = table.drain().unwrap();
    assert_eq!((key, reset.seq, reset.flags), (1, reply.seq + 1, Flags::RST | Flags::ACK));
    assert_eq!(table.drain(), None);
}

// RFC 4987 §3.5.
#[test]
fn a_flood_is_bounded_in_memory() {
    let mut table = table(64);
    let replies = (0..10_000).filter(|key| {
        matches!(table.on_segment(NOW, *key, &syn(u32::from(*key)), OPEN), ListenAction::Reply(_))
    });
    assert_eq!(replies.count(), 64);
    assert!(table.memory() < 64 * 256, "{}", table.memory());
}

/// A full table that gives out cookies.
fn full() -> SynTable<u16> {
    let mut table = SynTable::new(Config::default(), IsnSecret::new([1, 2]), 1);
    half_open(&mut table, 1);
    table
}

fn cookie(table: &mut SynTable<u16>, key: u16, syn: &Segment) -> Header {
    match table.on_segment(NOW, key, syn, OPEN) {
        ListenAction::Cookie(header) => header,
        other => panic!("{other:?}"),
    }
}

// RFC 4987 §3.6, §3.7.
#[test]
fn a_full_table_gives_out_cookies_and_remembers_nothing() {
    let mut table = full();
    let reply = cookie(&mut table, 2, &syn(100));
    assert_eq!((reply.flags, reply.ack.raw(), table.len()), (Flags::SYN | Flags::ACK, 101, 1));
    let last = seg(Flags::ACK, 101, reply.seq + 1);
    let again = table.on_segment(NOW, 2, &last, FULL);
    assert_eq!(again, ListenAction::Drop(DropReason::AcceptQueueFull));
    let action = table.on_segment(NOW + Duration::from_secs(3), 2, &last, OPEN);
    let ListenAction::Established(established) = action else { panic!("{action:?}") };
    assert_eq!((established.iss, established.irs.raw(), established.window), (reply.seq, 100, 500));
    assert_eq!((established.agreed.peer_mss, established.agreed.sack), (536, false));
}

// RFC 4987 §3.6.
#[test]
fn a_cookie_with_a_timestamp_keeps_every_option() {
    let mut table = full();
    let offer = Options {
        mss: Some(1460),
        window_scale: Some(3),
        sack_permitted: true,
        timestamp: Some((55, 0)),
        ..Options::default()
    };
    let flags = Flags::SYN | Flags::ECE | Flags::CWR;
    let reply = cookie(&mut table, 2, &Segment { options: offer, flags, ..syn(100) });
    assert_eq!((reply.options.window_scale, reply.options.sack_permitted), (Some(7), true));
    assert_eq!(reply.flags, Flags::SYN | Flags::ACK | Flags::ECE);
    let (value, echo) = reply.options.timestamp.unwrap();
    assert_eq!(echo, 55);
    let options = Options { timestamp: Some((60, value)), ..Options::default() };
    let last = Segment { options, ..seg(Flags::ACK, 101, reply.seq + 1) };
    let action = table.on_segment(NOW, 2, &last, OPEN);
    let ListenAction::Established(established) = action else { panic!("{action:?}") };
    let agreed = Agreed { peer_mss: 1460, shifts: Some((3, 7)), sack: true, timestamps: true, ecn: true };
    assert_eq!((established.agreed, established.window, established.stamp_recent), (agreed, 500 << 3, 60));
}

// RFC 4987 §3.6.
#[test]
fn an_acknowledgement_without_a_good_cookie_is_reset() {
    let mut table = full();
    let reply = cookie(&mut table, 2, &syn(100));
    let outcome = |table: &mut SynTable<u16>, key, seg: Segment, seconds| {
        table.on_segment(NOW + Duration::from_secs(seconds), key, &seg, OPEN)
    };
    let good = seg(Flags::ACK, 101, reply.seq + 1);
    for (key, seg, seconds) in [
        (3, good, 0),
        (2, Segment { seq: good.seq + 1, ..good }, 0),
        (2, Segment { ack: good.ack + 9, ..good }, 0),
        (2, good, 128),
    ] {
        assert!(matches!(outcome(&mut table, key, seg, seconds), ListenAction::Reset(_)));
    }
    assert!(matches!(outcome(&mut table, 2, good, 0), ListenAction::Established(_)));
}

// RFC 6298 §3; RFC 7323 §4.1.
#[test]
fn the_round_trip_of_a_syn_ack_that_was_sent_again_is_told_by_its_echo() {
    let echoed = |timestamp: Option<(u32, u32)>| {
        let mut table = table(8);
        let options = Options { timestamp, ..Options::default() };
        let action = table.on_segment(NOW, 1, &Segment { options, ..syn(100) }, OPEN);
        assert!(matches!(action, ListenAction::Reply(_)));
        let now = NOW + Duration::from_secs(1);
        let (_, reply) = table.on_timeout(now).unwrap();
        let value = reply.options.timestamp.map(|(value, _)| (56, value));
        let options = Options { timestamp: value, ..Options::default() };
        let ack = Segment { options, ..seg(Flags::ACK, 101, reply.seq + 1) };
        let action = table.on_segment(now + Duration::from_millis(20), 1, &ack, OPEN);
        let ListenAction::Established(established) = action else { panic!("{action:?}") };
        (established.round_trip, established.echoed)
    };
    assert_eq!(echoed(Some((55, 0))), (None, Some(Duration::from_millis(20))));
    assert_eq!(echoed(None), (None, None));
}
