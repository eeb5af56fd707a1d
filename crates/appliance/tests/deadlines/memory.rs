//! Memory that a path was granted (Scout §4.4): a stream that needs more loses pictures of its own, and
//! the others play on.

use crate::theatre::{Film, Theatre};
use silk_appliance::Virtual;
use silk_media::{MpegStage, deadline};
use silk_path::{DropReason, PathId};
use silk_sched::Edf;

const FILM: Film = Film { pictures: 300, rate: 30_000, queue: 8, packets: 4, cost_ns: 5_000_000 };
/// Bytes of one picture.
const PICTURE: u64 = 352 * 240 * 3 / 2;

/// Plays three films, the one in the middle with so many bytes beside what its path itself has.
fn beside_others(bytes: u64) -> (Theatre, [PathId; 3]) {
    let mut theatre = Theatre::new(Box::new(Edf::new(8)), Virtual::default());
    let paths = [(); 3].map(|()| theatre.play(FILM, deadline::by_output));
    let account = &mut theatre.appliance.paths_mut().path_mut(paths[1]).unwrap().state.account;
    account.set_memory_limit(account.memory() + bytes);
    theatre.run();
    for path in [paths[0], paths[2]] {
        let shown = theatre.shown(path);
        assert_eq!((shown.shown, shown.missed, shown.lost), (300, 0, 0), "another stream");
    }
    (theatre, paths)
}

#[test]
fn a_stream_without_memory_loses_its_own_pictures_and_the_others_play_on() {
    let (mut theatre, [_, poor, _]) = beside_others(PICTURE / 2);
    let path = theatre.appliance.paths().path(poor).unwrap();
    assert_eq!(path.stage::<MpegStage>().unwrap().decoded().no_memory, 300);
    assert_eq!(path.state.drops.of(DropReason::NoMemory), 300, "each is counted");
    assert!(path.state.account.memory_peak <= path.state.account.memory_limit());
    // What is left of it goes back: that the account is zero then is asserted.
    theatre.appliance.destroy(poor).unwrap();
}

#[test]
fn a_stream_with_little_memory_has_a_shorter_queue() {
    let (theatre, [_, modest, _]) = beside_others(2 * PICTURE);
    let shown = theatre.shown(modest);
    assert_eq!((shown.shown, shown.missed, shown.lost), (300, 0, 0));
}
