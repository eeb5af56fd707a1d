//! Scout §4.3's experiment in virtual time: a realtime stream beside eight others that share the
//! processor, decoded at recorded costs, scheduled by their deadlines and in turn.

mod theatre;

use silk_appliance::Virtual;
use silk_media::{Shown, deadline};
use silk_sched::{Edf, Fixed, Policy};
use theatre::{Film, Theatre};

/// Costs of decoding a picture that give Table 1's highest rates: 50.5 and 245.9 pictures a second.
const NEPTUNE: Film = Film { pictures: 1345, rate: 30_000, queue: 8, packets: 8, cost_ns: 19_801_980 };
const CANYON: Film = Film { pictures: 448, rate: 10_000, queue: 128, packets: 2, cost_ns: 4_066_694 };

/// What became of Neptune beside eight Canyons, and of the first of these.
fn neptune_beside_canyons(policy: Box<dyn Policy + Send>) -> (Shown, Shown) {
    let mut theatre = Theatre::new(policy, Virtual::default());
    let neptune = theatre.play(NEPTUNE, deadline::by_output);
    let canyons: Vec<_> = (0..8).map(|_| theatre.play(CANYON, deadline::by_output)).collect();
    theatre.run();
    (theatre.shown(neptune), theatre.shown(canyons[0]))
}

#[test]
fn by_deadline_no_picture_misses_its_time() {
    let (neptune, canyon) = neptune_beside_canyons(Box::new(Edf::new(64)));
    assert_eq!((neptune.shown, neptune.missed), (1345, 0));
    assert_eq!((canyon.shown, canyon.missed), (448, 0));
}

#[test]
fn in_turn_most_pictures_miss_their_time() {
    let (neptune, _) = neptune_beside_canyons(Box::new(Fixed::new(64)));
    println!("in turn: {neptune:?}");
    assert_eq!(neptune.shown + neptune.missed, 1345, "each was shown or missed");
    assert!(neptune.missed > 1345 / 2, "only {} of 1345 missed", neptune.missed);
}
