//! HAProxy in front of Apache, as the best that can be done today without touching the kernel or the
//! server: it passes few requests to Apache at a time and puts the preferred source's first in the queue.

use super::Failure;
use super::cpus::SERVER_CPU;
use super::stage::Stage;
use silk_testkit::netns::{PREFERRED, Running, SERVER};

/// Where Apache listens behind HAProxy, on the server's own loopback.
pub const BACKEND: &str = "127.0.0.1:8080";

/// Starts HAProxy on the server, passing at most `maxconn` requests to Apache at a time.
pub fn start(stage: &Stage, maxconn: u32) -> Result<Running, Failure> {
    let config = stage.scratch.write("haproxy.cfg", &config(maxconn))?;
    let mut command = stage.rig.server.command("taskset");
    command.args(["-c", SERVER_CPU, "haproxy", "-db", "-f"]).arg(config);
    stage.scratch.start(&mut command, "haproxy.out")
}

/// Connections to Apache are kept and used again, which is HAProxy's best case.
fn config(maxconn: u32) -> String {
    format!(
        "global
    nbthread 1
    maxconn 8192

defaults
    mode http
    timeout connect 30s
    timeout client 30s
    timeout server 30s
    timeout queue 30s

frontend web
    bind {SERVER}:80 backlog 8192
    http-request set-priority-class int(-1000) if {{ src {PREFERRED} }}
    default_backend apache

backend apache
    http-reuse always
    server apache {BACKEND} maxconn {maxconn}
"
    )
}
