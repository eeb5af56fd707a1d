//! A path that swallows large packets and says nothing: what silk serves gets through it, as from Linux
//! with `tcp_mtu_probing`.

use crate::files::content;
use crate::host::Silk;
use crate::netem::connect;
use crate::programs::{bytes, within};
use silk_testkit::netns::{Host, Running};
use std::fs::{self, File};
use std::process::Command;
use std::time::Duration;

const HERE: &str = "10.98.0.1";
const THERE: &str = "10.98.0.2";
const PATIENCE: Duration = Duration::from_secs(60);

/// A cable named `wan` that takes IP packets of 1 400 bytes.
fn lay(silk: &Silk) -> Running {
    let (server, client) = (&silk.rig.server, &silk.rig.client);
    for host in [server, client] {
        host.set("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").unwrap();
    }
    let log = File::create(silk.path("netem.log")).unwrap();
    let side = |host: &Host| format!("{}:wan", host.namespace());
    let mut command = Command::new(env!("CARGO_BIN_EXE_silk"));
    command.args(["netem", "--left", &side(server), "--right", &side(client), "--mtu", "1400"]);
    command.args(["--delay", "2ms", "--rate", "50mbit"]).stderr(log.try_clone().unwrap()).stdout(log);
    let cable = Running::start(&mut command).unwrap();
    let joined = || fs::read_to_string(silk.path("netem.log")).unwrap().contains("are joined");
    assert!(within(PATIENCE, joined), "{}", silk.log("netem"));
    let [left, right] = [("02:00:00:00:00:01", HERE), ("02:00:00:00:00:02", THERE)];
    connect(server, left, right);
    connect(client, right, left);
    cable
}

/// What the peer gets of a megabyte at `port`.
fn fetched(silk: &Silk, port: &str) -> Vec<u8> {
    let mut curl = silk.on_peer("curl");
    bytes(curl.args(["-sf", "--max-time", "50", &format!("http://{HERE}:{port}/large")]))
}

#[test]
fn a_black_hole_is_got_over_as_by_linux() {
    let Some(mut silk) = Silk::start() else { return };
    let _cable = lay(&silk);
    silk.move_to("kind = \"xdp\"\ninterface = \"wan\"\n");
    let expected = content(1_000_000);
    silk.write("large", &expected);
    let served = |port| ["-m", "http.server", port];
    let _ours = silk.serve_at("python3", &served("80"), HERE.parse::<std::net::Ipv4Addr>().unwrap(), 80);
    assert!(fetched(&silk, "80") == expected, "over silk");
    silk.rig.server.set("/proc/sys/net/ipv4/tcp_mtu_probing", "1").unwrap();
    let _linux = silk.start_logged(silk.on_linux("python3").args(served("81")), "linux");
    let up = || {
        silk.rig.client.run("timeout", ["1", "bash", "-c", &format!("exec 3<>/dev/tcp/{HERE}/81")]).is_ok()
    };
    assert!(within(PATIENCE, up), "{}", silk.log("linux"));
    assert!(fetched(&silk, "81") == expected, "over Linux");
}
