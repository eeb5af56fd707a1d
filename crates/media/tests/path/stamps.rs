//! When pictures are shown whose stamps say something else than a player would like to hear: streams that do not tell
//! their rate, clocks that are set, sources that begin anew.

use crate::rig::{Carrier, Player, State, frame};
use silk_media::{Coding, Shown, Wish};
use silk_path::Checksum;
use silk_wire::{mflow, rtp};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A picture of H.264 in one packet.
fn h264(number: u32, stamp: u32) -> Vec<u8> {
    let mut bytes = vec![0; rtp::HEADER];
    rtp::Header::new(96, true, number as u16, stamp, 9).emit(&mut bytes);
    [&bytes[..], &[0x41, 0x9a, 7]].concat()
}

/// One of MPEG video.
fn mpeg(number: u32, stamp: u32) -> Vec<u8> {
    let reference = (number % 15) as u8;
    let mut bytes = vec![0; rtp::HEADER];
    rtp::Header::new(rtp::MPV, true, number as u16, stamp, 9).emit(&mut bytes);
    let kind = if reference == 0 { 1 } else { 2 };
    let group: &[u8] = if reference == 0 { &[0, 0, 1, 0xb8, 0, 8, 0, 0x40] } else { &[] };
    let picture = [0, 0, 1, 0, reference >> 2, reference << 6 | kind << 3, 0xff, 0xf8, 0, 0, 1, 1];
    [&bytes[..], &[0, 0, 0x10 | kind, 0], group, &picture].concat()
}

/// One of MPEG video over MFLOW: I B B P B B …
fn numbered(sequence: u32, picture: u32) -> Vec<u8> {
    let kind = if picture.is_multiple_of(3) { 1 } else { 3 };
    let data = mflow::Data { sequence, picture, kind, first: true, last: true, ..mflow::Data::default() };
    let mut bytes = vec![0; mflow::HEADER];
    data.emit(&mut bytes);
    [&bytes[..], &[0, 0, 1, 0, 7]].concat()
}

/// Packets from this port, so long apart.
fn play(player: &mut Player, port: u16, apart: Duration, packets: impl Iterator<Item = Vec<u8>>) {
    for packet in packets {
        player.arrives(&frame(port, &packet), Checksum::Verified);
        player.passes(apart);
    }
}

/// Everything that came was shown, but for what waits.
fn all_shown(state: &State, pictures: u64) {
    let Shown { shown, missed, lost, repeated, overflowed, .. } = state.shown;
    assert_eq!((missed, lost, repeated, overflowed), (0, 0, 0, 0), "{:?}", state.shown);
    assert!((pictures - 17..=pictures).contains(&shown), "{:?}", state.shown);
}

#[test]
fn a_stream_that_does_not_tell_its_rate_is_played_at_that_of_its_stamps() {
    for step in [1500, 1800, 3003, 3600, 6000] {
        let wish = Wish { coding: Coding::H264, ..Wish::default() };
        let mut player = Player::wishing(wish, Carrier::Rtp, vec![], false);
        let apart = Duration::from_nanos(u64::from(step) * 1_000_000_000 / 90_000);
        play(&mut player, 6000, apart, (0..2000).map(|n| h264(n, n.wrapping_mul(step) + 77)));
        all_shown(&player.state(), 2000);
    }
}

#[test]
fn a_sender_whose_clock_is_set_is_played_on() {
    for (coding, packet) in [(Coding::H264, h264 as fn(u32, u32) -> Vec<u8>), (Coding::Mpeg, mpeg)] {
        for jump in [0, 90_000 * 20, 1 << 30, 0u32.wrapping_sub(90_000 * 20), 3 << 30] {
            let wish = Wish { coding, ..Wish::default() };
            let mut player = Player::wishing(wish, Carrier::Rtp, vec![], false);
            let stamp = |n: u32| (n * 3000 + 9).wrapping_add(if n < 300 { 0 } else { jump });
            let apart = Duration::from_nanos(33_333_333);
            play(&mut player, 6000, apart, (0..600).map(|n| packet(n, stamp(n))));
            all_shown(&player.state(), 600);
        }
    }
}

#[test]
fn a_source_that_takes_the_place_of_one_that_was_killed_is_played_as_that_was() {
    let mut player = Player::wishing(Wish::default(), Carrier::Mflow, vec![], false);
    let apart = Duration::from_nanos(33_333_333);
    play(&mut player, 6000, apart, (0..300).map(|n| numbered(n, n)));
    player.passes(Duration::from_secs(6));
    play(&mut player, 6001, apart, (0..300).map(|n| numbered(77_000 + n, n)));
    let state = player.state();
    all_shown(&state, 600);
    assert_eq!((state.decoded.too_late, state.shown.restarts), (0, 1));
}

#[test]
fn a_stream_is_decoded_as_it_is_coded_and_not_as_was_expected() {
    for (expected, coded) in [(Coding::Mpeg, Coding::H264), (Coding::H264, Coding::Mpeg)] {
        let wish = Wish { coding: expected, ..Wish::default() };
        let mut player = Player::wishing(wish, Carrier::Rtp, vec![], false);
        let packet = if coded == Coding::H264 { h264 } else { mpeg };
        play(&mut player, 6000, Duration::from_millis(20), (0..50).map(|n| packet(n, n * 1800)));
        assert_eq!(*player.opened.lock().unwrap(), [expected, coded]);
        let (bytes, ..) = player.state().given[0].clone();
        assert_eq!(bytes.starts_with(&[0, 0, 0, 1, 0x41]), coded == Coding::H264, "{bytes:?}");
        let coding = if coded == Coding::H264 { mflow::Coding::H264 } else { mflow::Coding::Mpeg };
        let mut player = Player::wishing(wish, Carrier::Mflow, vec![], false);
        let mut bytes = vec![0; mflow::HEADER];
        mflow::Data { coding, first: true, ..mflow::Data::default() }.emit(&mut bytes);
        play(&mut player, 6000, Duration::from_millis(20), std::iter::once([&bytes[..], b"video"].concat()));
        assert_eq!(*player.opened.lock().unwrap(), [expected, coded]);
    }
}

#[test]
fn the_packet_behind_one_that_there_was_no_memory_for_knows_that_something_is_missing() {
    let wish = Wish { coding: Coding::H264, ..Wish::default() };
    let mut player = Player::wishing(wish, Carrier::Rtp, vec![], false);
    player.limit_memory(5_000);
    for (number, own) in [(0, 0), (1, 10_000), (2, 0), (3, 0)] {
        player.own.store(own, Relaxed);
        player.arrives(&frame(6000, &h264(number, number * 3600)), Checksum::Verified);
    }
    let state = player.state();
    let gaps: Vec<bool> = state.given.iter().map(|(.., gap)| *gap).collect();
    assert_eq!((state.decoded.no_memory, gaps), (1, vec![false, true, false]));
}
