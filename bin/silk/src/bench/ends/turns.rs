//! The client's end of short exchanges: bytes that come back, connections that are opened and closed,
//! requests that are answered. Any that fails fails the measurement.

use super::Target;
use super::connect::{connect, connect_patiently};
use super::serve::{ANSWER, REQUEST};
use super::window::{Figure, Seen, Unit, Window, pass, percentile};
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// 64 bytes there and back.
pub fn ping(target: &Target) -> io::Result<Seen> {
    let mut stream = connect_patiently(target.to, target.from)?;
    let mut turn = || {
        let mut bytes = [7; REQUEST];
        stream.write_all(&bytes)?;
        stream.read_exact(&mut bytes)
    };
    pass(target.ramp, &mut turn)?;
    timed(target, turn)
}

/// A connection, a request, its answer, the end of the connection.
pub fn ask(target: &Target) -> io::Result<Seen> {
    drop(connect_patiently(target.to, target.from)?);
    let turn = || {
        let mut stream = connect(target.to, target.from)?;
        stream.write_all(&[7; REQUEST])?;
        let mut answer = Vec::with_capacity(ANSWER);
        match stream.read_to_end(&mut answer)? {
            ANSWER => Ok(()),
            length => Err(io::Error::other(format!("an answer of {length} bytes"))),
        }
    };
    pass(target.ramp, turn)?;
    timed(target, turn)
}

/// How long turns take, one after the other.
fn timed(target: &Target, mut turn: impl FnMut() -> io::Result<()>) -> io::Result<Seen> {
    let mut times = Vec::with_capacity(1 << 20);
    let window = Window::open(target.milliseconds);
    let mut before = Instant::now();
    // One at least: a list of times is not empty.
    while times.is_empty() || !window.is_over() {
        turn()?;
        let after = Instant::now();
        times.push(after.duration_since(before).as_nanos() as u64);
        before = after;
    }
    let (seconds, cpu) = window.close();
    let rate = times.len() as f64 / seconds;
    times.sort_unstable();
    let micros = |name: &str, nanos: u64| Figure::new(name, nanos as f64 / 1e3, Unit::Micros);
    let figures = vec![
        micros("p50", percentile(&times, 50)),
        micros("p99", percentile(&times, 99)),
        micros("max", percentile(&times, 100)),
        Figure::new("rate", rate, Unit::PerSecond),
    ];
    Ok(Seen { figures, cpu })
}

/// Opens connections and waits until the server has closed them, in several threads.
pub fn knock(target: &Target, at_once: usize) -> io::Result<Seen> {
    drop(connect_patiently(target.to, target.from)?);
    let (count, enough) = (AtomicU64::new(0), AtomicBool::new(false));
    let knocks = || -> io::Result<()> {
        while !enough.load(Ordering::Relaxed) {
            let done = knock_once(target);
            enough.fetch_or(done.is_err(), Ordering::Relaxed);
            done?;
            count.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    let (knocked, seconds, cpu, failed) = thread::scope(|scope| {
        let threads: Vec<_> = (0..at_once).map(|_| scope.spawn(knocks)).collect();
        thread::sleep(Duration::from_millis(target.ramp));
        let window = Window::open(target.milliseconds);
        let before = count.load(Ordering::Relaxed);
        while !window.is_over() && !enough.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(5));
        }
        let knocked = count.load(Ordering::Relaxed) - before;
        let (seconds, cpu) = window.close();
        enough.store(true, Ordering::Relaxed);
        let ended = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread failed"))));
        (knocked, seconds, cpu, ended.collect::<io::Result<()>>())
    });
    failed?;
    Ok(Seen { figures: vec![Figure::new("rate", knocked as f64 / seconds, Unit::PerSecond)], cpu })
}

fn knock_once(target: &Target) -> io::Result<()> {
    let mut stream = connect(target.to, target.from)?;
    match stream.read(&mut [0; 1])? {
        0 => Ok(()),
        _ => Err(io::Error::other("the server said something")),
    }
}
