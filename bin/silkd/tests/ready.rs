//! Who has started the daemon is told when programs are served, and not before: a service that comes after it begins then.

use silk_control::{Lifeline, Reply, Request};
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::Duration;

/// Long for a daemon without a device to start.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn a_service_manager_is_told_when_programs_can_join() {
    let folder = tempfile::tempdir().unwrap();
    let [config, control, told] =
        ["silk.toml", "control.sock", "told.sock"].map(|name| folder.path().join(name));
    let text = format!(
        "[device]\nkind = \"link\"\naddress = \"10.0.0.1/24\"\n[control]\nsocket = \"{}\"\n",
        control.display()
    );
    fs::write(&config, text).unwrap();
    let manager = UnixDatagram::bind(&told).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut silkd = Command::new(env!("CARGO_BIN_EXE_silkd"));
    let mut silkd = silkd.arg("--config").arg(&config).env("NOTIFY_SOCKET", &told).spawn().unwrap();
    let mut said = [0; 100];
    let heard = manager.recv(&mut said);
    // At the first try: nobody would try again.
    let joined = Lifeline::connect(&control).map(|daemon| daemon.ask::<_, Reply>(&Request::Report, &[]));
    silkd.kill().unwrap();
    silkd.wait().unwrap();
    assert_eq!(&said[..heard.expect("it is told")], b"READY=1\n");
    let answer = joined.expect("it listens").expect("it answers").message;
    assert!(matches!(answer, Reply::Report { .. }), "{answer:?}");
}
