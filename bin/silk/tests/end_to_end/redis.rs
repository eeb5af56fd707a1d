//! redis: many small requests on connections that stay open.

use crate::files::content;
use crate::host::Silk;
use crate::programs::{bytes, text};
use silk_testkit::netns::{Running, SERVER};
use std::fs::File;
use std::process::Command;
use std::time::Duration;

/// redis on silk's host.
pub fn redis(silk: &Silk) -> Running {
    let settings =
        ["--port", "6379", "--bind", "0.0.0.0", "--protected-mode", "no", "--save", "", "--appendonly", "no"];
    silk.serve("redis-server", &settings, 6379)
}

fn ask(silk: &Silk, words: &[&str]) -> Command {
    let mut client = silk.on_peer("redis-cli");
    client.args(["-h", &SERVER.to_string()]).args(words);
    client
}

#[test]
fn a_large_value_comes_back_as_it_went() {
    let Some(silk) = Silk::start() else { return };
    let server = redis(&silk);
    let value = silk.write("value", content(3_000_000));
    let set = text(ask(&silk, &["-x", "set", "key"]).stdin(File::open(value).unwrap()));
    assert_eq!(set.trim(), "OK");
    let mut got = bytes(&mut ask(&silk, &["--raw", "get", "key"]));
    assert_eq!(got.pop(), Some(b'\n'));
    assert!(got == content(3_000_000), "{} bytes came back, not the right ones", got.len());
    server.stop(Duration::from_secs(5));
    silk.linux_saw_nothing();
}

#[test]
fn the_benchmark_finds_no_error() {
    let Some(silk) = Silk::start() else { return };
    let server = redis(&silk);
    let mut benchmark = silk.on_peer("redis-benchmark");
    benchmark.args([
        "-h",
        &SERVER.to_string(),
        "-n",
        "20000",
        "-c",
        "50",
        "-t",
        "set,get,lrange_300",
        "--csv",
    ]);
    let report = text(&mut benchmark);
    assert!(!report.contains("rror"), "{report}");
    assert_eq!(
        report.lines().filter(|line| line.contains("SET") || line.contains("GET")).count(),
        2,
        "{report}"
    );
    let piped = text(benchmark.args(["-P", "16"]));
    assert!(!piped.contains("rror"), "{piped}");
    assert_eq!(text(&mut ask(&silk, &["ping"])).trim(), "PONG");
    server.stop(Duration::from_secs(5));
    silk.linux_saw_nothing();
}
