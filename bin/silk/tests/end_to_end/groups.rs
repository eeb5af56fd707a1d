//! Groups and broadcasts: joined and left, heard and sent to, and the leave that speaking with everyone
//! takes. The same program says the same over Linux's own stack and over silk.

use crate::host::{Silk, within};
use silk_testkit::netns::{SERVER, SERVER6};
use std::process::Command;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

/// What is sent when the listener is ready for it, and whereto.
const SAID: [(&str, &str); 8] = [
    ("group", "239.1.2.3"),
    ("other", "239.1.2.4"),
    ("everyone", "255.255.255.255"),
    ("network", "10.99.0.255"),
    ("group-again", "239.1.2.3"),
    ("other-again", "239.1.2.4"),
    ("early", "239.1.2.5"),
    ("six", "ff15::99"),
];

/// What the listener says, and what the peer hears of it.
fn heard(silk: &Silk, mut listener: Command, here: [&str; 2]) -> (String, String) {
    silk.write("groups.py", include_str!("groups.py"));
    let _listener = silk.start_logged(listener.args(["groups.py", "listen", here[0], here[1]]), "listener");
    let ready =
        |step: &str| within(PATIENCE, || silk.log("listener").contains(&format!("ready for {step}\n")));
    for (step, to) in SAID {
        assert!(ready(step), "{step}: {}", silk.log("listener"));
        let said = silk.on_peer("python3").args(["groups.py", "say", to, step]).status();
        assert!(said.is_ok_and(|status| status.success()), "{step}");
    }
    let _peer = silk.start_logged(silk.on_peer("python3").args(["groups.py", "hear"]), "peer");
    assert!(ready("word"), "{}", silk.log("listener"));
    assert!(within(PATIENCE, || silk.log("peer").lines().count() == 3), "{}", silk.log("peer"));
    assert!(within(PATIENCE, || silk.log("listener").contains("to a group")), "{}", silk.log("listener"));
    (silk.log("listener"), silk.log("peer"))
}

#[test]
fn groups_and_broadcasts_are_what_they_are_on_linux() {
    let Some(silk) = Silk::start() else { return };
    let here = [&*SERVER.to_string(), &*SERVER6.to_string()];
    let linux = heard(&silk, silk.on_linux("python3"), here);
    assert!(linux.0.contains("group from"), "{linux:?}");
    assert_eq!(heard(&silk, silk.on_paths("python3"), here), linux);
}
