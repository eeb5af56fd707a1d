//! XDP in Linux's receive path: a veth's peer keeps its segmentation offload, and its messages arrive
//! whole, up to 64 KB; what is small, and what is another's, is as ever.

use crate::files::{fetch_all, site};
use crate::host::{Silk, text};
use crate::iperf::stream;
use crate::python::{CLIENTS, ECHO, echo};
use silk_testkit::netns::{INTERFACE, PREFERRED, SERVER};

/// A daemon whose program runs in that mode, with two classes.
fn start(mode: &str) -> Option<Silk> {
    Silk::start_with(
        &format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\nmode = \"{mode}\"\n"),
        &format!(
            "[[class]]\nname = \"preferred\"\npriority = 2\nsource = [\"{PREFERRED}/32\"]\n\n\
             [[class]]\nname = \"standard\"\npriority = 0\ndefault = true\n"
        ),
    )
}

/// Whether the peer sends large messages whole.
fn peer_keeps_its_offload(silk: &Silk) -> bool {
    text(silk.on_peer("ethtool").args(["-k", INTERFACE])).contains("tcp-segmentation-offload: on")
}

#[test]
fn the_peers_offload_is_lost_in_the_driver_alone() {
    for (mode, keeps) in [("generic", true), ("native", false), ("auto", false)] {
        let Some(silk) = start(mode) else { return };
        assert_eq!(peer_keeps_its_offload(&silk), keeps, "{mode}");
    }
}

#[test]
fn every_byte_of_large_messages_comes_back() {
    let Some(silk) = start("generic") else { return };
    silk.write("echo_server.py", ECHO);
    silk.write("echo_clients.py", CLIENTS);
    let _server = silk.serve("python3", &["echo_server.py", "7"], 7);
    echo(|| silk.on_peer("python3"), SERVER);
    silk.linux_saw_nothing();
}

#[test]
fn streams_arrive_in_either_role() {
    let Some(silk) = start("generic") else { return };
    stream(&silk, silk.on_paths("iperf3"), silk.on_peer("iperf3"), SERVER, false);
    stream(&silk, silk.on_peer("iperf3"), silk.on_paths("iperf3"), silk_testkit::netns::CLIENT, true);
    silk.linux_saw_nothing();
}

#[test]
fn files_are_served_as_ever() {
    let Some(silk) = start("generic") else { return };
    site(&silk);
    let _server = silk.serve("python3", &["-m", "http.server", "80", "--directory", "site"], 80);
    fetch_all(&silk, 80);
    silk.linux_saw_nothing();
}
