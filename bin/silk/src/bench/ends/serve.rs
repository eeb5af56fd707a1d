//! The server's end: takes connections and does one thing with each, in an ordinary blocking way.

use super::{descriptors, hold};
use clap::ValueEnum;
use socket2::{Domain, Socket, Type};
use std::convert::Infallible;
use std::io::{self, Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::IntoRawFd;
use std::thread;

/// Bytes that are read and written at a time: what file servers use.
const CHUNK: usize = 128 * 1024;
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;
/// Threads that serve at the same time.
const THREADS: usize = 4;
/// Bytes of a request, and of a ping.
pub const REQUEST: usize = 64;
/// Bytes of an answer.
pub const ANSWER: usize = 1024;

/// What a server does with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Service {
    /// Send without end
    Give,
    /// Receive until the peer has finished
    Take,
    /// Send back whatever comes
    Echo,
    /// Close it at once
    Close,
    /// Say a byte and keep it open
    Keep,
    /// Answer 64 bytes with 1 KB, and close it
    Answer,
}

/// Serves for ever, or says why it cannot.
pub fn serve(service: Service, at: SocketAddrV4) -> io::Result<Infallible> {
    if service == Service::Keep {
        descriptors::allow(hold::ALL)?;
    }
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&at.into())?;
    socket.listen(BACKLOG)?;
    let listener = TcpListener::from(socket);
    let served = thread::scope(|scope| {
        let threads = [(); THREADS].map(|()| scope.spawn(|| accept(&listener, service)));
        threads.map(|thread| thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread failed"))))
    });
    served.into_iter().next().unwrap_or_else(|| Err(io::Error::other("nobody serves")))
}

fn accept(listener: &TcpListener, service: Service) -> io::Result<Infallible> {
    loop {
        let (stream, _) = listener.accept()?;
        // A client that goes away is its own business: it says so if that was not to be.
        let _ = service.perform(stream);
    }
}

impl Service {
    fn perform(self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        match self {
            Self::Give => {
                let bytes = vec![7; CHUNK];
                loop {
                    stream.write_all(&bytes)?;
                }
            }
            Self::Take => {
                let mut buffer = vec![0; CHUNK];
                while stream.read(&mut buffer)? > 0 {}
                Ok(())
            }
            Self::Echo => {
                let mut buffer = [0; 4096];
                loop {
                    match stream.read(&mut buffer)? {
                        0 => return Ok(()),
                        length => stream.write_all(&buffer[..length])?,
                    }
                }
            }
            Self::Close => Ok(()),
            Self::Keep => {
                stream.write_all(&[7])?;
                // A descriptor that nobody closes stays open until the process ends.
                let _ = stream.into_raw_fd();
                Ok(())
            }
            Self::Answer => {
                stream.read_exact(&mut [0; REQUEST])?;
                stream.write_all(&[7; ANSWER])
            }
        }
    }
}
