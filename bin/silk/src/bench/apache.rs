//! Debian's Apache, unmodified, as every system runs it: prefork, 128 processes, one configuration that
//! differs only in where it listens.

use super::Failure;
use super::rights::Rights;
use super::stage::{SERVER_CPU, Stage};
use silk_testkit::netns::Running;
use std::fs::{self, File};

/// Processes that wait for requests (SILK §4.2 uses 100 and stays below them with its clients).
const PROCESSES: u32 = 128;
/// Where Debian keeps Apache's modules.
const MODULES: &str = "/usr/lib/apache2/modules";

/// Starts Apache on the server, listening at `address`, with `runner` in front of its command line.
pub fn start(stage: &Stage, address: &str, runner: &[&str]) -> Result<Running, Failure> {
    let folder = stage.scratch.path();
    let config = stage.scratch.write("apache.conf", &config(stage, address))?;
    let log = folder.join("apache.out");
    let out = File::create(&log).map_err(Failure::file(&log))?;
    let errors = out.try_clone().map_err(Failure::file(&log))?;
    let mut command = stage.rig.server.command("taskset");
    command.args(["-c", SERVER_CPU]).args(user(stage.rights)).args(runner);
    command.args(["apache2", "-DFOREGROUND", "-f"]).arg(config);
    Ok(Running::start(command.stdout(out).stderr(errors))?)
}

/// What Apache said since it was started.
pub fn log(stage: &Stage) -> String {
    let read = |name| fs::read_to_string(stage.scratch.path().join(name)).unwrap_or_default();
    read("apache.out") + &read("apache.err")
}

fn config(stage: &Stage, address: &str) -> String {
    let folder = stage.scratch.path().display();
    let site = stage.scratch.site();
    let site = site.display();
    let user = if stage.rights == Rights::Root { "User www-data\nGroup www-data" } else { "" };
    format!(
        "ServerRoot {folder}
ServerName server
Listen {address}
ListenBacklog 8192
PidFile {folder}/apache.pid
DefaultRuntimeDir {folder}
ErrorLog {folder}/apache.err
{user}
LoadModule mpm_prefork_module {MODULES}/mod_mpm_prefork.so
LoadModule authz_core_module {MODULES}/mod_authz_core.so
ServerLimit {PROCESSES}
StartServers {PROCESSES}
MinSpareServers {PROCESSES}
MaxSpareServers {PROCESSES}
MaxRequestWorkers {PROCESSES}
MaxConnectionsPerChild 0
KeepAlive On
EnableMMAP On
EnableSendfile Off
DocumentRoot {site}
<Directory />
    Options FollowSymLinks
    AllowOverride None
    Require all granted
</Directory>
"
    )
}

/// Apache refuses to serve as root, and cannot become another user where there is only one: there it
/// starts as that other user, in a user namespace inside ours.
fn user(rights: Rights) -> &'static [&'static str] {
    match rights {
        Rights::UserNamespace => &["unshare", "-U", "--map-user=33", "--map-group=33"],
        _ => &[],
    }
}
