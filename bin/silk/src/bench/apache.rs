//! Debian's Apache, unmodified, as every system runs it: prefork, 128 processes, one configuration that
//! differs only in where it listens.

use super::Failure;
use super::cpus::SERVER_CPU;
use super::rights::Rights;
use super::stage::Stage;
use silk_testkit::apache::{Apache, USER, standing};
use silk_testkit::netns::Running;
use std::fs;

/// Processes that wait for requests (SILK §4.2 uses 100 and stays below them with its clients).
const PROCESSES: u32 = 128;

/// Starts Apache on the server, listening at `address`, with `runner` in front of its command line.
pub fn start(stage: &Stage, address: &str, runner: &[&str]) -> Result<Running, Failure> {
    let config = stage.scratch.write("apache.conf", &config(stage, address))?;
    let mut command = stage.rig.server.command("taskset");
    command.args(["-c", SERVER_CPU]).args(user(stage.rights)).args(runner);
    command.args(["apache2", "-DFOREGROUND", "-f"]).arg(config);
    stage.scratch.start(&mut command, "apache.out")
}

/// What Apache said since it was started.
pub fn log(stage: &Stage) -> String {
    let read = |name| fs::read_to_string(stage.scratch.path().join(name)).unwrap_or_default();
    read("apache.out") + &read("apache.err")
}

/// What differs from Apache's defaults beside the number of processes, and what must not differ from them.
const SETTINGS: &str = "ListenBacklog 8192
MaxConnectionsPerChild 0
KeepAlive On
EnableMMAP On
EnableSendfile Off
";

fn config(stage: &Stage, address: &str) -> String {
    let apache = Apache {
        folder: stage.scratch.path(),
        listen: address,
        model: "prefork",
        user: (stage.rights == Rights::Root).then_some(USER),
        settings: &(SETTINGS.to_owned() + &standing(PROCESSES)),
    };
    apache.configuration()
}

/// Apache refuses to serve as root, and cannot become another user where there is only one: there it
/// starts as that other user, in a user namespace inside ours.
fn user(rights: Rights) -> &'static [&'static str] {
    match rights {
        Rights::UserNamespace => &["unshare", "-U", "--map-user=33", "--map-group=33"],
        _ => &[],
    }
}
