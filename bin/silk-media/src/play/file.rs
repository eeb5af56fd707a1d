//! Playing a local file: one thread decodes a few pictures ahead and shows each when it is due. A
//! picture for which it is too late is counted and left out, so that the film keeps its time.

use super::{Options, Report, title};
use crate::avcodec::{AvDecoder, Limits};
use crate::clock::thread_cpu;
use crate::demux::Demuxer;
use crate::screen::Sink;
use crate::stop::sleep_until;
use crate::trouble::Trouble;
use silk_media::{DecodeError, Decoder, Picture, Unit};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Pictures that are decoded ahead.
const AHEAD: usize = 8;
/// Coded pictures that may fail before the first comes out; then it is of no use to go on.
const HOPELESS: u64 = 100;
/// How often a wait looks whether the window was closed.
const GLANCE: Duration = Duration::from_millis(50);

/// Plays `clip` to its end or until `stop` is set.
pub(super) fn play(clip: &Path, options: &Options, stop: &AtomicBool) -> Result<Report, Trouble> {
    let demuxer = Demuxer::open(clip)?;
    if options.screen.writes_over(clip) {
        return Err(Trouble::Usage(format!("the pictures of `{}` would be written over it", clip.display())));
    }
    let rate = options.fps.map_or(demuxer.rate(), |fps| ((fps * 1000.0).round() as u32, 1000));
    let decoder = AvDecoder::new(demuxer.coding(), Limits::default())?;
    let screen = options.screen.open(&title(clip), rate)?;
    let paced = screen.is_paced() && !options.fast;
    let period = paced.then(|| Duration::from_secs(1) * rate.1 / rate.0);
    let player = Player {
        source: Source { demuxer, decoder, stamp: 0, ended: false, fault: None },
        queue: VecDeque::new(),
        screen,
        period,
        every: u64::from(options.every),
        report: Report::default(),
    };
    let fault = |why| Trouble::Undecodable(clip.to_owned(), why);
    player.run(stop)?.map_err(fault)
}

/// The file and its decoder.
struct Source {
    demuxer: Demuxer,
    decoder: AvDecoder,
    stamp: u32,
    ended: bool,
    /// The decoder's first error.
    fault: Option<DecodeError>,
}

struct Player {
    source: Source,
    queue: VecDeque<Box<dyn Picture>>,
    screen: Box<dyn Sink>,
    period: Option<Duration>,
    every: u64,
    report: Report,
}

impl Player {
    /// Plays. What is wrong with the file, where nothing came of it.
    fn run(mut self, stop: &AtomicBool) -> Result<Result<Report, DecodeError>, Trouble> {
        let cpu = thread_cpu();
        // The clock begins with the first picture: opening a window takes its time.
        self.fill(1, stop);
        let start = Instant::now();
        for number in 0.. {
            let due =
                self.period.map(|period| start + Duration::from_nanos(period.as_nanos() as u64 * number));
            if !self.wait(due, stop) {
                break;
            }
            let Some(picture) = self.queue.pop_front() else { break };
            if number % self.every == 0 {
                self.show(&*picture, due);
            }
        }
        self.report.took = start.elapsed();
        self.report.cpu = thread_cpu().saturating_sub(cpu);
        let shown = self.screen.end()?;
        (self.report.replaced, self.report.sum) = (shown.replaced, shown.sum);
        self.report.shown -= self.report.replaced.min(self.report.shown);
        let fault = self.source.fault.filter(|_| self.report.decoded == 0 && self.source.ended);
        Ok(fault.map_or(Ok(self.report), Err))
    }

    /// Decodes ahead until `due`, at least until there is a picture. Whether anybody still wants to see it.
    fn wait(&mut self, due: Option<Instant>, stop: &AtomicBool) -> bool {
        self.fill(1, stop);
        let Some(due) = due else { return self.is_wanted(stop) };
        while self.is_wanted(stop) {
            let now = Instant::now();
            if now >= due {
                return true;
            }
            if self.queue.len() < AHEAD && !self.source.ended {
                self.fill(self.queue.len() + 1, stop);
            } else {
                sleep_until(due.min(now + GLANCE), stop);
            }
        }
        false
    }

    fn show(&mut self, picture: &dyn Picture, due: Option<Instant>) {
        let behind = due.map_or(Duration::ZERO, |due| due.elapsed());
        if self.period.is_some_and(|period| behind > period) {
            self.report.late += 1;
            return;
        }
        self.report.shown += 1;
        self.screen.show(picture);
    }

    fn is_wanted(&self, stop: &AtomicBool) -> bool {
        !stop.load(Ordering::Relaxed) && !self.screen.is_closed()
    }

    /// Decodes until `pictures` are there, the file has ended or nobody wants to see it.
    fn fill(&mut self, pictures: usize, stop: &AtomicBool) {
        while self.queue.len() < pictures && !self.source.ended && self.is_wanted(stop) {
            self.source.decode(&mut self.queue, &mut self.report);
        }
    }
}

impl Source {
    /// Decodes the next coded picture of the file.
    fn decode(&mut self, queue: &mut VecDeque<Box<dyn Picture>>, report: &mut Report) {
        let (before, mut concealed, mut size) = (queue.len(), 0, report.size);
        let mut take = |picture: Box<dyn Picture>| {
            concealed += u64::from(picture.is_concealed());
            size = picture.size();
            queue.push_back(picture);
        };
        match self.demuxer.next() {
            Some(coded) => {
                let unit =
                    Unit { bytes: coded.bytes(), stamp: self.stamp, first: true, last: true, gap: false };
                if let Err(why) = self.decoder.decode(unit, &mut take) {
                    report.errors += 1;
                    self.fault.get_or_insert(why);
                }
                self.stamp = self.stamp.wrapping_add(1);
            }
            None => {
                self.decoder.finish(&mut take);
                self.ended = true;
            }
        }
        report.concealed += concealed;
        report.size = size;
        report.decoded += (queue.len() - before) as u64;
        self.ended |= report.decoded == 0 && report.errors >= HOPELESS;
    }
}
