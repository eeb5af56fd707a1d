//! The time in which something is measured, and what was seen in it: figures, and how busy both CPUs were
//! in exactly that time.

use super::super::counters::CpuShares;
use super::super::counters::Moment;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::{Duration, Instant};

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// 10⁹ bits of a program's data per second.
    #[serde(rename = "Gb/s")]
    Gigabits,
    /// 10⁶ bits of a program's data per second.
    #[serde(rename = "Mb/s")]
    Megabits,
    /// Microseconds.
    #[serde(rename = "us")]
    Micros,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanos,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// So many per second.
    #[serde(rename = "1/s")]
    PerSecond,
    /// Bytes of memory.
    #[serde(rename = "B")]
    Bytes,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gigabits => "Gb/s",
            Self::Megabits => "Mb/s",
            Self::Micros => "µs",
            Self::Nanos => "ns",
            Self::Seconds => "s",
            Self::PerSecond => "/s",
            Self::Bytes => "B",
        })
    }
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What it is about, such as `goodput` or `p99`.
    pub of: String,
    /// The figure.
    pub value: f64,
    /// What it counts.
    pub unit: Unit,
}

impl Figure {
    /// A figure of that name.
    pub fn new(of: impl Into<String>, value: f64, unit: Unit) -> Self {
        Self { of: of.into(), value, unit }
    }
}

/// What one end saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Its figures.
    pub figures: Vec<Figure>,
    /// How busy the CPUs were meanwhile.
    pub cpu: CpuShares,
}

impl Seen {
    /// The highest of all figures called `of`, as if it alone had been seen: `of` at most.
    pub fn best(all: &[Self], of: &str) -> Option<Self> {
        let figures = all.iter().flat_map(|seen| seen.figures.iter().map(|figure| (figure, seen.cpu)));
        let named = figures.filter(|(figure, _)| figure.of == of);
        let (best, cpu) = named.max_by(|a, b| a.0.value.total_cmp(&b.0.value))?;
        Some(Self { figures: vec![Figure::new(format!("{of} at most"), best.value, best.unit)], cpu })
    }
}

/// A time that is being measured.
pub struct Window {
    began: Moment,
    length: Duration,
}

impl Window {
    /// From now on, so many milliseconds.
    pub fn open(milliseconds: u64) -> Self {
        Self { began: Moment::now(None), length: Duration::from_millis(milliseconds) }
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        self.began.at.elapsed() >= self.length
    }

    /// Closes it: how long it was, in seconds, and how busy the CPUs were.
    pub fn close(self) -> (f64, CpuShares) {
        let ended = Moment::now(None);
        (ended.at.duration_since(self.began.at).as_secs_f64(), self.began.cpu_until(&ended))
    }
}

/// Does something again and again for so many milliseconds; nothing of it is measured.
pub fn pass<E>(milliseconds: u64, mut act: impl FnMut() -> Result<(), E>) -> Result<(), E> {
    let end = Instant::now() + Duration::from_millis(milliseconds);
    while Instant::now() < end {
        act()?;
    }
    Ok(())
}

/// A percentile of an ascending list that is not empty.
pub fn percentile(ordered: &[u64], percent: usize) -> u64 {
    ordered[(ordered.len() * percent / 100).min(ordered.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_one_below_which_so_many_are() {
        let hundred: Vec<u64> = (1..=100).collect();
        assert_eq!([0, 50, 99, 100].map(|percent| percentile(&hundred, percent)), [1, 51, 100, 100]);
        assert_eq!(percentile(&[7], 99), 7);
    }

    #[test]
    fn what_was_seen_reads_back_as_written() {
        let figures = vec![Figure::new("p50", 17.5, Unit::Micros)];
        let seen = Seen { figures, cpu: CpuShares::default() };
        let text = serde_json::to_string(&seen).unwrap();
        assert!(text.contains(r#"{"of":"p50","value":17.5,"unit":"us"}"#), "{text}");
        assert_eq!(serde_json::from_str::<Seen>(&text).unwrap(), seen);
    }
}
