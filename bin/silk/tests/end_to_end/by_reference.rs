//! Bytes of files that are sent from where the kernel keeps them, and what becomes of them when the file,
//! or the memory that it was mapped to, becomes another.

use crate::apache::apache;
use crate::files::{content, site};
use crate::host::Silk;
use crate::nginx::nginx_at;
use crate::programs::{bytes, text, within};
use silk_testkit::netns::{Running, SERVER, signal};
use std::fs;
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes of a file that a send ring holds, beside what an HTTP server says first.
const SIZE: usize = 400_000;

/// Silk's host with a file of that size, in the site's folder.
fn silk_with_file(keys: &str) -> Option<Silk> {
    let device = "kind = \"xdp\"\ninterface = \"eth0\"\n";
    let silk = Silk::start_with(
        device,
        &format!("{keys}\n[[class]]\nname = \"all\"\npriority = 0\ndefault = true\n"),
    )?;
    site(&silk);
    silk.write(&format!("site/{SIZE}"), content(SIZE));
    Some(silk)
}

/// Whether the daemon keeps the file of the site in memory.
fn is_kept(silk: &mut Silk, name: &str) -> bool {
    keeps(silk.daemon().id(), &silk.path("site").join(name))
}

/// Whether a process has mapped a file.
fn keeps(process: u32, file: &Path) -> bool {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
    maps.lines().any(|line| line.split(' ').any(|word| Path::new(word) == file))
}

fn fetch(silk: &Silk, name: &str) -> Vec<u8> {
    bytes(silk.on_peer("curl").args(["-sSf", "--max-time", "20", &format!("http://{SERVER}/{name}")]))
}

/// Fetches a file until the daemon keeps it, and once more; each time it is right.
fn fetch_until_kept(silk: &mut Silk, size: usize) {
    let name = size.to_string();
    let kept = within(PATIENCE, || {
        assert!(fetch(silk, &name) == content(size));
        is_kept(silk, &name)
    });
    assert!(kept, "{name} is copied each time");
    assert!(fetch(silk, &name) == content(size));
}

/// A peer that asks for the file and takes none of it before it is told to.
struct Waiting(Running);

impl Waiting {
    fn ask(silk: &Silk) -> Self {
        let script = silk.write("waiting_reader.py", include_str!("waiting_reader.py"));
        let mut python = silk.on_peer("python3");
        python
            .arg(script)
            .args([&SERVER.to_string(), &SIZE.to_string()])
            .arg(silk.path("go"))
            .arg(silk.path("got"));
        let reader = silk.start_logged(&mut python, "waiting");
        let queued = |path: &serde_json::Value| path["queue"][1].as_u64().unwrap_or(0);
        let waits = || silk.connections().iter().map(queued).max().unwrap_or(0) > SIZE as u64 / 2;
        assert!(within(PATIENCE, waits), "nothing waits to be sent: {}", silk.log("waiting"));
        Self(reader)
    }

    fn goes_on(mut self, silk: &Silk) -> Vec<u8> {
        silk.write("go", "");
        let ended = self.0.wait(PATIENCE);
        assert!(ended.is_some_and(|ended| ended.success()), "{}", silk.log("waiting"));
        fs::read(silk.path("got")).unwrap()
    }
}

#[test]
fn a_file_that_is_changed_arrives_as_it_was_when_it_was_sent() {
    let Some(mut silk) = silk_with_file("") else { return };
    let server = nginx_at(&silk, "listen 80;", 1);
    fetch_until_kept(&mut silk, SIZE);
    let waiting = Waiting::ask(&silk);
    let other: Vec<u8> = content(SIZE).iter().map(|byte| !byte).collect();
    // Returns when the daemon has given the file back.
    silk.write(&format!("site/{SIZE}"), &other);
    assert!(!is_kept(&mut silk, &SIZE.to_string()));
    assert!(waiting.goes_on(&silk).ends_with(&content(SIZE)), "not the file as it was");
    assert!(fetch(&silk, &SIZE.to_string()) == other, "not the file as it is");
    server.stop(Duration::from_secs(5));
    silk.linux_saw_nothing();
}

#[test]
fn a_file_that_is_cut_arrives_as_it_was_when_it_was_sent() {
    let Some(mut silk) = silk_with_file("") else { return };
    let server = apache(&silk, "prefork", "StartServers 2\nMaxRequestWorkers 4\nMaxSpareServers 4");
    fetch_until_kept(&mut silk, SIZE);
    let waiting = Waiting::ask(&silk);
    fs::OpenOptions::new().write(true).open(silk.path(&format!("site/{SIZE}"))).unwrap().set_len(0).unwrap();
    assert!(waiting.goes_on(&silk).ends_with(&content(SIZE)), "not the file as it was");
    assert_eq!(fetch(&silk, &SIZE.to_string()), b"");
    server.stop(Duration::from_secs(5));
}

#[test]
fn what_is_deleted_or_whose_program_is_gone_is_let_go_of() {
    let Some(mut silk) = silk_with_file("") else { return };
    let server = apache(&silk, "prefork", "StartServers 2\nMaxRequestWorkers 4\nMaxSpareServers 4");
    fetch_until_kept(&mut silk, SIZE);
    fetch_until_kept(&mut silk, 50_000);
    fs::remove_file(silk.path(&format!("site/{SIZE}"))).unwrap();
    assert!(within(PATIENCE, || !is_kept(&mut silk, &SIZE.to_string())), "a deleted file is kept");
    assert!(is_kept(&mut silk, "50000"));
    let workers = text(silk.on_linux("pgrep").args(["-P", &server.id().to_string()]));
    let workers: Vec<u32> = workers.lines().map(|id| id.parse().unwrap()).collect();
    signal(&[&[server.id()], workers.as_slice()].concat(), "KILL");
    assert!(within(PATIENCE, || !is_kept(&mut silk, "50000")), "a file is kept for nobody");
}

#[test]
fn what_a_program_that_is_gone_has_sent_arrives_as_it_was() {
    let Some(mut silk) = silk_with_file("") else { return };
    let server = nginx_at(&silk, "listen 80;", 1);
    fetch_until_kept(&mut silk, SIZE);
    assert_eq!(silk.report()["file_bytes"], SIZE);
    let waiting = Waiting::ask(&silk);
    server.stop(Duration::from_secs(5));
    let gone = within(PATIENCE, || !is_kept(&mut silk, &SIZE.to_string()));
    assert!(gone, "a file is kept for nobody");
    silk.write(&format!("site/{SIZE}"), b"other bytes");
    assert!(waiting.goes_on(&silk).ends_with(&content(SIZE)), "not the file as it was");
}

#[test]
fn without_room_for_files_all_is_copied() {
    let Some(mut silk) = silk_with_file("[memory]\nfiles = \"0\"\n") else { return };
    let server = nginx_at(&silk, "listen 80;", 1);
    for _ in 0..4 {
        assert!(fetch(&silk, &SIZE.to_string()) == content(SIZE));
        assert!(!is_kept(&mut silk, &SIZE.to_string()));
    }
    server.stop(Duration::from_secs(5));
}

#[test]
fn memory_that_is_no_file_any_more_is_sent_as_it_is() {
    let Some(mut silk) = silk_with_file("") else { return };
    let script = silk.write("mapping.py", include_str!("mapping.py"));
    let (daemon, file) = (silk.daemon().id(), silk.path(&format!("site/{SIZE}")));
    let server = silk.serve("python3", &[script.as_os_str(), file.as_os_str()], 7000);
    let said = |how: &str| {
        let ask = format!("exec 3<>/dev/tcp/{SERVER}/7000; echo {how} >&3; cat <&3");
        bytes(silk.on_peer("bash").args(["-c", &ask]))
    };
    let known = within(PATIENCE, || {
        assert!(said("file") == content(SIZE));
        keeps(daemon, &file)
    });
    assert!(known, "the file is copied each time");
    assert!(said("file") == content(SIZE));
    for (how, byte) in [("written", 1), ("mapped", 2), ("moved", 3)] {
        assert!(said(how) == vec![byte; SIZE], "{how}: not what the memory held");
    }
    assert!(said("file") == content(SIZE) && keeps(daemon, &file));
    // Whose peer is gone keeps no file from changing, though its program has not heard of it.
    let ask = format!("exec 3<>/dev/tcp/{SERVER}/7000; echo held >&3; head -c 1 <&3");
    bytes(silk.on_peer("bash").args(["-c", &ask]));
    let writer = std::thread::spawn({
        let file = file.clone();
        move || fs::write(file, content(SIZE)).unwrap()
    });
    assert!(within(PATIENCE, || writer.is_finished()), "the file is held");
    assert!(said("file") == content(SIZE));
    drop(server);
}
