//! What a player says at its end.

use std::fmt;
use std::time::Duration;

/// What became of the pictures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Width and height of the last picture.
    pub size: (usize, usize),
    /// Decoded.
    pub decoded: u64,
    /// Shown.
    pub shown: u64,
    /// Decoded so late that the next was due: not shown.
    pub late: u64,
    /// Given to a screen that did not show them: a newer one came first.
    pub replaced: u64,
    /// Of the decoded ones: something was missing or damaged, and made up.
    pub concealed: u64,
    /// Errors of the decoder.
    pub errors: u64,
    /// From the first picture to the end.
    pub took: Duration,
    /// The sum of the pictures, where that was asked for: equal pictures in equal order have equal sums.
    pub sum: Option<u64>,
    /// CPU time of decoding and of handing pictures to the screen.
    pub cpu: Duration,
}

impl Report {
    /// CPU time of each decoded picture, in milliseconds.
    pub fn cpu_ms(&self) -> f64 {
        self.cpu.as_secs_f64() * 1000.0 / self.decoded.max(1) as f64
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (width, height) = self.size;
        let seconds = self.took.as_secs_f64();
        write!(
            f,
            "{} pictures of {width} × {height} in {seconds:.1} s: {} shown, {} late, {} replaced; {} concealed, \
             {} errors; {:.3} ms of CPU each",
            self.decoded,
            self.shown,
            self.late,
            self.replaced,
            self.concealed,
            self.errors,
            self.cpu_ms()
        )?;
        self.sum.map_or(Ok(()), |sum| write!(f, "; sum {sum:016x}"))
    }
}
