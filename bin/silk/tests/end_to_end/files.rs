//! Files to be served, and the comparison of what arrives with what was there.

use crate::host::Silk;
use crate::programs::{bytes, text};
use silk_testkit::netns::{Running, SERVER};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Command;
use std::time::Duration;

/// From nothing to more than any ring holds, around the sizes of segments and rings.
pub const SIZES: [usize; 8] = [0, 1, 1448, 1449, 50_000, 65_536, 700_000, 5_000_000];

/// Bytes that repeat only after a long while, so that a piece in a wrong place is a wrong piece.
pub fn content(size: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ size as u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..size).map(|_| next()).collect()
}

/// Makes the folder `site` with a file of each size.
pub fn site(silk: &Silk) {
    let site = silk.path("site");
    fs::create_dir(&site).unwrap();
    SIZES.iter().for_each(|size| fs::write(site.join(size.to_string()), content(*size)).unwrap());
}

/// The peer fetches every file, alone and then several at a time, and gets what was written.
pub fn fetch_all(silk: &Silk, port: u16) {
    fetch_each(|| silk.on_peer("curl"), SERVER, port);
    fetch_together(silk, port);
}

/// Every file, one after the other, by this curl.
pub fn fetch_each(curl: impl Fn() -> Command, at: impl Into<IpAddr>, port: u16) {
    let at = SocketAddr::new(at.into(), port);
    for size in SIZES {
        let url = format!("http://{at}/{size}");
        let got = bytes(curl().args(["-sSf", "--globoff", "--max-time", "20", &url]));
        assert!(got == content(size), "{url}: {} bytes arrived, not the right ones", got.len());
    }
}

/// A fetch of `size` bytes that takes long, for whoever looks at its connection meanwhile.
pub struct Slowly {
    size: usize,
    reader: Running,
}

impl Slowly {
    /// Begins to fetch the largest file by this Python.
    pub fn fetch(silk: &Silk, mut python: Command, at: impl Into<IpAddr>, port: u16) -> Self {
        let script = silk.write("slow_reader.py", include_str!("slow_reader.py"));
        let size = SIZES.into_iter().max().unwrap_or(0);
        let url = format!("http://{}/{size}", SocketAddr::new(at.into(), port));
        python.arg(script).arg(url).arg(silk.path("slow"));
        Self { size, reader: silk.start_logged(&mut python, "slow") }
    }

    /// Waits until it is done, and compares.
    pub fn ends_well(mut self, silk: &Silk) {
        let ended = self.reader.wait(Duration::from_secs(60));
        assert!(ended.is_some_and(|ended| ended.success()), "{}", silk.log("slow"));
        assert!(fs::read(silk.path("slow")).unwrap() == content(self.size));
    }
}

/// Many connections at once, each with its own file and name for the answer.
fn fetch_together(silk: &Silk, port: u16) {
    let url = format!("http://{SERVER}:{port}/{{1449,50000,700000}}?[1-20]");
    let mut curl = silk.on_peer("curl");
    curl.args(["-sSf", "--max-time", "30", "--parallel", "--no-keepalive", "-H", "Connection: close"]);
    bytes(curl.args(["-o", "got-#1-#2", &url]));
    for size in [1449, 50_000, 700_000] {
        for number in 1..=20 {
            let got = fs::read(silk.path(&format!("got-{size}-{number}"))).unwrap();
            assert!(
                got == content(size),
                "{size} bytes, fetch {number}: {} bytes, not the right ones",
                got.len()
            );
        }
    }
}

/// ApacheBench's own count of what went wrong with many short connections.
pub fn hammer(silk: &Silk, port: u16) {
    hammer_from(silk.on_peer("ab"), SERVER, port);
}

/// As [`hammer`], by this ApacheBench.
pub fn hammer_from(mut ab: Command, at: Ipv4Addr, port: u16) {
    let url = format!("http://{at}:{port}/50000");
    let report = text(ab.args(["-q", "-n", "2000", "-c", "32", &url]));
    let line = |name| report.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    let count = |name| line(name).split_whitespace().last().unwrap_or_default().to_owned();
    assert_eq!(
        (count("Complete requests:"), count("Failed requests:")),
        ("2000".into(), "0".into()),
        "{report}"
    );
    assert_eq!(line("Document Length:").split_whitespace().nth(2), Some("50000"), "{report}");
    assert_eq!(line("Non-2xx responses:"), "", "{report}");
}
