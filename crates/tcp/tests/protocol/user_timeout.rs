//! The user time-out and its option (RFC 5482).

use std::time::Duration;

use silk_tcp::{Advertised, Config, Options, Progress, Segment};

use crate::link::Weather;
use crate::pair::Pair;
use crate::solo::{OURS, Solo, THEIRS, ack, plain, sacked, text, with_sack};

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3_600);

fn heeding(config: Config) -> Config {
    Config { user_timeout_option: Some(HOUR), ..config }
}

fn advised(seg: Segment, time: Duration) -> Segment {
    Segment { options: Options { user_timeout: Some(Advertised::new(time)), ..seg.options }, ..seg }
}

/// How long a connection that has sent text insists after its first time-out.
fn patience(mut solo: Solo) -> Duration {
    solo.write(1_000);
    solo.sent();
    assert_eq!(solo.next_timeout().expect("it is sent again").1, Progress::NONE);
    let began = solo.now;
    loop {
        solo.sent();
        let progress = solo.next_timeout().expect("it goes on or ends").1;
        if progress != Progress::NONE {
            assert_eq!(progress, Progress::TIMED_OUT | Progress::CLOSED);
            return solo.now - began;
        }
    }
}

#[test]
fn a_time_decides_and_not_the_number_of_retransmissions() {
    let config = Config { user_timeout: Some(HOUR), retries: 3, ..plain() };
    assert_eq!(patience(Solo::established(&config)), HOUR);
    let config = Config { user_timeout: Some(SECOND), ..plain() };
    assert_eq!(patience(Solo::established(&config)), SECOND);
}

#[test]
fn a_syn_is_given_up_at_its_time_or_after_its_number() {
    let waited = |user_timeout| {
        let mut solo = Solo::opening(&Config { user_timeout: Some(user_timeout), syn_retries: 3, ..plain() });
        let began = solo.now;
        while solo.next_timeout().expect("it goes on or ends").1 == Progress::NONE {
            solo.sent();
        }
        (solo.now - began).as_millis()
    };
    let times = [300, 2_500, 7_000, 60_000].map(Duration::from_millis);
    assert_eq!(times.map(waited), [300, 2_500, 7_000, 15_000]);
}

#[test]
fn a_peer_that_refuses_what_was_sent_and_answers_is_not_waited_for_any_longer() {
    let mut solo = Solo::established(&Config { user_timeout: Some(5 * SECOND), ..plain() });
    solo.write(1_000);
    solo.sent();
    let (mut times, mut progress) = (vec![], Progress::NONE);
    while progress == Progress::NONE {
        solo.arrive(Segment { window: 0, ..ack(OURS) }).unwrap();
        let (waited, what) = solo.next_timeout().expect("it goes on or ends");
        times.push(waited.as_millis());
        assert!(times.len() < 100, "it never rests: {times:?}");
        progress = what;
        assert_eq!(solo.sent().len(), usize::from(progress == Progress::NONE));
    }
    assert_eq!(progress, Progress::TIMED_OUT | Progress::CLOSED);
    // The rest of the five seconds since the first.
    assert_eq!(times, [210, 420, 840, 1_680, 2_060]);
}

#[test]
fn the_time_is_over_also_while_reordered_text_is_waited_for() {
    let (mut solo, milli) = (Solo::established_after(&with_sack(), 300 * MILLI), Duration::from_millis);
    // The network is seen to reorder.
    solo.write(4_000);
    solo.sent();
    solo.after(milli(300));
    for held in [2_000, 1_000] {
        solo.arrive(sacked(ack(OURS), &[(OURS + held, OURS + 3_000)])).unwrap();
    }
    solo.arrive(ack(OURS + 4_000)).unwrap();
    assert!(solo.connection.info().reordered > 0);
    // The first of what follows is lost, and lost again by the tail's probe. Just before its time-out more follows.
    solo.connection.set_user_timeout(Some(milli(230)));
    solo.write(1_000);
    let mut sent = solo.sent();
    solo.next_timeout();
    sent.extend(solo.sent());
    let overdue = solo.connection.poll_timeout().expect("a time-out");
    for before in [100, 90, 80] {
        solo.after(overdue - solo.now - milli(before));
        solo.write(1_000);
        sent.extend(solo.sent());
    }
    solo.next_timeout();
    assert_eq!(
        (sent.len(), solo.text_sent(), solo.connection.info().timeouts),
        (5, vec![(OURS + 4_000, 1_000)], 1)
    );
    // The last of it arrives; the others may have been overtaken.
    solo.after(milli(220));
    solo.arrive(sacked(ack(OURS + 4_000), &[(OURS + 7_000, OURS + 8_000)])).unwrap();
    assert_eq!((solo.sent().len(), solo.connection.info().lost), (0, 0));
    assert_eq!(solo.next_timeout(), Some((milli(10), Progress::TIMED_OUT | Progress::CLOSED)));
}

// The time of the handshake is not counted for the first text.
#[test]
fn a_syn_that_was_lost_does_not_shorten_what_follows() {
    let mut solo = Solo::opening(&Config { user_timeout: Some(2 * SECOND), ..plain() });
    solo.next_timeout();
    solo.sent();
    solo.arrive(solo.syn_ack(Options::default())).unwrap();
    solo.sent();
    assert_eq!(patience(solo), 2 * SECOND);
}

// RFC 5482 §3.
#[test]
fn the_option_is_on_the_syn_and_on_the_first_segment_after_it() {
    let config = Config { user_timeout: Some(300 * SECOND), ..heeding(Config::default()) };
    let mut pair = Pair::with(&config, &heeding(Config::default()), Weather::FAIR, 1);
    pair.client.program.to_write.extend(std::iter::repeat_n(7, 5_000));
    pair.drive_for(SECOND);
    let said = |host: &crate::pair::Host| -> Vec<_> {
        host.sent.iter().map(|(_, header)| header.options.user_timeout.map(Advertised::duration)).collect()
    };
    let client = said(&pair.client);
    assert_eq!(client[..2], [Some(300 * SECOND); 2]);
    assert!(client.len() > 4 && client[2..].iter().all(Option::is_none), "{client:?}");
    assert!(said(&pair.server).iter().all(Option::is_none));
    // Whoever does not use the option says nothing, whatever the program wants.
    let config = Config { user_timeout: Some(300 * SECOND), ..Config::default() };
    let mut pair = Pair::with(&config, &config, Weather::FAIR, 1);
    pair.drive_for(SECOND);
    assert!([&pair.client, &pair.server].into_iter().flat_map(said).all(|time| time.is_none()));
}

// RFC 5482 §3.
#[test]
fn a_time_that_changes_is_said_by_the_next_segment_which_makes_room_for_it() {
    let mut solo = Solo::established(&heeding(plain()));
    solo.offload = 65_000;
    solo.write(4_000);
    solo.connection.set_user_timeout(Some(30 * SECOND));
    let sent = solo.sent();
    let lengths: Vec<_> = sent.iter().map(|t| (t.len, t.gso_size, t.header.options.encoded_len())).collect();
    assert_eq!(lengths, [(996, 0, 4), (3_004, 1_000, 0)]);
    assert_eq!(sent[0].header.options.user_timeout, Some(Advertised::new(30 * SECOND)));
}

// RFC 5482 §3.2.
#[test]
fn a_report_of_what_is_missing_goes_first() {
    let mut solo = Solo::established(&heeding(with_sack()));
    solo.connection.set_user_timeout(Some(30 * SECOND));
    solo.arrive(text(THEIRS + 10, b"gap")).unwrap();
    let options = solo.sent()[0].header.options;
    assert!(!options.sack.is_empty() && options.user_timeout.is_none());
    solo.arrive(text(THEIRS, &[1; 10])).unwrap();
    let options = solo.sent()[0].header.options;
    assert!(options.sack.is_empty() && options.user_timeout.is_some());
}

// RFC 5482 §3.1.
#[test]
fn what_the_peer_advises_counts_where_the_program_wants_nothing() {
    let after = |config: Config, seg: Segment| {
        let mut solo = Solo::established(&config);
        solo.arrive(seg).unwrap();
        patience(solo).as_secs()
    };
    let usual = after(plain(), ack(OURS));
    assert!(usual > 500, "{usual}");
    assert_eq!(after(heeding(plain()), advised(ack(OURS), 300 * SECOND)), 300);
    assert_eq!(after(heeding(plain()), advised(text(THEIRS, b"x"), 1_800 * SECOND)), 1_800);
    // Within limits.
    assert_eq!(after(heeding(plain()), advised(ack(OURS), SECOND)), 100);
    assert_eq!(after(heeding(plain()), advised(ack(OURS), 24 * HOUR)), 3_600);
    // The program knows better, and who does not use the option does not hear it.
    let own = Config { user_timeout: Some(7 * SECOND), ..heeding(plain()) };
    assert_eq!(after(own, advised(ack(OURS), 300 * SECOND)), 7);
    assert_eq!(after(plain(), advised(ack(OURS), 300 * SECOND)), usual);
}

#[test]
fn what_is_advised_by_a_syn_ack_counts_and_what_is_unacceptable_does_not() {
    let mut solo = Solo::opening(&heeding(plain()));
    let options = Options { user_timeout: Some(Advertised::new(200 * SECOND)), ..Options::default() };
    solo.arrive(solo.syn_ack(options)).unwrap();
    solo.sent();
    let outside = sacked(text(THEIRS + 100_000, b"x"), &[]);
    assert!(solo.arrive(advised(outside, 400 * SECOND)).is_err());
    solo.sent();
    assert_eq!(patience(solo), 200 * SECOND);
}
