//! What SHELL is told (Scout §4.1).

use crate::theatre::Theatre;

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
