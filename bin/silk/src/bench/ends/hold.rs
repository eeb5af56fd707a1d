//! The client's end of many idle connections: opens them, and tells how long that took and what each
//! takes of silk's memory, if the server is silk's.

use super::Target;
use super::connect::{connect, connect_patiently};
use super::crowd::resident_of;
use super::descriptors;
use super::window::{Figure, Seen, Unit, Window};
use silk_stream::Slot;
use std::io::{self, Read};
use std::thread::sleep;
use std::time::Duration;

/// Connections before anything is measured: what the daemon makes once is no part of what each takes.
const FIRST: u32 = 500;
/// And the experiment's.
const THEN: u32 = 8_000;

/// Connections in all.
pub const ALL: u32 = 1 + FIRST + THEN;

/// Opens them, one after the other; each is open when the server has said a byte.
pub fn hold(target: &Target, daemon: Option<u32>) -> io::Result<Seen> {
    descriptors::allow(ALL)?;
    let mut held = vec![connect_patiently(target.to, target.from)?];
    let mut open = |count: u32| -> io::Result<()> {
        for _ in 0..count {
            let mut stream = connect(target.to, target.from)?;
            stream.read_exact(&mut [0; 1])?;
            held.push(stream);
        }
        Ok(())
    };
    open(FIRST)?;
    let resident = || daemon.map(|process| resident_of(&process.to_string())).transpose();
    let before = resident()?;
    let window = Window::open(0);
    open(THEN)?;
    let (seconds, cpu) = window.close();
    sleep(Duration::from_millis(target.milliseconds));
    let mut figures = vec![Figure::new("real: time to open 8 000", seconds, Unit::Seconds)];
    if let (Some(before), Some(after)) = (before, resident()?) {
        // The daemon's own memory, and the record that it shares with the program.
        let each = after.saturating_sub(before) as f64 / f64::from(THEN) + size_of::<Slot>() as f64;
        figures.push(Figure::new("real: bytes each", each, Unit::Bytes));
    }
    Ok(Seen { figures, cpu })
}
