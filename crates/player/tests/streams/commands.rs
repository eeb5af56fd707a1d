//! What SHELL is told (Scout §4.1).

use crate::theatre::Theatre;
use std::time::Duration;

fn names(theatre: &Theatre) -> Vec<&str> {
    theatre.player.streams().map(|(_, name)| name).collect()
}

#[test]
fn a_stream_without_a_name_gets_one_that_is_free() {
    let mut theatre = Theatre::new(0.9);
    for (number, port) in [(1, 5001), (2, 5002), (3, 5003)] {
        theatre.tell(number, &format!("mpeg_decode 10.0.0.2:{port} port={port}"));
    }
    assert_eq!(names(&theatre), ["stream1", "stream2", "stream3"]);
    // One that is not the last ends, and another takes the next name.
    theatre.tell(4, "stop stream1");
    theatre.tell(5, "mpeg_decode 10.0.0.2:5004 port=5004 name=stream4");
    theatre.tell(6, "mpeg_decode 10.0.0.2:5005 port=5005");
    theatre.tell(7, "mpeg_decode 10.0.0.2:5006 port=5006");
    let mut names = names(&theatre);
    names.sort_unstable();
    assert_eq!(names, ["stream1", "stream2", "stream3", "stream4", "stream5"]);
}

#[test]
fn a_stream_that_is_stopped_leaves_its_figures() {
    let mut theatre = Theatre::new(0.9);
    theatre.tell(1, "mpeg_decode 10.0.0.2:5001 port=5001 fps=25 name=one");
    let path = theatre.player.find("one").unwrap();
    theatre.play(&[5001], 0..50, Duration::from_millis(4));
    let shown = theatre.player.figures(&theatre.appliance, path).unwrap().shown;
    assert!(shown.shown > 20, "{shown:?}");
    theatre.tell(2, "stop one");
    assert_eq!(names(&theatre), [""; 0]);
    let [(stopped, Some(figures))] = &theatre.player.stopped[..] else { panic!("no figures") };
    assert_eq!((*stopped, figures.name.as_str(), figures.shown), (path, "one", shown));
}
