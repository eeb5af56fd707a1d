//! `silk netem` between Linux and Linux: what it loses, delays and breaks is what it says, programs get
//! their bytes through it all the same, and it leaves nothing behind.

use crate::programs::{bytes, said, text, within};
use silk_testkit::netns::{Host, Rig, Running, signal};
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const LEFT: &str = "10.98.0.1";
const RIGHT: &str = "10.98.0.2";
const PATIENCE: Duration = Duration::from_secs(20);

/// Two hosts, and the emulated cable between them, named `wan` on both.
struct Cable {
    command: Running,
    folder: TempDir,
    rig: Rig,
}

impl Cable {
    /// A cable with these properties. Nothing but what a test sends crosses it: there is no IPv6, and
    /// both hosts know each other's hardware address.
    fn lay(properties: &[&str]) -> Option<Self> {
        let rig = Rig::for_test(1)?;
        let folder = TempDir::with_prefix("silk-test-").unwrap();
        for host in [&rig.server, &rig.client] {
            host.set("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").unwrap();
        }
        let command = join(&rig, &folder.path().join("netem.log"), properties);
        let cable = Self { command, folder, rig };
        let [left, right] = [("02:00:00:00:00:01", LEFT), ("02:00:00:00:00:02", RIGHT)];
        connect(&cable.rig.server, left, right);
        connect(&cable.rig.client, right, left);
        Some(cable)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("netem.log")).unwrap()
    }

    /// Ends it as Ctrl-C does, and gives what it counted: left to right, then right to left.
    fn end(mut self) -> [Counted; 2] {
        signal(&[self.command.id()], "INT");
        let status = self.command.wait(PATIENCE).expect("it ends when it is told to");
        assert!(status.success(), "{status}: {}", self.log());
        assert!(!self.has_interface(&self.rig.server) && !self.has_interface(&self.rig.client));
        let log = self.log();
        ["left to right", "right to left"].map(|way| {
            let line = log.lines().find_map(|line| line.strip_prefix(way)).expect("it counts each way");
            Counted { line: line.to_owned() }
        })
    }

    fn has_interface(&self, host: &Host) -> bool {
        host.run("ip", ["link", "show", "wan"]).is_ok()
    }

    /// Pings the right side so many times: how many answers came, and what ping says of them.
    fn ping(&self, count: u64) -> (u64, String) {
        let mut ping = self.rig.server.command("ping");
        ping.args(["-i", "0.01", "-W", "2", "-c", &count.to_string(), RIGHT]);
        let said = String::from_utf8(said(&mut ping).bytes).unwrap();
        let answers = said.split(" received").next().and_then(|before| before.split(' ').next_back());
        (answers.and_then(|answers| answers.parse().ok()).unwrap_or_else(|| panic!("{said}")), said)
    }
}

/// One direction's counts, as they are written for people.
struct Counted {
    line: String,
}

impl Counted {
    fn of(&self, name: &str) -> u64 {
        let mut words = self.line.split([' ', ',', ';', ':']);
        words.find(|word| *word == name);
        words.next().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{name}: {}", self.line))
    }
}

/// Joins the hosts of a rig by a cable with these properties; what it says goes into this file.
pub fn join(rig: &Rig, log: &Path, properties: &[&str]) -> Running {
    let side = |host: &Host| format!("{}:wan", host.namespace());
    let out = File::create(log).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_silk"));
    command.args(["netem", "--left", &side(&rig.server), "--right", &side(&rig.client)]).args(properties);
    let running = Running::start(command.stderr(out.try_clone().unwrap()).stdout(out)).unwrap();
    let said = || fs::read_to_string(log).unwrap();
    assert!(within(PATIENCE, || said().contains("are joined")), "not joined: {}", said());
    running
}

/// Gives `wan` on a host its addresses, and tells it the other's.
pub fn connect(host: &Host, own: (&str, &str), other: (&str, &str)) {
    host.ip(["link", "set", "wan", "address", own.0]).unwrap();
    host.ip(["addr", "add", &format!("{}/24", own.1), "dev", "wan"]).unwrap();
    host.ip(["neigh", "add", other.1, "lladdr", other.0, "dev", "wan", "nud", "permanent"]).unwrap();
}

#[test]
fn what_ping_misses_is_what_the_link_lost() {
    let Some(cable) = Cable::lay(&["--loss", "20%", "--delay", "5ms", "--seed", "1"]) else { return };
    let (answers, _) = cable.ping(100);
    let [there, back] = cable.end();
    assert_eq!((there.of("sent"), back.of("sent")), (100, there.of("arrived")));
    assert_eq!((back.of("arrived"), there.of("lost") + back.of("lost")), (answers, 100 - answers));
    // The same seed and as many packets: the same losses, on every machine.
    assert_eq!((there.of("lost"), back.of("lost")), (21, 18));
}

#[test]
fn a_round_trip_takes_the_delay_of_both_ways() {
    let Some(cable) = Cable::lay(&["--delay", "20ms", "--jitter", "5ms"]) else { return };
    let (answers, said) = cable.ping(5);
    assert_eq!(answers, 5, "{said}");
    let least = said.split("rtt min/avg/max/mdev = ").nth(1).and_then(|times| times.split('/').next());
    let least: f64 = least.and_then(|least| least.parse().ok()).unwrap_or_else(|| panic!("{said}"));
    assert!(least >= 40.0, "{said}");
}

#[test]
fn ping_sees_every_packet_twice() {
    let Some(cable) = Cable::lay(&["--duplicate", "100%"]) else { return };
    let (_, said) = cable.ping(5);
    assert!(said.contains("(DUP!)"), "{said}");
    // Two requests make two answers, and each of these becomes two.
    let [there, back] = cable.end();
    assert_eq!([there.of("sent"), there.of("arrived"), back.of("sent"), back.of("arrived")], [5, 10, 10, 20]);
}

#[test]
fn a_download_through_a_bad_network_is_whole() {
    let properties = "--rate 100mbit --delay 2ms --jitter 1ms --loss 3% --burst 3 --duplicate 1% --corrupt 1% \
                      --reorder 2% --reorder-by 3ms --queue 200 --codel --seed 5";
    let Some(cable) = Cable::lay(&properties.split(' ').collect::<Vec<_>>()) else { return };
    let content: Vec<u8> = (0..2_000_000u32).map(|n| (n ^ n >> 8 ^ n >> 16) as u8).collect();
    fs::write(cable.folder.path().join("content"), &content).unwrap();
    let folder = cable.folder.path().to_str().unwrap().to_owned();
    let serve = ["-m", "http.server", "80", "--directory", &folder];
    let _server = cable.rig.client.spawn("python3", serve).unwrap();
    let up = || cable.rig.client.run("bash", ["-c", "exec 3<>/dev/tcp/127.0.0.1/80"]).is_ok();
    assert!(within(PATIENCE, up), "the server does not start");
    // A burst is counted in packets. A sender that has nothing left but to try again, each time after
    // twice as long, would stay in it for its whole patience: pings let the line go on.
    let _pings = cable.rig.server.spawn("ping", ["-q", "-i", "0.01", RIGHT]).unwrap();
    let mut curl = cable.rig.server.command("curl");
    let got = bytes(curl.args(["-sSf", "--max-time", "60", &format!("http://{RIGHT}/content")]));
    assert!(got == content, "{} of {} bytes", got.len(), content.len());
    // Linux's offloads are off, so every packet is one of 1 460 bytes at the most.
    let [_, back] = cable.end();
    assert!(back.of("sent") >= 2_000_000 / 1_460, "{}", back.line);
    for fault in ["lost", "duplicated", "corrupted"] {
        assert!(back.of(fault) > 0, "nothing was {fault}: {}", back.line);
    }
}

#[test]
fn it_ends_when_somebody_deletes_an_interface() {
    let Some(mut cable) = Cable::lay(&[]) else { return };
    cable.rig.client.ip(["link", "delete", "wan"]).unwrap();
    let status = cable.command.wait(PATIENCE).expect("it ends");
    assert_eq!(status.code(), Some(1));
    let gone = format!("silk: {}:wan is gone: somebody deleted the interface", cable.rig.client.namespace());
    assert!(cable.log().lines().any(|line| line == gone), "{}", cable.log());
    assert!(!cable.has_interface(&cable.rig.server));
}

#[test]
fn what_it_needs_is_said_in_one_sentence() {
    let silk = env!("CARGO_BIN_EXE_silk");
    let netem = ["netem", "--left", "silk-nowhere:wan", "--right", "silk-nowhere:lan"];
    let nobody = said(Command::new("unshare").args(["--user", silk]).args(netem));
    let message = "silk: netem needs root, to make interfaces in network namespaces\n";
    assert_eq!((nobody.ok, nobody.errors.as_str()), (false, message));
    if text(Command::new("id").arg("-u")).trim() == "0" {
        let nowhere = said(Command::new(silk).args(netem));
        assert!(nowhere.errors.starts_with("silk: silk-nowhere:wan: there is no such network namespace"));
    }
}
