//! The question: how many pictures a second could GStreamer and ffmpeg decode of a stream over RTP, on
//! one CPU? Each receives the clip over a cable of its own between two hosts, from ffmpeg's own RTP
//! source (which cuts at slices where the clip's are small enough).

use crate::demux::Demuxer;
use crate::peers::{Peer, Reception, Seen};
use crate::trouble::Trouble;
use silk_media::Coding;
use silk_testkit::netns::{Host, Rig, RigError, Running, SERVER};
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;

/// What is measured.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// The clip
    clip: PathBuf,
    /// Times its own rate that the clip is sent with; where too much is lost, less
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100))]
    speed: u32,
    /// Pictures are shown when they are due, and dropped when they are late
    #[arg(long)]
    paced: bool,
    /// The peers' CPU
    #[arg(long, value_name = "N", default_value_t = 1)]
    cpu: u32,
    /// The source's CPU
    #[arg(long, value_name = "N", default_value_t = 0)]
    source_cpu: u32,
}

/// Where the peers expect RTP (RFC 3551 §8).
const PORT: u16 = 5004;

/// So much longer than the clip a peer may take. One that has seen all its pictures ends at once.
const GRACE: Duration = Duration::from_secs(20);

/// Pictures at the end that nobody waits for: without another behind them they are not known to be whole.
const BEHIND: u32 = 8;

/// Measures and prints a line for each peer.
pub fn run(options: &Options) -> Result<(), Trouble> {
    let demuxer = Demuxer::open(&options.clip)?;
    let (coding, rate) = (demuxer.coding(), demuxer.rate());
    let pictures = demuxer.count() as u32;
    let speed = if options.paced { 1 } else { options.speed };
    let length = Duration::from_secs_f64(f64::from(pictures) * f64::from(rate.1) / f64::from(rate.0));
    for peer in Peer::ALL.into_iter().filter(|peer| peer.is_installed()) {
        let seen = one(options, peer, coding, (pictures, speed, length))?;
        let line = format!(
            "{}: {} of {pictures} pictures, {} dropped, {} late, {:.1} s, {:.3} ms of CPU each: {:.0} pictures/s at most",
            peer.name(),
            seen.pictures,
            seen.dropped,
            seen.late,
            seen.wall.as_secs_f64(),
            1000.0 / seen.maximum_rate(),
            seen.maximum_rate()
        );
        writeln!(stdout(), "{line}").map_err(|error| Trouble::Unwritable("the table".to_owned(), error))?;
    }
    Ok(())
}

fn one(
    options: &Options,
    peer: Peer,
    coding: Coding,
    (pictures, speed, length): (u32, u32, Duration),
) -> Result<Seen, Trouble> {
    let rig = Rig::new().map_err(failed)?;
    let scratch = TempDir::with_prefix("silk-media-")
        .map_err(|error| Trouble::Unwritable("a folder of its own".to_owned(), error))?;
    let reception = Reception {
        host: &rig.server,
        cpus: &options.cpu.to_string(),
        port: PORT,
        coding,
        pictures: pictures.saturating_sub(BEHIND).max(1),
        paced: options.paced,
        scratch: scratch.path(),
    };
    let receiving = peer.receive(&reception)?;
    let _source = source(&rig.client, options, coding, speed)?;
    receiving.finish(length / speed + GRACE)
}

/// ffmpeg as a source, at `speed` times the clip's rate. H.264 has its headers in the stream, since no
/// session description tells them.
fn source(host: &Host, options: &Options, coding: Coding, speed: u32) -> Result<Running, Trouble> {
    let clip = std::path::absolute(&options.clip).unwrap_or_else(|_| options.clip.clone());
    let mut command = host.command("taskset");
    command.args(["-c", &options.source_cpu.to_string(), "ffmpeg", "-nostdin", "-loglevel", "quiet"]);
    command.args(["-readrate", &speed.to_string(), "-i"]).arg(clip).args(["-an", "-c:v", "copy"]);
    if coding == Coding::H264 {
        command.args(["-bsf:v", "h264_mp4toannexb"]);
    }
    command.args(["-f", "rtp", &format!("rtp://{SERVER}:{PORT}?pkt_size=1400")]);
    Running::start(command.stdout(Stdio::null())).map_err(failed)
}

fn failed(error: RigError) -> Trouble {
    Trouble::Program(error.to_string())
}
