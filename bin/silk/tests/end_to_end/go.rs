//! Programs of the Go language, which make their system calls themselves: Debian's caddy, as a server, as a client of its
//! upstream, and as the child of another; and one without the C library, which is carried.

use crate::files::{content, fetch_all, hammer, site};
use crate::host::Silk;
use crate::programs::{beside, bytes, text, within};
use silk_testkit::netns::{CLIENT, Running, SERVER, signal};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

const FILES: u16 = 80;
const PROXY: u16 = 81;
const UPSTREAM: u16 = 82;

/// Its configuration: files at one port, and what the peer serves at another.
fn configuration(silk: &Silk) -> PathBuf {
    let folder = silk.path("");
    let folder = folder.display();
    let server = |port: u16, handler: String| {
        format!(
            r#"{{"listen":["{SERVER}:{port}"],"automatic_https":{{"disable":true}},"routes":[{{"handle":[{handler}]}}]}}"#
        )
    };
    let files = server(FILES, format!(r#"{{"handler":"file_server","root":"{folder}/site"}}"#));
    let upstream = format!(r#"{{"dial":"{CLIENT}:{UPSTREAM}"}}"#);
    let proxy = server(PROXY, format!(r#"{{"handler":"reverse_proxy","upstreams":[{upstream}]}}"#));
    let whole = format!(
        r#"{{"admin":{{"disabled":true,"config":{{"persist":false}}}},
            "storage":{{"module":"file_system","root":"{folder}"}},
            "apps":{{"http":{{"servers":{{"files":{files},"proxy":{proxy}}}}}}}}}"#
    );
    silk.write("caddy.json", whole)
}

fn caddy(silk: &Silk) -> Running {
    site(silk);
    silk.serve("caddy", &["run", "--config", &configuration(silk).to_string_lossy()], FILES)
}

#[test]
fn caddy_serves_every_file_as_it_is() {
    let Some(silk) = Silk::start() else { return };
    let server = caddy(&silk);
    fetch_all(&silk, FILES);
    hammer(&silk, FILES);
    assert!(silk.log("caddy").contains("serving initial configuration"), "{}", silk.log("caddy"));
    server.stop(Duration::from_secs(5));
    silk.linux_saw_nothing();
}

#[test]
fn caddy_asks_its_upstream_over_silk() {
    let Some(silk) = Silk::start() else { return };
    let server = caddy(&silk);
    let folder = silk.path("site").display().to_string();
    let port = UPSTREAM.to_string();
    let upstream = ["-m", "http.server", "--bind", &CLIENT.to_string(), "--directory", &folder, &port];
    let upstream = silk.serve_on_peer("python3", &upstream, UPSTREAM);
    fetch_all(&silk, PROXY);
    server.stop(Duration::from_secs(5));
    upstream.stop(Duration::from_secs(5));
    silk.linux_saw_nothing();
}

/// `caddy start` executes itself, hears from the child over 127.0.0.1 that it serves, and ends.
#[test]
fn a_child_of_a_go_program_serves_on() {
    let Some(silk) = Silk::start() else { return };
    site(&silk);
    let (config, pid) = (configuration(&silk), silk.path("caddy.pid"));
    let mut start = silk.on_paths("caddy");
    let mut parent =
        silk.start_logged(start.args(["start", "--config"]).arg(config).arg("--pidfile").arg(&pid), "caddy");
    assert!(within(Duration::from_secs(20), || parent.ended().is_some()), "{}", silk.log("caddy"));
    assert!(silk.log("caddy").contains("Successfully started"), "{}", silk.log("caddy"));
    let pid = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    let got =
        bytes(silk.on_peer("curl").args(["-sSf", "--max-time", "20", &format!("http://{SERVER}/50000")]));
    assert_eq!(got, content(50_000));
    // (That the child was heard of over 127.0.0.1 is Linux's.)
    assert!(listens(&silk));
    signal(&[pid], "TERM");
    assert!(within(Duration::from_secs(10), || !listens(&silk)), "{}", silk.report());
}

/// The program of `carried.go`, built without the C library: static, or for the loader.
fn built(silk: &Silk, mode: &str) -> PathBuf {
    let program = silk.path(&format!("carried-{mode}"));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/end_to_end/carried.go");
    let built = Command::new("go")
        .args(["build", &format!("-buildmode={mode}"), "-o"])
        .args([program.as_os_str(), source.as_ref()])
        .envs([("CGO_ENABLED", "0"), ("GO111MODULE", "off"), ("GOTOOLCHAIN", "local"), ("GOFLAGS", "")])
        .env("GOCACHE", concat!(env!("CARGO_TARGET_TMPDIR"), "/go"))
        .output()
        .expect("Go's compiler is installed by scripts/setup");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    program
}

fn asked(silk: &Silk, what: &str) -> String {
    let url = format!("http://{SERVER}:{FILES}/{what}");
    text(silk.on_peer("curl").args(["-sSf", "--max-time", "30", &url]))
}

#[test]
fn a_go_program_without_the_c_library_is_carried() {
    let Some(silk) = Silk::start() else { return };
    site(&silk);
    let program = built(&silk, "exe");
    let (name, folder) = (program.display().to_string(), silk.path("site").display().to_string());
    let address = format!("{SERVER}:{FILES}");
    let mut server = silk.serve(&name, &["serve", &address, &folder], FILES);
    fetch_all(&silk, FILES);
    hammer(&silk, FILES);
    assert_eq!(asked(&silk, "file"), name);
    assert_eq!(asked(&silk, "child"), "child");
    assert_eq!(asked(&silk, "threads"), "true");
    assert_eq!(asked(&silk, "signals"), "all");
    let comm = std::fs::read_to_string(format!("/proc/{}/comm", server.id())).unwrap();
    assert_eq!(comm.trim(), "carried-exe");
    signal(&[server.id()], "TERM");
    assert!(within(Duration::from_secs(10), || server.ended().is_some()));
    assert_eq!(server.ended().and_then(|status| status.code()), Some(7), "its own handler ends it");
    silk.linux_saw_nothing();
}

#[test]
fn one_for_the_loader_is_served_too_and_one_that_a_shell_executes() {
    let Some(silk) = Silk::start() else { return };
    site(&silk);
    let (fixed, loaded) = (built(&silk, "exe"), built(&silk, "pie"));
    let (folder, address) = (silk.path("site").display().to_string(), format!("{SERVER}:{FILES}"));
    let server = silk.serve(&loaded.to_string_lossy(), &["serve", &address, &folder], FILES);
    fetch_all(&silk, FILES);
    assert_eq!(asked(&silk, "threads"), "true");
    assert_eq!(asked(&silk, "signals"), "all");
    server.stop(Duration::from_secs(5));
    let port = UPSTREAM.to_string();
    let upstream = ["-m", "http.server", "--bind", &CLIENT.to_string(), "--directory", &folder, &port];
    let upstream = silk.serve_on_peer("python3", &upstream, UPSTREAM);
    for program in [fixed, loaded] {
        let script = format!("cd / && {} fetch http://{CLIENT}:{UPSTREAM}/50000", program.display());
        assert_eq!(bytes(silk.on_paths("sh").args(["-c", &script])), content(50_000));
    }
    upstream.stop(Duration::from_secs(5));
    silk.linux_saw_nothing();
}

#[test]
fn one_that_may_gain_rights_by_its_file_is_executed_as_it_is() {
    let Some(silk) = Silk::start() else { return };
    let program = built(&silk, "exe");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let Output { status, stdout, stderr } =
        silk.on_paths(&program.to_string_lossy()).args(["say", "word"]).output().unwrap();
    let said = String::from_utf8_lossy(&stderr);
    assert!(status.success() && stdout == b"word" && said.contains("Linux serves its sockets"), "{said}");
}

#[test]
fn a_static_program_of_c_stays_linuxs_and_is_refused_where_that_is_an_error() {
    let Some(silk) = Silk::start() else { return };
    let program = silk.compile("static", "int main(void) { return 5; }", &["-static"]).display().to_string();
    let run = |strict: &[&str]| {
        let mut command = silk.on_linux(&beside("silk").display().to_string());
        command.env("SILK_SOCKET", silk.path("control.sock")).arg("run").args(strict).args(["--", &program]);
        let Output { status, stderr, .. } = command.output().unwrap();
        (status.code(), String::from_utf8_lossy(&stderr).into_owned())
    };
    let why = "is linked statically";
    let (status, error) = run(&[]);
    assert!(
        status == Some(5) && error.contains(why) && error.contains("Linux serves its sockets"),
        "{error}"
    );
    let (status, error) = run(&["--strict"]);
    assert!(status == Some(1) && error.contains(why), "{error}");
}

/// Whether silk has listening sockets.
fn listens(silk: &Silk) -> bool {
    silk.report()["paths"].as_array().is_some_and(|paths| paths.iter().any(|path| path["state"] == "LISTEN"))
}
