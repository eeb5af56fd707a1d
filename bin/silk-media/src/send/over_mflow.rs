//! Over MFLOW: [`Source`] says what may be sent when; this does it.

use super::Options;
use super::clip::{Clip, Cut};
use crate::trouble::Trouble;
use silk_media::{Act, Coding, Over, Sending, Source, SourceOptions};
use silk_wire::mflow::{self, HEADER};
use std::fmt;
use std::io::{ErrorKind, IoSlice};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What became of a clip.
pub struct Report {
    figures: silk_media::SourceFigures,
    over: Option<Over>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.over {
            Some(Over::Ended) => "the player has taken all",
            Some(Over::Unanswered) => "the player did not say that it has taken all",
            Some(Over::Stopped) => "the player wanted no more",
            Some(Over::Silent) => "the player said nothing any more",
            None => "interrupted",
        };
        let silk_media::SourceFigures { sent, heard, ignored, round_trip, .. } = self.figures;
        let millis = round_trip.as_secs_f64() * 1e3;
        write!(
            f,
            "{sent} packets sent, {heard} advertisements heard, {ignored} ignored, round trip {millis:.2} ms: {how}"
        )
    }
}

/// Sends the clip.
///
/// # Errors
/// A clip that is damaged, or a player that never said anything.
pub fn send(
    options: &Options,
    mut clip: Clip,
    socket: &UdpSocket,
    stop: &AtomicBool,
) -> Result<Report, Trouble> {
    let sending = options.rate(&clip).map_or(Sending::Free, Sending::At);
    let coding = if clip.coding() == Coding::H264 { mflow::Coding::H264 } else { mflow::Coding::Mpeg };
    let wishes = SourceOptions {
        sending,
        coding,
        ahead: AHEAD,
        sequence: silk_appliance::random() as u32,
        ..SourceOptions::default()
    };
    let mut source = Source::new(wishes, crate::clock::now());
    let (mut cut, mut rounds) = (clip.next()?, 0);
    let mut leaves_by = None;
    let over = loop {
        listen(&mut source, socket, Duration::ZERO);
        let now = crate::clock::now();
        // Who is interrupted says goodbye: else the player would wait for what does not come.
        if stop.load(Ordering::Relaxed) {
            cut = None;
            if now >= *leaves_by.get_or_insert(now + FAREWELL) {
                break None;
            }
        }
        match source.next(now, cut.as_ref().map(|cut| &cut.piece)) {
            Act::Send(data) => {
                transmit(socket, data, cut.as_ref());
                cut = clip.next()?;
                if clip.rounds != rounds {
                    rounds = clip.rounds;
                    source.begin_again();
                }
            }
            Act::Ask(data) => transmit(socket, data, None),
            Act::Wait(at) => listen(&mut source, socket, at.since(now).min(NAP)),
            Act::Over(over) => break leaves_by.is_none().then_some(over),
        }
    };
    let report = Report { figures: source.figures(), over };
    if over == Some(Over::Silent) && report.figures.heard == 0 {
        let to = socket.peer_addr().map_or_else(|_| options.to.clone(), |to| to.to_string());
        return Err(Trouble::Program(format!(
            "no player answers at {to}: `silk play` there, then send again"
        )));
    }
    Ok(report)
}

/// How much ahead of its time a packet may leave, so that the player has pictures in hand.
const AHEAD: Duration = Duration::from_millis(500);
/// How long one that is interrupted takes to say goodbye.
const FAREWELL: Duration = Duration::from_millis(500);
/// The longest sleep, so that an interruption is heard.
const NAP: Duration = Duration::from_millis(100);

fn transmit(socket: &UdpSocket, data: mflow::Data, cut: Option<&Cut>) {
    let mut packet = [0; HEADER];
    data.emit(&mut packet);
    let payload = cut.map_or(&[][..], |cut| &cut.bytes);
    // What Linux refuses is lost like any other packet: it is not reliable.
    let _ = rustix::net::sendmsg(
        socket,
        &[IoSlice::new(&packet), IoSlice::new(payload)],
        &mut rustix::net::SendAncillaryBuffer::default(),
        rustix::net::SendFlags::empty(),
    );
}

/// Hears what the player says, for `patience` at most.
fn listen(source: &mut Source, socket: &UdpSocket, patience: Duration) {
    let waits = !patience.is_zero();
    if socket.set_nonblocking(!waits).is_err() || (waits && socket.set_read_timeout(Some(patience)).is_err())
    {
        return;
    }
    let mut bytes = [0; 64];
    loop {
        match socket.recv(&mut bytes) {
            Ok(length) => {
                source.hear(crate::clock::now(), &bytes[..length]);
                if waits {
                    return;
                }
            }
            // Nobody listens there yet; the source gives up by itself.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused && !waits => {}
            Err(_) => return,
        }
    }
}
