//! Reports of more paths than an executor tells of in one turn.

use crate::host::Silk;

/// Datagram sockets, each of which is a path.
const MANY: &str = "import socket, time
many = [socket.socket(type=socket.SOCK_DGRAM) for _ in range(700)]
for n, one in enumerate(many): one.bind(('', 5000 + n))
print('bound', flush=True)
time.sleep(600)
";

#[test]
fn a_report_of_many_paths_has_each_of_them_once() {
    let Some(silk) = Silk::start() else { return };
    silk.write("many.py", MANY);
    let mut program = silk.on_paths("python3");
    let _program = silk.start_logged(program.arg("many.py"), "many");
    silk.until_says("many", "bound");
    let report = silk.report();
    let port = |path: &serde_json::Value| path["local"].as_str()?.rsplit_once(':')?.1.parse::<u16>().ok();
    let mut ports: Vec<u16> = report["paths"].as_array().unwrap().iter().filter_map(port).collect();
    ports.retain(|port| (5000..5700).contains(port));
    ports.sort_unstable();
    assert!(ports.into_iter().eq(5000..5700), "{report:#}");
}
