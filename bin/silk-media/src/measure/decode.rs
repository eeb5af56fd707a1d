//! The question: does a decoder of libavcodec take a picture packet by packet, and what would that
//! save? Both ways decode the same packets in turn; their pictures are compared sample by sample, the
//! CPU time of each picture is told (the best of the rounds), and what each shows of the clip when
//! packets are lost.

use super::packets::packets;
use crate::avcodec::{AvDecoder, Feeding, Limits};
use crate::clock::thread_cpu;
use crate::demux::{Coded, Demuxer};
use crate::screen::sum;
use crate::trouble::Trouble;
use silk_media::{Coding, Decoder, Unit};
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::time::Duration;

/// What is measured.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// The clip
    clip: PathBuf,
    /// How often each way decodes it
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Of so many packets one is lost, in the part that loses
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(2..))]
    lose: u32,
}

/// The two ways, and what each is called.
const WAYS: [(Feeding, &str); 2] = [(Feeding::ByPicture, "by picture"), (Feeding::ByPacket, "by packet")];

/// Measures and prints the table.
pub fn run(options: &Options) -> Result<(), Trouble> {
    let demuxer = Demuxer::open(&options.clip)?;
    let coding = demuxer.coding();
    let pictures: Vec<Coded> = demuxer.collect();
    let units: Vec<Unit<'_>> =
        pictures.iter().zip(0..).flat_map(|(picture, stamp)| packets(picture.bytes(), stamp)).collect();
    let lossy = lose(&units, options.lose);
    let mut lines = vec![format!("{} coded pictures in {} packets", pictures.len(), units.len())];
    let mut best = [Duration::MAX; 2];
    for _ in 0..options.rounds {
        for ((way, _), best) in WAYS.iter().zip(&mut best) {
            *best = decode(coding, *way, &units, false)?.cpu.min(*best);
        }
    }
    let whole = decode(coding, Feeding::ByPicture, &units, true)?;
    for ((way, name), best) in WAYS.iter().zip(best) {
        let (intact, lossy) = (decode(coding, *way, &units, true)?, decode(coding, *way, &lossy, true)?);
        let each = best.as_secs_f64() * 1e6 / pictures.len().max(1) as f64;
        let equal = if intact.sums == whole.sums { "the same" } else { "DIFFERENT" };
        let right = lossy.sums.iter().filter(|sum| whole.sums.contains(sum)).count();
        lines.push(format!(
            "{name}: {each:.1} µs of CPU a coded picture; {} pictures, {equal}; 1 packet in {} lost: {} pictures, \
             {right} of them intact, {} concealed, {} errors",
            intact.sums.len(),
            options.lose,
            lossy.sums.len(),
            lossy.concealed,
            lossy.errors
        ));
    }
    let text = lines.join("\n");
    writeln!(stdout(), "{text}").map_err(|error| Trouble::Unwritable("the table".to_owned(), error))
}

/// What came of decoding a clip.
struct Done {
    cpu: Duration,
    sums: Vec<u64>,
    concealed: u64,
    errors: u64,
}

fn decode(coding: Coding, way: Feeding, units: &[Unit<'_>], summing: bool) -> Result<Done, Trouble> {
    let mut decoder = AvDecoder::feeding(coding, Limits::default(), way)?;
    let mut done = Done { cpu: Duration::ZERO, sums: Vec::new(), concealed: 0, errors: 0 };
    let before = thread_cpu();
    let (mut sums, mut concealed) = (Vec::new(), 0);
    let mut take = |picture: Box<dyn silk_media::Picture>| {
        concealed += u64::from(picture.is_concealed());
        sums.push(if summing { sum(&*picture) } else { 0 });
    };
    for unit in units {
        done.errors += u64::from(decoder.decode(*unit, &mut take).is_err());
    }
    decoder.finish(&mut take);
    done.cpu = thread_cpu().saturating_sub(before);
    (done.sums, done.concealed) = (sums, concealed);
    Ok(done)
}

/// The packets without every `one_in`-th; the next says that there is a gap.
fn lose<'a>(units: &[Unit<'a>], one_in: u32) -> Vec<Unit<'a>> {
    let lost = |index: usize| (index + 1).is_multiple_of(one_in as usize);
    let kept = units.iter().enumerate().filter(|(index, _)| !lost(*index));
    kept.map(|(index, unit)| Unit { gap: index > 0 && lost(index - 1), ..*unit }).collect()
}
