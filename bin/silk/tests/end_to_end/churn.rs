//! Threads that close, replace, connect and watch each other's sockets at any time, as programs with faults do, and forks of
//! them in between: every call returns, and nothing of it is left with the daemon, which says nothing.

use crate::host::Silk;
use crate::programs::{text, within};
use silk_testkit::netns::CLIENT;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// Sends back what it gets, over streams and datagrams.
pub const ECHO: &str = "import asyncio
class Datagrams(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport
    def datagram_received(self, data, peer):
        self.transport.sendto(data, peer)
async def stream(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()
async def main():
    await asyncio.get_running_loop().create_datagram_endpoint(Datagrams, local_addr=('0.0.0.0', 7))
    server = await asyncio.start_server(stream, '0.0.0.0', 7)
    print('listening', flush=True)
    await server.serve_forever()
asyncio.run(main())
";

#[test]
fn threads_that_use_each_others_sockets_all_come_back() {
    let Some(silk) = Silk::start() else { return };
    let program = silk.compile("churn", include_str!("churn.c"), &[]);
    silk.write("echo.py", ECHO);
    let echo = silk.start_logged(silk.on_peer("python3").arg("echo.py"), "echo");
    silk.until_says("echo", "listening");
    for (seed, threads) in [("1", "4"), ("2", "2"), ("3", "8"), ("4", "4")] {
        let mut churn = silk.on_paths(&program.to_string_lossy());
        let said = text(churn.args([&CLIENT.to_string(), "3", seed, threads]));
        assert_eq!(said, "ended\n", "seed {seed}, {threads} threads");
        // What is still open over Linux's stack ends with its peer.
        let left = || silk.report()["paths"].as_array().map_or(0, |paths| count(paths));
        assert!(within(PATIENCE, || left() == 0), "{:#}", silk.report());
    }
    echo.stop(PATIENCE);
    // Its first line says that it is ready.
    let said: Vec<_> = silk.log("silkd").lines().skip(1).map(str::to_owned).collect();
    assert!(said.iter().all(|line| line.contains("left to Linux")), "{said:#?}");
}

/// Those that programs have, or had.
fn count(paths: &[serde_json::Value]) -> usize {
    let of_a_program = |path: &&serde_json::Value| {
        let modules = path["modules"].as_array().into_iter().flatten();
        modules.last().is_some_and(|top| top == "socket") && path["local"] != ""
    };
    paths.iter().filter(of_a_program).count()
}
