//! Integrated layer processing (Scout §4.1): whatever arrives, whole or damaged, a path whose checksums are
//! verified while the data are first read ends in the same state, with the same drops, as one whose UDP
//! does it alone; and so does its decoder, whether it offers room or not.

use crate::rig::{BELOW, Carrier, Player, State, frame};
use proptest::prelude::*;
use silk_modules::IntegratedLayers;
use silk_path::{Checksum, DropReason};
use silk_wire::{mflow, rtp};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// What happens next.
#[derive(Clone, Debug)]
struct Happening {
    /// How far the number goes on; 1: the next.
    step: i8,
    /// Bytes of video.
    video: Vec<u8>,
    /// Type of the picture, and flags of the packet.
    kind: u8,
    flags: u8,
    /// The port it is sent from is another.
    stranger: bool,
    /// A byte of the datagram that is changed, and how.
    damage: Option<(u16, u8)>,
    /// What the device says of the checksum.
    told: u8,
    /// The time before it, ms.
    pause: u16,
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let step = prop_oneof![8 => Just(1i8), 1 => 2i8..5, 1 => -3i8..1];
    let damage = prop_oneof![2 => Just(None), 1 => (0u16..1400, 1u8..).prop_map(Some)];
    let pause = prop_oneof![8 => 0u16..40, 1 => 5000u16..6000];
    let video = proptest::collection::vec(any::<u8>(), 0..200);
    let one = (step, video, 0u8..4, any::<u8>(), proptest::bool::weighted(0.1), damage, 0u8..4, pause);
    let make = |(step, video, kind, flags, stranger, damage, told, pause)| Happening {
        step,
        video,
        kind,
        flags,
        stranger,
        damage,
        told,
        pause,
    };
    proptest::collection::vec(one.prop_map(make), 1..60)
}

fn datagram(carrier: Carrier, number: u32, happening: &Happening) -> Vec<u8> {
    let Happening { kind, flags, video, .. } = happening;
    let set = |bit: u8| flags >> bit & 1 != 0;
    match carrier {
        Carrier::Mflow => {
            let data = mflow::Data {
                sequence: number,
                picture: number / 3,
                kind: *kind,
                first: number.is_multiple_of(3),
                last: number % 3 == 2,
                ends_super: set(0),
                ends_stream: set(1) && set(2) && set(3) && set(4),
                round_trip: u32::from(flags >> 5) * 100,
                clock: number,
                ..mflow::Data::default()
            };
            let mut bytes = vec![0; mflow::HEADER];
            data.emit(&mut bytes);
            [bytes, video.clone()].concat()
        }
        Carrier::Rtp => {
            let header = rtp::Header::new(rtp::MPV, number % 3 == 2, number as u16, number / 3 * 3000, 9);
            let mut bytes = vec![0; rtp::HEADER];
            header.emit(&mut bytes);
            bytes.extend([0, 0, 0x10 | kind, 0]);
            // Padding makes data end in front of the datagram's end.
            bytes.extend(video);
            if set(0) {
                bytes[0] |= 0x20;
                let padding = 1 + (flags >> 1 & 7);
                bytes.extend(vec![0; usize::from(padding) - 1]);
                bytes.push(padding);
            }
            bytes
        }
    }
}

fn state_after(mut player: Player, carrier: Carrier, happenings: &[Happening]) -> State {
    let mut number = 100u32;
    for happening in happenings {
        player.passes(Duration::from_millis(happening.pause.into()));
        number = number.wrapping_add_signed(happening.step.into());
        let source = if happening.stranger { 6001 } else { 6000 };
        let mut frame = frame(source, &datagram(carrier, number, happening));
        if let Some((at, change)) = happening.damage {
            let room = frame.len() - BELOW;
            frame[BELOW + usize::from(at) % room] ^= change;
        }
        let checksum = match happening.told {
            0 => Checksum::Verified,
            1 => Checksum::MaybePartial,
            _ => Checksum::Unknown,
        };
        player.arrives(&frame, checksum);
    }
    let mut state = player.state();
    state.decoded.time = 0;
    state
}

proptest! {
    #[test]
    fn a_path_means_the_same_with_and_without_the_rule(
        happenings in happenings(),
        over_rtp: bool,
        offers_room: bool,
    ) {
        let carrier = if over_rtp { Carrier::Rtp } else { Carrier::Mflow };
        let apart = state_after(Player::new(carrier, vec![], offers_room), carrier, &happenings);
        let integrated = Player::new(carrier, vec![Box::new(IntegratedLayers)], offers_room);
        prop_assert_eq!(state_after(integrated, carrier, &happenings), apart);
    }
}

#[test]
fn a_damaged_packet_changes_nothing_but_the_count_of_drops() {
    let whole = Happening {
        step: 1,
        video: vec![7; 99],
        kind: 2,
        flags: 0,
        stranger: false,
        damage: None,
        told: 2,
        pause: 1,
    };
    for carrier in [Carrier::Mflow, Carrier::Rtp] {
        let damaged = |at| Happening { damage: Some((at, 4)), ..whole.clone() };
        let again = Happening { step: 0, ..whole.clone() };
        let packets = [damaged(60), again.clone(), damaged(9), again.clone(), damaged(120), again];
        let player = || Player::new(carrier, vec![Box::new(IntegratedLayers)], true);
        let integrated = player();
        let copied = integrated.copied.clone();
        let state = state_after(integrated, carrier, &packets);
        // MFLOW gives itself to a source only when it knows that the packet is right.
        let first = if carrier == Carrier::Mflow { 1 } else { 0 };
        assert_eq!(copied.load(Relaxed) + first, 3, "the data were read once");
        assert_eq!((state.drops.of(DropReason::UdpChecksum), state.drops.total()), (3, 3), "{carrier:?}");
        let clean = state_after(player(), carrier, &[whole.clone(), whole.clone(), whole.clone()]);
        assert_eq!((state.given, state.decoded.packets), (clean.given, 3));
    }
}
