//! Whom programs on silk do not serve (`[refuse]`): who becomes refused by a reload loses what they have and gets nothing more,
//! nobody else notices, and all is as before once they are not refused any more.

use crate::files::{content, site};
use crate::host::Silk;
use crate::programs::{Said, said, text, within};
use silk_testkit::netns::{CLIENT, CLIENT6, INTERFACE, PREFERRED, PREFERRED6, SERVER, SERVER6};
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use std::time::Duration;

const CLASSES: &str = "[[class]]\nname = \"all\"\ndefault = true\n";
/// Connections that somebody has who becomes refused: more than are looked at in a turn.
const HELD: &str = "300";
const PROGRAM: &str = include_str!("refusing.py");

/// A daemon with these keys of `[device]`, which from its next reload on refuses those in the file `refused`.
fn start(device: &str) -> Option<Silk> {
    let silk = Silk::start_with(device, CLASSES)?;
    silk.write("refusing.py", PROGRAM);
    let config = fs::read_to_string(silk.path("silk.toml")).unwrap();
    let refused = silk.path("refused");
    silk.write("silk.toml", format!("{config}\n[refuse]\nfile = \"{}\"\n", refused.display()));
    Some(silk)
}

/// Reloads with this text in the file.
fn refuse(silk: &Silk, refused: &str) -> Said {
    silk.write("refused", refused);
    said(&mut reload(silk))
}

fn reload(silk: &Silk) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_silk"));
    command.env("SILK_SOCKET", silk.path("control.sock")).arg("reload");
    command
}

fn applied(silk: &Silk, refused: &str, told: &str) {
    let said = refuse(silk, refused);
    let told = format!("applied: who is refused: {told}\n");
    assert_eq!((said.ok, String::from_utf8(said.bytes).unwrap()), (true, told), "{}", said.errors);
}

/// Whether the web server of `at` serves `source`.
fn is_served(silk: &Silk, source: impl Into<IpAddr>, at: impl Into<IpAddr>) -> bool {
    let at = match at.into() {
        IpAddr::V4(at) => at.to_string(),
        IpAddr::V6(at) => format!("[{at}]"),
    };
    let mut curl = silk.on_peer("curl");
    curl.args(["-sf", "--max-time", "3", "--interface", &source.into().to_string()]);
    let got = said(curl.arg(format!("http://{at}/1449")));
    assert!(!got.ok || got.bytes == content(1449));
    got.ok
}

/// Whether the other server answers a datagram from `source`.
fn is_answered(silk: &Silk, source: Ipv4Addr, at: Ipv4Addr) -> bool {
    let mut python = silk.on_peer("python3");
    text(python.args(["refusing.py", "ask", &at.to_string(), &source.to_string()])) == "True\n"
}

/// What was dropped for that reason.
fn dropped(silk: &Silk, reason: &str) -> u64 {
    let report = silk.report();
    let drops = report["drops"].as_array().unwrap().clone();
    drops.iter().filter(|drop| drop["reason"] == reason).map(|drop| drop["count"].as_u64().unwrap()).sum()
}

/// Servers on silk at `at`, of which a client that becomes refused has connections.
fn who_becomes_refused_is_not_served(silk: &Silk, at: Ipv4Addr, reason: &str) {
    site(silk);
    let _web = silk.serve_at("python3", &["-m", "http.server", "80", "--directory", "site"], at, 80);
    let mut python = silk.on_paths("python3");
    let _other = silk.start_logged(python.args(["refusing.py", "serve", HELD]), "other");
    silk.until_says("other", "ready");
    let mut python = silk.on_peer("python3");
    let held = silk.start_logged(python.args(["refusing.py", "hold", &at.to_string(), HELD]), "held");
    silk.until_says("held", "welcome");

    applied(
        silk,
        &format!("# who knocks too often\n{CLIENT}\n{CLIENT6}/128\n192.0.2.0/24\n"),
        "2 ranges of IPv4 addresses, 1 of IPv6",
    );
    let told = || ["held", "other"].map(|log| silk.log(log).contains("all reset\n"));
    assert!(within(Duration::from_secs(5), || told() == [true, true]), "{:?}", told());
    drop(held);
    assert_eq!([CLIENT, PREFERRED].map(|source| is_served(silk, source, at)), [false, true]);
    assert_eq!([CLIENT, PREFERRED].map(|source| is_answered(silk, source, at)), [false, true]);
    assert!(dropped(silk, reason) >= 2, "{}", silk.report());

    let said = refuse(silk, "192.0.2.1\nnobody\n");
    let refused = silk.path("refused");
    let place = format!("{}:2:1: `nobody` is not an IP prefix", refused.display());
    assert!(!said.ok && said.errors.contains(&place), "{}", said.errors);
    // The file's fault, as of `silk check`; then the machine's.
    assert_eq!(reload(silk).status().unwrap().code(), Some(2));
    fs::remove_file(&refused).unwrap();
    assert_eq!(reload(silk).status().unwrap().code(), Some(1));
    assert_eq!([CLIENT, PREFERRED].map(|source| is_served(silk, source, at)), [false, true]);

    applied(silk, "", "0 ranges of IPv4 addresses, 0 of IPv6");
    assert_eq!([CLIENT, PREFERRED].map(|source| is_served(silk, source, at)), [true, true]);
    assert!(is_answered(silk, CLIENT, at));
}

#[test]
fn who_becomes_refused_is_not_served_wherever_packets_are_told_apart() {
    for mode in ["native", "generic", "ingress"] {
        let device = format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\nmode = \"{mode}\"\n");
        let Some(silk) = start(&device) else { return };
        who_becomes_refused_is_not_served(&silk, SERVER, "device: refused source");
        silk.linux_saw_nothing();
    }
}

#[test]
fn nor_where_silk_has_an_address_of_its_own() {
    let own = Ipv4Addr::new(10, 99, 0, 9);
    let Some(silk) =
        start(&format!("kind = \"packet\"\ninterface = \"{INTERFACE}\"\naddress = \"{own}/24\"\n"))
    else {
        return;
    };
    who_becomes_refused_is_not_served(&silk, own, "refused source");
}

#[test]
fn over_either_ip_and_the_machine_itself_and_whom_a_program_asks_answers_all_the_same() {
    let Some(silk) = start(&format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\n")) else { return };
    site(&silk);
    let words = ["-m", "http.server", "80", "--bind", "::", "--directory", "site"];
    let _web = silk.serve("python3", &words, 80);
    let here = |silk: &Silk| {
        said(silk.on_linux("curl").args(["-sf", "--max-time", "3", "http://127.0.0.1/1449"])).ok
    };
    assert!(here(&silk) && is_served(&silk, CLIENT6, SERVER6));
    applied(&silk, &format!("fd99::2\n127.0.0.0/8\n{CLIENT}\n"), "2 ranges of IPv4 addresses, 1 of IPv6");
    assert_eq!([CLIENT6, PREFERRED6].map(|source| is_served(&silk, source, SERVER6)), [false, true]);
    assert!(!here(&silk));
    // They are asked, and answer.
    let _peer = silk.serve_on_peer("python3", &["-m", "http.server", "81", "--directory", "site"], 81);
    let got =
        said(silk.on_paths("curl").args(["-sf", "--max-time", "5", &format!("http://{CLIENT}:81/1449")]));
    assert!(got.ok && got.bytes == content(1449), "{}", got.errors);
}

#[test]
fn a_list_that_is_not_there_keeps_the_daemon_from_starting_and_says_who_wants_it() {
    let Some(silk) = start(&format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\n")) else { return };
    let (config, refused) = (silk.path("silk.toml"), silk.path("refused"));
    let told = format!(
        "there is no file `{}`; `{}` names it in its `[refuse]`",
        refused.display(),
        config.display()
    );
    let mut check = Command::new(env!("CARGO_BIN_EXE_silk"));
    let checked = said(check.arg("check").arg(&config));
    assert!(!checked.ok && checked.errors.contains(&told), "{}", checked.errors);
    // The list is read before anything else is wanted of the machine.
    let mut again = silk.on_linux(crate::programs::beside("silkd").to_str().unwrap());
    let started = said(again.arg("--config").arg(&config));
    assert!(!started.ok && started.errors.contains(&told), "{}", started.errors);
}
