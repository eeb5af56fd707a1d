//! Packets told apart in each place: in the driver, where a veth's peer loses its segmentation offload, and in
//! Linux's receive path, where its messages arrive whole, up to 64 KB. Programs notice nothing of it.

use crate::files::{fetch_all, site};
use crate::host::{MODES, Silk};
use crate::iperf::stream;
use crate::programs::text;
use crate::python::{CLIENTS, ECHO, echo};
use silk_testkit::netns::{INTERFACE, SERVER};

/// Whether the peer sends large messages whole.
fn peer_keeps_its_offload(silk: &Silk) -> bool {
    text(silk.on_peer("ethtool").args(["-k", INTERFACE])).contains("tcp-segmentation-offload: on")
}

#[test]
fn the_peers_offload_is_lost_in_the_driver_alone() {
    let threaded = "auto\"\nnapi = \"threaded";
    for (mode, keeps) in
        [("generic", true), ("ingress", true), ("native", false), ("auto", true), (threaded, false)]
    {
        let Some(silk) = Silk::start_in(mode) else { return };
        assert_eq!(peer_keeps_its_offload(&silk), keeps, "{mode}");
    }
}

#[test]
fn every_byte_of_large_messages_comes_back() {
    for mode in MODES {
        let Some(silk) = Silk::start_in(mode) else { return };
        silk.write("echo_server.py", ECHO);
        silk.write("echo_clients.py", CLIENTS);
        let _server = silk.serve("python3", &["echo_server.py", "7"], 7);
        echo(|| silk.on_peer("python3"), SERVER);
        silk.linux_saw_nothing();
    }
}

#[test]
fn streams_arrive_in_either_role() {
    for mode in MODES {
        let Some(silk) = Silk::start_in(mode) else { return };
        stream(&silk, silk.on_paths("iperf3"), silk.on_peer("iperf3"), SERVER, false);
        stream(&silk, silk.on_peer("iperf3"), silk.on_paths("iperf3"), silk_testkit::netns::CLIENT, true);
        silk.linux_saw_nothing();
    }
}

#[test]
fn files_are_served_as_ever() {
    for mode in MODES {
        let Some(silk) = Silk::start_in(mode) else { return };
        site(&silk);
        let _server = silk.serve("python3", &["-m", "http.server", "80", "--directory", "site"], 80);
        fetch_all(&silk, 80);
        silk.linux_saw_nothing();
    }
}
