//! A hundred thousand connections in one process: what each takes, how long it takes to open all, and what
//! a segment costs beside them. A fresh process each time: what others have left behind in its memory would
//! be used again and not seen.

use super::super::counters::CpuShares;
use super::super::paths::crowd::{Crowd, Way};
use super::window::{Figure, Seen, Unit, Window};
use std::io;
use std::time::Duration;

/// Connections in a small crowd.
const FEW: u32 = 10;
/// Segments of one sample.
const SAMPLE: u64 = 4096;

/// Opens a large crowd and a small one, and receives in both for so long.
pub fn crowd(count: u32, milliseconds: u64) -> io::Result<Seen> {
    let window = Window::open(milliseconds);
    let before = resident()?;
    let (mut large, took) = Crowd::open(count);
    let after = resident()?;
    // What the benchmark itself keeps of each connection is there before, or counts: it is little.
    let each = after.saturating_sub(before) as f64 / f64::from(count);
    let mut figures = vec![
        Figure::new("bytes each", each, Unit::Bytes),
        Figure::new("time to open all", took.as_secs_f64(), Unit::Seconds),
    ];
    let (mut small, _) = Crowd::open(FEW);
    for (way, behind) in [(Way::Known, ""), (Way::FromTheFrame, ", from the frame on")] {
        let time = Duration::from_millis(milliseconds);
        let [few, among, many] = in_turns(&mut small, &mut large, count, way, time);
        let figure = |of: &str, nanos| Figure::new(format!("segment, {of}{behind}"), nanos, Unit::Nanos);
        figures.extend([
            figure("10", few),
            figure("10 busy of 100 000", among),
            figure("100 000 busy", many),
        ]);
    }
    if !(small.is_whole() && large.is_whole()) {
        return Err(io::Error::other("a segment was dropped"));
    }
    let (_, cpu): (f64, CpuShares) = window.close();
    Ok(Seen { figures, cpu })
}

/// Nanoseconds for a segment in the small crowd, of a few busy connections in the large one, and of all of
/// that: the middle of samples that are taken in turns.
fn in_turns(small: &mut Crowd, large: &mut Crowd, count: u32, way: Way, time: Duration) -> [f64; 3] {
    let mut samples = [const { Vec::new() }; 3];
    let mut spent = Duration::ZERO;
    while spent < time {
        let took = [
            small.receive(SAMPLE, FEW, way),
            large.receive(SAMPLE, FEW, way),
            large.receive(SAMPLE, count, way),
        ];
        for (samples, took) in samples.iter_mut().zip(took) {
            spent += took;
            samples.push(took.as_nanos() as f64 / SAMPLE as f64);
        }
    }
    samples.map(|mut samples: Vec<f64>| {
        samples.sort_by(f64::total_cmp);
        super::super::ratio::median(&samples)
    })
}

/// Bytes of memory that the process has of its own (`RssAnon`, proc(5)).
pub fn resident() -> io::Result<u64> {
    resident_of("self")
}

/// The same of another process.
pub fn resident_of(process: &str) -> io::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.map(|kib| kib * 1024).ok_or_else(|| io::Error::other("Linux does not say how much memory it has"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_answers_every_question() {
        let seen = crowd(1000, 1).unwrap();
        assert_eq!(seen.figures.len(), 8);
        assert!(seen.figures.iter().all(|figure| figure.value > 0.0), "{seen:?}");
    }
}
