//! A flood of datagrams at a receive thread among ordinary threads: it is held back while it brings more than there is
//! room for, and only then, and the program gets datagrams all the time.

use crate::host::Silk;
use crate::programs::{beside, text, within};
use silk_testkit::netns::{INTERFACE, SERVER, signal};
use std::fs;
use std::time::Duration;

/// Counts datagrams, and says each second's in a line.
const COUNTER: &str = "import socket, time
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.bind((\"0.0.0.0\", 5000))
one.settimeout(0.2)
print(\"ready\", flush=True)
while True:
    count, end = 0, time.monotonic() + 1
    while time.monotonic() < end:
        try:
            count += len(one.recv(2048)) > 0
        except TimeoutError:
            pass
    print(count, flush=True)
";
/// `SCHED_IDLE` of sched(7).
const IDLE: &str = "5";
/// How long anything here may take.
const LONG: Duration = Duration::from_secs(20);

#[test]
fn a_flood_holds_the_receive_thread_back_and_the_program_is_served() {
    let device = format!(
        "kind = \"xdp\"\ninterface = \"{INTERFACE}\"\nnapi = \"threaded\"\nnapi_cpu = 0\nring = 256\n"
    );
    let classes = "[scheduler]\ncpus = [0]\n\n[[class]]\nname = \"all\"\ndefault = true\n";
    let Some(silk) = Silk::start_with(&device, classes) else { return };
    let mut counter = silk.on_paths("taskset");
    let counter = silk.start_logged(counter.args(["-c", "0", "python3", "-c", COUNTER]), "counter");
    silk.until_says("counter", "ready");
    assert!(!is_held_back());

    let mac = text(silk.on_linux("cat").arg(format!("/sys/class/net/{INTERFACE}/address")));
    let mut flood = silk.on_peer(&beside("silk").display().to_string());
    flood.args([
        "bench",
        "end",
        "flood",
        "datagrams",
        "--to",
        &format!("{SERVER}:5000"),
        "--mac",
        mac.trim(),
    ]);
    flood.args(["--interface", INTERFACE, "--milliseconds", &LONG.as_millis().to_string()]);
    let mut flood = silk.start_logged(&mut flood, "flood");
    assert!(within(LONG, is_held_back), "it was never held back: {}", silk.log("flood"));
    let seconds =
        || silk.log("counter").lines().filter_map(|line| line.parse::<u64>().ok()).collect::<Vec<_>>();
    let before = seconds().len();
    assert!(within(LONG, || seconds().len() > before + 1), "{}", silk.log("counter"));
    assert!(seconds()[before + 1] > 0, "nothing arrived in a whole second: {:?}", seconds());

    signal(&[flood.id()], "INT");
    assert!(within(LONG, || flood.ended().is_some()), "the flood goes on");
    assert!(within(LONG, || !is_held_back()), "it is still held back");
    drop(counter);
}

/// Whether a receive thread of this name is behind all ordinary threads: of other tests none is.
fn is_held_back() -> bool {
    let processes = fs::read_dir("/proc").expect("there are processes");
    processes.flatten().any(|process| {
        let stat = fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        // Behind the name, which may have spaces; proc(5) counts from 1, and the policy is 41.
        let Some((name, rest)) = stat.rsplit_once(')') else { return false };
        name.contains(&format!("(napi/{INTERFACE}")) && rest.split_whitespace().nth(41 - 3) == Some(IDLE)
    })
}
