//! Debian's Apache, with a process for each connection and with threads.

use crate::files::{Slowly, fetch_all, hammer, site};
use crate::host::{MODES, Silk};
use crate::programs::{text, within};
use silk_testkit::apache::{Apache, USER};
use silk_testkit::netns::{Running, SERVER, signal};
use std::time::Duration;

/// Apache on silk's host with this processing model and these settings.
pub fn apache(silk: &Silk, model: &str, settings: &str) -> Running {
    apache_at(silk, "0.0.0.0:80", model, settings)
}

/// The same, listening there.
pub fn apache_at(silk: &Silk, listen: &str, model: &str, settings: &str) -> Running {
    let folder = silk.path("");
    let config = Apache { folder: &folder, listen, model, user: Some(USER), settings }.configuration();
    let config = silk.write("apache.conf", config);
    silk.serve("apache2", &["-DFOREGROUND", "-f", &config.to_string_lossy()], 80)
}

#[test]
fn prefork_serves_every_file_as_it_is() {
    for mode in MODES {
        let Some(silk) = Silk::start_in(mode) else { return };
        site(&silk);
        // Apache ends spare processes by connecting to itself, which goes over Linux's loopback.
        let limits = "StartServers 8\nMaxRequestWorkers 32\nMaxSpareServers 32";
        let server = apache(&silk, "prefork", limits);
        fetch_all(&silk, 80);
        hammer(&silk, 80);
        server.stop(Duration::from_secs(5));
        silk.linux_saw_nothing();
    }
}

#[test]
fn prefork_with_sendfile_serves_every_file_as_it_is() {
    let Some(silk) = Silk::start() else { return };
    site(&silk);
    let server = apache(&silk, "prefork", "EnableSendfile On\nEnableMMAP Off");
    fetch_all(&silk, 80);
    server.stop(Duration::from_secs(5));
    silk.linux_saw_nothing();
}

#[test]
fn event_serves_every_file_as_it_is() {
    let Some(silk) = Silk::start() else { return };
    site(&silk);
    let server = apache(&silk, "event", "StartServers 2\nThreadsPerChild 16\nMaxRequestWorkers 64");
    fetch_all(&silk, 80);
    hammer(&silk, 80);
    server.stop(Duration::from_secs(5));
    silk.linux_saw_nothing();
}

#[test]
fn a_graceful_restart_loses_nothing() {
    let Some(silk) = Silk::start() else { return };
    site(&silk);
    let server = apache(&silk, "prefork", "StartServers 4");
    let under_way = Slowly::fetch(&silk, silk.on_peer("python3"), SERVER, 80);
    fetch_all(&silk, 80);
    assert!(!silk.connections().is_empty(), "nothing is under way");
    signal(&[server.id()], "USR1");
    let resumed =
        || std::fs::read_to_string(silk.path("apache.err")).unwrap().matches("resuming").count() == 2;
    assert!(within(Duration::from_secs(10), resumed), "Apache did not restart");
    fetch_all(&silk, 80);
    under_way.ends_well(&silk);
    server.stop(Duration::from_secs(5));
}

/// TCP segments that the peer has received.
fn segments(silk: &Silk) -> u64 {
    let counters = text(silk.on_peer("cat").arg("/proc/net/snmp"));
    let mut tcp = counters.lines().filter(|line| line.starts_with("Tcp:")).map(str::split_whitespace);
    let (names, values) = (tcp.next().unwrap(), tcp.next().unwrap());
    let found = names.zip(values).find(|(name, _)| *name == "InSegs");
    found.unwrap().1.parse().unwrap()
}

/// The handshake's, the answer's with its FIN, and the acknowledgement of the peer's FIN. A machine that
/// is slow for a while answers the request with an acknowledgement first, so the best of several tries counts.
#[test]
fn a_small_answer_is_three_segments() {
    let Some(silk) = Silk::start() else { return };
    site(&silk);
    let server = apache(&silk, "prefork", "StartServers 4\nKeepAlive Off");
    let tries = (0..5).map(|_| {
        let before = segments(&silk);
        (0..10).for_each(|_| {
            text(silk.on_peer("curl").args(["-sSf", "-o", "/dev/null", &format!("http://{SERVER}/1")]));
        });
        // The last acknowledgement waits a little for company.
        std::thread::sleep(Duration::from_millis(100));
        segments(&silk) - before
    });
    assert_eq!(tries.min(), Some(30));
    server.stop(Duration::from_secs(5));
}
