use super::*;
use alloc::vec::Vec;
use proptest::prelude::*;

const CLIP: Piece = Piece { picture: 0, kind: 1, first: true, last: true };

fn millis(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn free() -> SourceOptions {
    SourceOptions { sending: Sending::Free, sequence: 100, ..SourceOptions::default() }
}

/// What the player says of a packet it has processed at once.
fn word(of: &Data, room: u32) -> Advertisement {
    Advertisement {
        super_packet: 4,
        processed: of.sequence,
        highest: of.sequence.wrapping_add(room),
        clock: of.clock,
        ..Advertisement::default()
    }
}

fn bytes(said: &Advertisement) -> [u8; mflow::ADVERTISEMENT] {
    let mut bytes = [0; mflow::ADVERTISEMENT];
    said.emit(&mut bytes);
    bytes
}

/// Sends all that may be sent now.
fn burst(source: &mut Source, now: Instant) -> Vec<Data> {
    core::iter::from_fn(|| match source.next(now, Some(&CLIP)) {
        Act::Send(data) => Some(data),
        _ => None,
    })
    .collect()
}

fn numbers(sent: &[Data]) -> Vec<u32> {
    sent.iter().map(|data| data.sequence).collect()
}

#[test]
fn two_packets_are_sent_before_a_word_is_heard_and_then_what_is_advertised() {
    let mut source = Source::new(free(), millis(0));
    let sent = burst(&mut source, millis(0));
    assert_eq!(numbers(&sent), [100, 101]);
    assert!(source.hear(millis(10), &bytes(&word(&sent[0], 5))));
    assert_eq!(numbers(&burst(&mut source, millis(10))), [102, 103, 104, 105]);
    assert_eq!(source.figures().outstanding, 5);
}

#[test]
fn the_last_of_a_super_packet_asks_for_a_word() {
    let mut source = Source::new(free(), millis(0));
    let sent = burst(&mut source, millis(0));
    source.hear(millis(1), &bytes(&word(&sent[1], 10)));
    let asks: Vec<bool> = burst(&mut source, millis(1)).iter().map(|data| data.ends_super).collect();
    assert_eq!(asks, [false, false, false, true, false, false, false, true, false, true]);
}

#[test]
fn the_round_trip_is_measured_without_the_time_the_player_held_the_packet() {
    let mut source = Source::new(free(), millis(0));
    let sent = burst(&mut source, millis(0));
    source.hear(millis(30), &bytes(&Advertisement { held: 10_000, ..word(&sent[0], 2) }));
    assert_eq!(source.figures().round_trip, Duration::from_millis(20));
    assert_eq!(burst(&mut source, millis(31))[0].round_trip, 20_000, "the player is told");
    source.hear(millis(40), &bytes(&Advertisement { held: u32::MAX, ..word(&sent[1], 2) }));
    assert_eq!(source.figures().round_trip, Duration::from_millis(20));
}

#[test]
fn what_is_forged_or_old_changes_nothing() {
    let mut source = Source::new(free(), millis(0));
    let sent = burst(&mut source, millis(0));
    source.hear(millis(1), &bytes(&word(&sent[1], 2)));
    let more = burst(&mut source, millis(1));
    let before = source.figures();
    let forged = [
        Advertisement { clock: sent[1].clock.wrapping_add(1), ..word(&sent[1], 500) },
        Advertisement { stop: true, clock: 7, ..word(&more[0], 0) },
        word(&sent[0], 500),
        Advertisement { processed: 104, highest: 900, ..word(&more[1], 0) },
        Advertisement { processed: 99, ..word(&sent[0], 500) },
    ];
    for said in forged {
        assert!(!source.hear(millis(2), &bytes(&said)), "{said:?}");
    }
    assert!(!source.hear(millis(2), b"") && !source.hear(millis(2), &[0x10; 40]));
    assert_eq!(source.figures(), SourceFigures { ignored: before.ignored + 7, ..before });
    assert!(burst(&mut source, millis(2)).is_empty());
}

#[test]
fn a_window_is_never_taken_back_and_never_huge() {
    let mut source = Source::new(free(), millis(0));
    let sent = burst(&mut source, millis(0));
    source.hear(millis(1), &bytes(&word(&sent[0], 4)));
    source.hear(millis(1), &bytes(&word(&sent[1], 0)));
    assert_eq!(numbers(&burst(&mut source, millis(1))), [102, 103, 104]);
    source.hear(millis(1), &bytes(&word(&sent[1], u32::MAX / 2)));
    assert_eq!(burst(&mut source, millis(1)).len(), MOST as usize - 3);
}

#[test]
fn pictures_leave_at_their_rate_and_packets_spread_over_it() {
    let sending = Sending::At(Rate::from_millis(10_000).unwrap());
    let mut source = Source::new(SourceOptions { sending, ..free() }, millis(0));
    let (mut now, mut left) = (millis(0), Vec::new());
    for number in 0..12u32 {
        let (picture, nth) = (number / 4, number % 4);
        let piece = Piece { picture, kind: 1, first: nth == 0, last: nth == 3 };
        loop {
            match source.next(now, Some(&piece)) {
                Act::Send(data) => {
                    left.push(now.millis());
                    source.hear(now, &bytes(&word(&data, 50)));
                    break;
                }
                Act::Wait(at) => now = at,
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(left, [0, 0, 0, 0, 100, 125, 150, 175, 200, 225, 250, 275]);
}

#[test]
fn what_the_player_held_up_is_caught_up_for_a_second_only() {
    let sending = Sending::At(Rate::from_millis(10_000).unwrap());
    let mut source = Source::new(SourceOptions { sending, ..free() }, millis(0));
    let first = match source.next(millis(0), Some(&CLIP)) {
        Act::Send(data) => data,
        other => panic!("{other:?}"),
    };
    source.hear(millis(10_000), &bytes(&word(&first, 100)));
    let caught_up = burst(&mut source, millis(10_000)).len();
    assert_eq!(caught_up, 11, "ten pictures of the second, and the one that is due");
}

#[test]
fn who_hears_nothing_asks_and_gives_up_in_the_end() {
    let mut source = Source::new(free(), millis(0));
    let sent = burst(&mut source, millis(0));
    let (mut now, mut asked) = (millis(0), Vec::new());
    let over = loop {
        match source.next(now, Some(&CLIP)) {
            Act::Wait(at) => now = at,
            Act::Ask(data) => {
                assert_eq!((data.sequence, data.clock, data.ends_super), (101, sent[1].clock, true));
                asked.push(now.millis());
            }
            Act::Over(over) => break over,
            Act::Send(data) => panic!("{data:?}"),
        }
    };
    assert_eq!((over, now), (Over::Silent, millis(5000)));
    assert_eq!(asked, [100, 300, 700, 1500, 2500, 3500, 4500]);
}

#[test]
fn over_a_known_short_round_trip_it_asks_before_the_player_runs_out_of_pictures() {
    let mut source = Source::new(free(), millis(0));
    let sent = burst(&mut source, millis(0));
    source.hear(millis(1), &bytes(&word(&sent[1], 4)));
    assert_eq!(burst(&mut source, millis(1)).len(), 4);
    let mut asked = Vec::new();
    let mut now = millis(1);
    while now < millis(200) {
        match source.next(now, Some(&CLIP)) {
            Act::Wait(at) => now = at,
            Act::Ask(_) => asked.push(now.millis()),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(asked, [21, 61, 141]);
}

#[test]
fn a_player_that_stops_or_is_told_the_end_ends_it() {
    let mut source = Source::new(free(), millis(0));
    let sent = burst(&mut source, millis(0));
    source.hear(millis(1), &bytes(&Advertisement { stop: true, ..word(&sent[0], 0) }));
    assert_eq!(source.next(millis(1), Some(&CLIP)), Act::Over(Over::Stopped));

    let mut source = Source::new(free(), millis(0));
    let Act::Ask(end) = source.next(millis(0), None) else { panic!("it says so") };
    assert!(end.ends_stream && end.ends_super && end.sequence == 100);
    assert_eq!(source.next(millis(0), None), Act::Wait(millis(100)));
    assert!(matches!(source.next(millis(100), None), Act::Ask(again) if again == end));
    source.hear(millis(101), &bytes(&word(&end, 2)));
    assert_eq!(source.next(millis(101), None), Act::Over(Over::Ended));
}

#[test]
fn a_clip_that_begins_again_numbers_its_pictures_on() {
    let mut source = Source::new(free(), millis(0));
    let picture = |source: &mut Source, picture| {
        let piece = Piece { picture, ..CLIP };
        let Act::Send(data) = source.next(millis(0), Some(&piece)) else { panic!("there is room") };
        source.hear(millis(0), &bytes(&word(&data, 9)));
        data.picture
    };
    assert_eq!([2, 1].map(|n| picture(&mut source, n)), [2, 1]);
    source.begin_again();
    assert_eq!([2, 0].map(|n| picture(&mut source, n)), [5, 3]);
    source.begin_again();
    assert_eq!(picture(&mut source, 0), 6);
}

proptest! {
    /// Whatever comes back, no more is on its way than was advertised by somebody who knew.
    #[test]
    fn any_words_keep_the_window(words in proptest::collection::vec((any::<[u32; 4]>(), 0u32..20, any::<u16>(), any::<bool>()), 0..60)) {
        let mut source = Source::new(free(), millis(0));
        let (mut now, mut sent, mut highest) = (millis(0), Vec::new(), 101);
        for ([processed, reach, clock, held], nth, super_packet, honest) in words {
            sent.extend(burst(&mut source, now));
            prop_assert!(sent.iter().all(|data: &Data| data.sequence <= highest));
            now += Duration::from_millis(1);
            let truth = sent[nth as usize % sent.len()];
            let said = match honest {
                true => Advertisement { processed: truth.sequence, highest: truth.sequence + reach % 100, clock: truth.clock, held, super_packet, stop: false },
                false => Advertisement { processed, highest: reach, clock: clock | 1 << 31, held, super_packet, stop: true },
            };
            if source.hear(now, &bytes(&said)) {
                prop_assert!(honest);
                highest = highest.max(said.highest);
            }
            prop_assert!(source.clocks.len() <= MOST as usize + 1);
        }
    }
}
