//! The server's end of a flood of datagrams: counts those that a program really gets, one `recv` each.

use super::window::{Figure, Seen, Unit, Window};
use std::io;
use std::net::{SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

/// How long nothing may come: longer than the experiment waits for this end.
const PATIENCE: Duration = Duration::from_secs(60);
/// Until the flood flows and nothing is new to anybody.
const RAMP: Duration = Duration::from_millis(500);
/// Datagrams between two looks at the clock.
const BETWEEN: u64 = 64;

/// Receives for a while, then counts.
pub fn gather(at: SocketAddrV4, milliseconds: u64) -> io::Result<Seen> {
    let socket = UdpSocket::bind(at)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut buffer = [0; 2048];
    let mut some = || -> io::Result<u64> {
        for _ in 0..BETWEEN {
            socket.recv(&mut buffer)?;
        }
        Ok(BETWEEN)
    };
    some()?;
    let start = Instant::now();
    while start.elapsed() < RAMP {
        some()?;
    }
    let window = Window::open(milliseconds);
    let mut count = 0;
    while !window.is_over() {
        count += some()?;
    }
    let (seconds, cpu) = window.close();
    Ok(Seen { figures: vec![Figure::new("received", count as f64 / seconds, Unit::PerSecond)], cpu })
}
