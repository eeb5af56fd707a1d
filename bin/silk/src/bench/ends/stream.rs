//! The client's end of one long flow, in either direction.

use super::Target;
use super::connect::connect_patiently;
use super::window::{Figure, Seen, Unit, Window, pass};
use rustix::net::{RecvFlags, recv};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};

/// Bytes that are taken or written at a time.
const CHUNK: usize = 256 * 1024;

/// Receives. The bytes are thrown away where they lie (`MSG_TRUNC`, tcp(7)), so that it is the sender that
/// is measured, and not how fast the receiver copies.
pub fn draw(target: &Target) -> io::Result<Seen> {
    let stream = connect_patiently(target.to, target.from)?;
    let mut buffer = vec![0; CHUNK];
    let mut more = || taken(&stream, &mut buffer);
    pass(target.ramp, || more().map(drop))?;
    measured(target, more)
}

fn taken(stream: &TcpStream, buffer: &mut [u8]) -> io::Result<u64> {
    let (_, length) = recv(stream, buffer, RecvFlags::TRUNC)?;
    if length == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(length as u64) }
}

/// Sends. What still waits in Linux's buffers at the ends of the time is the same at both.
pub fn push(target: &Target) -> io::Result<Seen> {
    let mut stream = connect_patiently(target.to, target.from)?;
    let bytes = vec![7; CHUNK];
    let mut more = || stream.write(&bytes).map(|length| length as u64);
    pass(target.ramp, || more().map(drop))?;
    measured(target, more)
}

/// Sends from the connection's beginning on, then waits until whoever takes it has all and closes, so that nothing counts
/// which waits in buffers.
pub fn deliver(target: &Target) -> io::Result<Seen> {
    let mut stream = connect_patiently(target.to, target.from)?;
    let data = vec![7; CHUNK];
    let (window, mut bytes) = (Window::open(target.milliseconds), 0);
    while !window.is_over() {
        bytes += stream.write(&data)? as u64;
    }
    stream.shutdown(Shutdown::Write)?;
    if stream.read(&mut [0])? > 0 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(goodput(bytes, window))
}

fn measured(target: &Target, mut more: impl FnMut() -> io::Result<u64>) -> io::Result<Seen> {
    let window = Window::open(target.milliseconds);
    let mut bytes = 0;
    while !window.is_over() {
        bytes += more()?;
    }
    Ok(goodput(bytes, window))
}

fn goodput(bytes: u64, window: Window) -> Seen {
    let (seconds, cpu) = window.close();
    let bits = bytes as f64 * 8.0 / seconds;
    Seen { figures: vec![Figure::new("goodput", bits / 1e9, Unit::Gigabits)], cpu }
}
