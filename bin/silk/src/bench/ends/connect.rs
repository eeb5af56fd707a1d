//! Connections of the clients' end.

use socket2::{Domain, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a server may take until it listens.
const STARTING: Duration = Duration::from_secs(10);
/// How long anything may take. Longer than the experiment waits for this end: what hangs is to hang on until
/// it has been looked at.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection, from that address if one is given.
pub fn connect(to: SocketAddrV4, from: Option<Ipv4Addr>) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    if let Some(from) = from {
        socket.bind(&SocketAddrV4::new(from, 0).into())?;
    }
    socket.connect_timeout(&to.into(), PATIENCE)?;
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The same, for a server that may still be starting.
pub fn connect_patiently(to: SocketAddrV4, from: Option<Ipv4Addr>) -> io::Result<TcpStream> {
    let start = Instant::now();
    loop {
        match connect(to, from) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && start.elapsed() < STARTING => {
                sleep(Duration::from_millis(20));
            }
            answer => return answer,
        }
    }
}
