//! The question: how well do the bits of a picture tell what decoding it costs (Scout §4.4: "a good
//! correlation")? Each picture of a clip is decoded several times and its least CPU time taken. Printed
//! are the correlation, the line that fits best, and how far it is off for the clip as a whole when it
//! was fitted on the first half. With `--csv` the costs go into a file, for experiments that
//! repeat them in virtual time.

use crate::avcodec::{AvDecoder, Limits};
use crate::clock::thread_cpu;
use crate::demux::{Coded, Demuxer};
use crate::trouble::Trouble;
use silk_media::{Coding, Decoder, Unit};
use std::fs;
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::time::Duration;

/// What is measured.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// The clip
    clip: PathBuf,
    /// How often it is decoded
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Write what each picture costs into this file: type (1 I, 2 P, 3 B), bits, nanoseconds
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

/// One picture.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cost {
    kind: u8,
    bits: f64,
    nanos: f64,
}

/// Measures and prints.
pub fn run(options: &Options) -> Result<(), Trouble> {
    let demuxer = Demuxer::open(&options.clip)?;
    let coding = demuxer.coding();
    let pictures: Vec<Coded> = demuxer.collect();
    let mut costs: Vec<Cost> = pictures.iter().map(unknown).collect();
    for _ in 0..options.rounds {
        decode(coding, &pictures, &mut costs)?;
    }
    if let Some(file) = &options.csv {
        let unwritable = |error| Trouble::Unwritable(file.display().to_string(), error);
        fs::write(file, csv(&costs)).map_err(unwritable)?;
    }
    writeln!(stdout(), "{}", told(&costs))
        .map_err(|error| Trouble::Unwritable("the result".to_owned(), error))
}

fn unknown(picture: &Coded) -> Cost {
    Cost { kind: picture.kind, bits: picture.bytes().len() as f64 * 8.0, nanos: f64::INFINITY }
}

/// Decodes all of it once, and keeps what was cheaper than before.
fn decode(coding: Coding, pictures: &[Coded], costs: &mut [Cost]) -> Result<(), Trouble> {
    let mut decoder = AvDecoder::new(coding, Limits::default())?;
    for ((picture, cost), stamp) in pictures.iter().zip(costs).zip(0..) {
        let unit = Unit { bytes: picture.bytes(), stamp, first: true, last: true, gap: false };
        let before = thread_cpu();
        // A picture that is damaged costs what it costs.
        let _ = decoder.decode(unit, &mut drop);
        cost.nanos = nanos(thread_cpu().saturating_sub(before)).min(cost.nanos);
    }
    Ok(())
}

fn nanos(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

fn csv(costs: &[Cost]) -> String {
    let rows = costs.iter().map(|cost| format!("{},{},{}\n", cost.kind, cost.bits, cost.nanos));
    ["type,bits,nanoseconds\n".to_owned()].into_iter().chain(rows).collect()
}

fn told(costs: &[Cost]) -> String {
    let each = costs.iter().fold(0.0, |sum, cost| sum + cost.nanos) / costs.len().max(1) as f64;
    let begin = format!("{} pictures, {:.1} µs of CPU each", costs.len(), each / 1000.0);
    let (first, second) = costs.split_at(costs.len() / 2);
    let (Some(all), Some(half)) = (Line::fit(costs), Line::fit(first)) else { return begin };
    let (predicted, measured) = second.iter().fold((0.0, 0.0), |(predicted, measured), cost| {
        (predicted + half.at(cost.bits), measured + cost.nanos)
    });
    format!(
        "{begin}; correlation with bits {:.3}; {:.1} µs + {:.3} ns a bit; the second half by the first: {:+.1} %",
        all.correlation,
        all.fixed / 1000.0,
        all.each_bit,
        100.0 * (predicted / measured - 1.0)
    )
}

/// A line through costs over bits.
#[derive(Clone, Copy, Debug)]
struct Line {
    fixed: f64,
    each_bit: f64,
    correlation: f64,
}

impl Line {
    /// The one with the least squares; `None` where all pictures have the same size or cost, or there
    /// are none.
    fn fit(costs: &[Cost]) -> Option<Self> {
        let count = costs.len() as f64;
        let mean = |of: fn(&Cost) -> f64| costs.iter().map(of).sum::<f64>() / count;
        let (bits, nanos) = (mean(|cost| cost.bits), mean(|cost| cost.nanos));
        let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            costs.iter().map(|cost| of(cost.bits - bits, cost.nanos - nanos)).sum()
        };
        let (across, wide, high) = (sum(&|x, y| x * y), sum(&|x, _| x * x), sum(&|_, y| y * y));
        let each_bit = across / wide;
        (wide > 0.0 && high > 0.0).then(|| Self {
            fixed: nanos - each_bit * bits,
            each_bit,
            correlation: across / (wide * high).sqrt(),
        })
    }

    fn at(self, bits: f64) -> f64 {
        self.fixed + self.each_bit * bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(line: fn(f64) -> f64) -> Vec<Cost> {
        (1..=10).map(|n| f64::from(n) * 100.0).map(|bits| Cost { kind: 1, bits, nanos: line(bits) }).collect()
    }

    #[test]
    fn costs_on_a_line_are_told_as_that_line() {
        let expected = "10 pictures, 3.6 µs of CPU each; correlation with bits 1.000; 2.5 µs + 2.000 ns a bit; \
                        the second half by the first: +0.0 %";
        assert_eq!(told(&costs(|bits| 2500.0 + 2.0 * bits)), expected);
    }

    #[test]
    fn what_has_no_line_is_told_without_one() {
        assert_eq!(told(&[]), "0 pictures, 0.0 µs of CPU each");
        assert_eq!(told(&costs(|_| 1000.0)), "10 pictures, 1.0 µs of CPU each");
    }

    #[test]
    fn the_file_has_a_row_for_each_picture() {
        assert_eq!(csv(&costs(|bits| bits)[..2]), "type,bits,nanoseconds\n1,100,100\n1,200,200\n");
    }
}
