//! Connections of the clients' end.

use socket2::{Domain, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a server may take until it listens.
const STARTING: Duration = Duration::from_secs(10);
/// How long anything may take that is not to fail.
const PATIENCE: Duration = Duration::from_secs(15);

/// A connection, from that address if one is given.
pub fn connect(to: SocketAddrV4, from: Option<Ipv4Addr>) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    if let Some(from) = from {
        socket.bind(&SocketAddrV4::new(from, 0).into())?;
    }
    socket.connect_timeout(&to.into(), PATIENCE)?;
    let stream = TcpStream::from(socket);
    // Who waits so long waits for something that is lost: an error, and not a slow answer.
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
