//! Over RTP: nobody answers, so packets leave at the clip's rate, those of a picture spread over its
//! time.

use super::Options;
use super::clip::{Clip, Cut};
use crate::stop::sleep_until;
use crate::trouble::Trouble;
use silk_media::alf::RtpSource;
use silk_media::{Coding, Rate};
use silk_wire::rtp;
use std::fmt;
use std::io::IoSlice;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// RTP's clock for video (RFC 2250 §3.3, RFC 6184 §5.1), ticks in a second.
const CLOCK: u64 = 90_000;
/// The first dynamic payload type: what ffmpeg and GStreamer say for H.264.
const H264: u8 = 96;
/// The most packets that are collected of one picture.
const PICTURE: usize = 4096;

/// How much is sent faster than its rate, where it could not be in time.
const CATCH_UP: Duration = Duration::from_secs(1);

/// What became of a clip.
#[derive(Default)]
pub struct Report {
    pictures: u64,
    packets: u64,
    refused: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pictures, packets, refused } = self;
        write!(f, "{pictures} pictures sent in {packets} packets; {refused} refused by Linux")
    }
}

/// Sends the clip.
///
/// # Errors
/// A clip that is damaged.
pub fn send(
    options: &Options,
    mut clip: Clip,
    socket: &UdpSocket,
    stop: &AtomicBool,
) -> Result<Report, Trouble> {
    let kind = if clip.coding() == Coding::H264 { H264 } else { rtp::MPV };
    let random = silk_appliance::random();
    let stream = RtpSource::new(kind, random as u32, (random >> 32) as u16);
    let (pace, own) = (options.rate(&clip), clip.rate());
    let mut sender = Sender {
        socket,
        stop,
        stream,
        start: Instant::now(),
        pace,
        own,
        base: 0,
        top: 0,
        report: Report::default(),
    };
    let (mut picture, mut rounds) = (Vec::new(), 0);
    while let Some(cut) = clip.next()?.filter(|_| !stop.load(Ordering::Relaxed)) {
        if clip.rounds != rounds {
            rounds = clip.rounds;
            sender.base = sender.top + 1;
        }
        let last = cut.piece.last;
        picture.push(cut);
        if last || picture.len() == PICTURE {
            sender.send(&picture);
            picture.clear();
        }
    }
    sender.send(&picture);
    Ok(sender.report)
}

struct Sender<'a> {
    socket: &'a UdpSocket,
    stop: &'a AtomicBool,
    stream: RtpSource,
    start: Instant,
    pace: Option<Rate>,
    own: Rate,
    /// What is added to the numbers of pictures, and the highest so far.
    base: u64,
    top: u64,
    report: Report,
}

impl Sender<'_> {
    fn send(&mut self, picture: &[Cut]) {
        let Some(first) = picture.first() else { return };
        let number = self.base + u64::from(first.piece.picture);
        self.top = self.top.max(number);
        // Stamps are those of showing, at the clip's own rate, whatever it is sent at.
        let stamp = (u128::from(number) * u128::from(CLOCK) * 1000 / u128::from(self.own.millis())) as u32;
        for (n, cut) in picture.iter().enumerate() {
            self.wait(n, picture.len());
            let Self { stream, socket, report, .. } = self;
            stream.send(&cut.packet(), stamp, |headers, payload| {
                report.packets += 1;
                report.refused += u64::from(!transmit(socket, headers, payload));
            });
        }
        self.report.pictures += 1;
    }

    /// Until packet `n` of `packets` of the next picture is due, or nobody waits for it.
    fn wait(&mut self, n: usize, packets: usize) {
        let Some(rate) = self.pace else { return };
        let after = due(rate, self.report.pictures, (n, packets));
        self.start = kept(self.start, after, Instant::now());
        sleep_until(self.start + after, self.stop);
    }
}

/// When a packet is due, after the beginning: the `n`-th of `packets` of the picture that comes after so many.
fn due(rate: Rate, pictures: u64, (n, packets): (usize, usize)) -> Duration {
    rate.time_of(pictures) + rate.time_of(1) * n as u32 / packets.max(1) as u32
}

/// When the clip has begun, for what is due `after` that and leaves at `now`. Who was stopped, or waited for its disk, for
/// longer than [`CATCH_UP`] is late from then on: sent at once, what it has missed would find no room with the receiver.
fn kept(start: Instant, after: Duration, now: Instant) -> Instant {
    let behind = now.saturating_duration_since(start + after);
    start + behind.saturating_sub(CATCH_UP)
}

fn transmit(socket: &UdpSocket, headers: &[u8], payload: &[u8]) -> bool {
    rustix::net::sendmsg(
        socket,
        &[IoSlice::new(headers), IoSlice::new(payload)],
        &mut rustix::net::SendAncillaryBuffer::default(),
        rustix::net::SendFlags::empty(),
    )
    .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_spread_over_their_pictures_time() {
        let slow = Rate::from_millis(500).unwrap();
        let at = |pictures, packet| due(slow, pictures, packet).as_millis();
        assert_eq!([at(0, (0, 4)), at(0, (3, 4)), at(2, (0, 1)), at(2, (1, 2))], [0, 1500, 4000, 5000]);
    }

    #[test]
    fn what_was_missed_in_a_minute_is_not_sent_at_once() {
        let start = Instant::now();
        let ms = Duration::from_millis;
        assert_eq!(kept(start, ms(400), start), start, "in time");
        assert_eq!(kept(start, ms(400), start + ms(1400)), start, "a second is caught up with");
        let later = kept(start, ms(400), start + ms(60_400));
        assert_eq!(later, start + ms(59_000));
        assert_eq!(kept(later, ms(440), start + ms(60_440)), later, "once");
    }
}
