//! nginx: epoll, several workers, and a reload while it serves.

use crate::files::{fetch_all, hammer, site};
use crate::host::{MODES, Silk};
use silk_testkit::netns::{Running, signal};
use std::time::Duration;

fn nginx(silk: &Silk, workers: u32) -> Running {
    nginx_at(silk, "listen 80;", workers)
}

/// nginx that listens as these directives say.
pub fn nginx_at(silk: &Silk, listen: &str, workers: u32) -> Running {
    let folder = silk.path("");
    let folder = folder.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|kind| format!("{kind}_temp_path {folder}/{kind};\n"))
        .collect();
    let config = format!(
        "daemon off;\nworker_processes {workers};\npid {folder}/nginx.pid;\nuser root;\n\
         error_log stderr notice;\nevents {{ worker_connections 1024; }}\n\
         http {{ access_log off; sendfile on; tcp_nopush on;\n{temporary}\
         server {{ {listen} root {folder}/site; }} }}\n"
    );
    let config = silk.write("nginx.conf", config);
    silk.serve("nginx", &["-c", &config.to_string_lossy(), "-p", &silk.path("").to_string_lossy()], 80)
}

#[test]
fn one_worker_serves_every_file_as_it_is() {
    for mode in MODES {
        let Some(silk) = Silk::start_in(mode) else { return };
        site(&silk);
        let server = nginx(&silk, 1);
        fetch_all(&silk, 80);
        hammer(&silk, 80);
        server.stop(Duration::from_secs(5));
        silk.linux_saw_nothing();
    }
}

#[test]
fn four_workers_reload_while_they_serve() {
    let Some(silk) = Silk::start() else { return };
    site(&silk);
    let server = nginx(&silk, 4);
    fetch_all(&silk, 80);
    signal(&[server.id()], "HUP");
    fetch_all(&silk, 80);
    silk.until_says("nginx", "reconfiguring");
    hammer(&silk, 80);
    server.stop(Duration::from_secs(5));
    silk.linux_saw_nothing();
}
