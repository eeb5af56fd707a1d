//! `silk send`: sends a clip, cut so that a player can use each packet as it comes (application-level
//! framing, Scout §4.1): over MFLOW, as far as the player lets it, or over RTP, at the clip's rate.
//! The sender is an ordinary program over Linux's UDP: it runs on any host.

mod clip;
mod over_mflow;
mod over_rtp;

use crate::host;
use crate::play::rate;
use crate::trouble::Trouble;
use clip::Clip;
use silk_media::Rate;
use silk_wire::{mflow, rtp};
use std::io::{Write, stdout};
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

/// What to send and where to.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// The clip: any file that libavformat opens, with MPEG-1, MPEG-2 or H.264 in it
    clip: PathBuf,
    /// The player; the usual port where none is named (5544, with --rtp 5004). An address of IPv6 with a port has
    /// brackets: `[fd00::1]:5544`
    #[arg(long, value_name = "HOST[:PORT]")]
    to: String,
    /// Over RTP (RFC 2250, RFC 6184) instead of MFLOW
    #[arg(long)]
    rtp: bool,
    /// Pictures in a second, instead of the clip's own rate
    #[arg(long, value_name = "N", value_parser = rate)]
    fps: Option<f64>,
    /// As fast as the player takes it, or with --rtp as the network does
    #[arg(long, conflicts_with = "fps")]
    fast: bool,
    /// Begin again at the end, until interrupted
    #[arg(long = "loop")]
    again: bool,
    /// Bytes of a datagram at most, with its headers from UDP's on; without, what fits an Ethernet frame: 1480, over
    /// IPv6 1460
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(256..=8972))]
    size: Option<u16>,
    /// The local port
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
}

/// Bytes of UDP's header.
const UDP: usize = 8;

impl Options {
    /// Bytes of a packet's payload to `to` at most, behind headers of `headers` bytes.
    fn payload(&self, to: SocketAddr, headers: usize) -> usize {
        let usual = if to.is_ipv4() { 1480 } else { 1460 };
        usize::from(self.size.unwrap_or(usual)) - UDP - headers
    }

    /// The rate to send at; `None`: as fast as may be.
    fn rate(&self, clip: &Clip) -> Option<Rate> {
        let wished = self.fps.and_then(|fps| Rate::from_millis((fps * 1000.0).round() as u32));
        if self.fast { None } else { Some(wished.unwrap_or(clip.rate())) }
    }
}

/// Sends the clip to its end, or until interrupted.
///
/// # Errors
/// A file that is no clip, a host that is not found, a player that says nothing.
pub fn run(options: &Options, stop: &AtomicBool) -> Result<ExitCode, Trouble> {
    let usual = if options.rtp { rtp::PORT } else { mflow::PORT };
    let to = host::address(&options.to, usual)?;
    let headers = if options.rtp { silk_media::alf::RTP_HEADERS } else { mflow::HEADER };
    let clip = Clip::open(&options.clip, options.payload(to, headers), options.again)?;
    let socket = socket(to, options.port)?;
    let report = match options.rtp {
        true => over_rtp::send(options, clip, &socket, stop)?.to_string(),
        false => over_mflow::send(options, clip, &socket, stop)?.to_string(),
    };
    writeln!(stdout(), "{report}").map_err(|error| Trouble::Unwritable("the report".into(), error))?;
    Ok(ExitCode::SUCCESS)
}

fn socket(to: SocketAddr, port: u16) -> Result<UdpSocket, Trouble> {
    let any: SocketAddr = if to.is_ipv4() { ([0, 0, 0, 0], port).into() } else { ([0u16; 8], port).into() };
    let failed = |error| Trouble::Program(format!("cannot send to {to}: {error}"));
    let socket = UdpSocket::bind(any).map_err(failed)?;
    socket.connect(to).map_err(failed)?;
    Ok(socket)
}
