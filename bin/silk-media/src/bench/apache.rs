//! Apache under load on the player's CPU, over Linux's stack: ordinary work of the same machine, which takes
//! whatever the player leaves it.

use crate::peers::Process;
use crate::trouble::Trouble;
use silk_testkit::apache;
use silk_testkit::netns::{Rig, SERVER};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Processes that wait for requests.
const PROCESSES: u32 = 32;
/// Clients at a time.
const CLIENTS: &str = "16";
/// Bytes of the file that they ask for.
const FILE: usize = 1024;

/// Apache and its clients; both end when this is dropped.
pub struct Apache {
    clients: Process,
    said: PathBuf,
    _server: Process,
}

impl Apache {
    /// Starts Apache on this CPU of the server and loads it from CPU 0 of the client, for an hour at most.
    ///
    /// # Errors
    /// It is not installed, or does not start.
    pub fn under_load(rig: &Rig, cpu: &str, scratch: &Path) -> Result<Self, Trouble> {
        let folder = scratch.join("apache");
        let site = folder.join("site");
        let config = folder.join("apache.conf");
        let prepared = fs::create_dir_all(&site)
            .and_then(|()| fs::write(site.join("file"), [b'a'; FILE]))
            .and_then(|()| fs::write(&config, configuration(&folder)))
            .and_then(|()| open_to_all(scratch))
            .and_then(|()| File::create(folder.join("ab.out")));
        let out = prepared.map_err(|error| Trouble::Unwritable(folder.display().to_string(), error))?;
        let mut server = rig.server.command("taskset");
        server.args(["-c", cpu, "apache2", "-DFOREGROUND", "-f"]).arg(config);
        let server = quiet(&mut server)?;
        let mut clients = rig.client.command("taskset");
        clients.args(["-c", "0", "ab", "-q", "-r", "-c", CLIENTS, "-t", "3600", "-n", "1000000"]);
        clients.arg(format!("http://{SERVER}/file")).stdout(out).stderr(Stdio::null());
        // Where it does not listen yet, a client says so and ends.
        let listens = || rig.server.run("ss", ["-Hltn", "sport = :80"]).is_ok_and(|told| !told.is_empty());
        if !crate::peers::until(Duration::from_secs(10), listens) {
            return Err(Trouble::Program("Apache does not listen: is apache2 installed?".into()));
        }
        Ok(Self { clients: Process::start(&mut clients)?, said: folder.join("ab.out"), _server: server })
    }

    /// Ends both: requests that were answered in a second.
    pub fn finish(mut self) -> Option<f64> {
        self.clients.interrupt();
        self.clients.ends(Duration::from_secs(5));
        rate(&fs::read_to_string(&self.said).ok()?)
    }
}

fn quiet(command: &mut Command) -> Result<Process, Trouble> {
    Process::start(command.stdout(Stdio::null()).stderr(Stdio::null()))
}

/// Apache's children are another user and must come in.
fn open_to_all(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))
}

/// The rate that `ab` tells.
fn rate(told: &str) -> Option<f64> {
    let line = told.lines().find_map(|line| line.strip_prefix("Requests per second:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn configuration(folder: &Path) -> String {
    let (listen, settings) = (format!("{SERVER}:80"), apache::standing(PROCESSES));
    let user = Some(apache::USER);
    apache::Apache { folder, listen: &listen, model: "prefork", user, settings: &settings }.configuration()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_read_and_what_is_none_is_none() {
        assert_eq!(rate("x\nRequests per second:    1234.56 [#/sec] (mean)\n"), Some(1234.56));
        assert_eq!(rate("Requests per second: \n"), None);
        assert_eq!(rate(""), None);
    }
}
