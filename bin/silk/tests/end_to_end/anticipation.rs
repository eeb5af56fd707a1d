//! An executor that waits for a preferred client awake: others get their part beside it.

use crate::apache::apache;
use crate::files::site;
use crate::host::Silk;
use crate::programs::text;
use silk_testkit::netns::{CLIENT, INTERFACE, PREFERRED, SERVER};
use std::time::Duration;

/// A daemon on one CPU, whose receive thread is there too, with two classes.
fn daemon() -> Option<Silk> {
    let device = format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\nnapi = \"threaded\"\nnapi_cpu = 0\n");
    let classes = format!(
        "[scheduler]\ncpus = [0]\nextend = true\n\n\
         [[class]]\nname = \"preferred\"\npriority = 2\nsource = \"{PREFERRED}\"\n\n\
         [[class]]\nname = \"standard\"\npriority = 0\ndefault = true\n"
    );
    Silk::start_with(&device, &classes)
}

#[test]
fn a_preferred_client_without_a_pause_leaves_others_their_part() {
    const ASKED: &str = "20000";
    let Some(silk) = daemon() else { return };
    if silk.log("silkd").contains("cannot be scheduled") {
        silk_testkit::skip("no real-time priorities");
        return;
    }
    site(&silk);
    let server = apache(&silk, "prefork", "StartServers 8\nMaxRequestWorkers 32\nMaxSpareServers 32");
    let url = format!("http://{SERVER}:80/1448");
    let mut preferred = silk.on_peer("ab");
    preferred.args(["-q", "-B", &PREFERRED.to_string(), "-n", ASKED, "-c", "1", &url]);
    let mut preferred = silk.start_logged(&mut preferred, "preferred");
    let mut answered = 0u32;
    while preferred.ended().is_none() {
        let mut ordinary = silk.on_peer("curl");
        let from = CLIENT.to_string();
        ordinary.args([
            "-sf",
            "--max-time",
            "20",
            "--interface",
            &from,
            "-o",
            "/dev/null",
            "-w",
            "%{size_download}",
        ]);
        assert_eq!(text(ordinary.arg(&url)), "1448");
        // Who is answered once the preferred client has ended was not answered beside it.
        answered += u32::from(preferred.ended().is_none());
    }
    let report = silk.log("preferred");
    let count = |name: &str| report.lines().find(|line| line.starts_with(name))?.split_whitespace().last();
    assert_eq!(count("Complete requests:"), Some(ASKED), "{report}");
    assert_eq!(count("Failed requests:"), Some("0"), "{report}");
    assert!(answered > 0, "nobody was answered beside it");
    server.stop(Duration::from_secs(5));
    silk.linux_saw_nothing();
}
