//! A link between two machines: the emulator, with segments on it. They cross it as bytes with a
//! checksum, so that options are really written and parsed, and a corrupted segment is noticed the
//! way a real one is.

use std::num::NonZeroU64;
use std::time::Duration;

use silk_instant::Instant;
use silk_tcp::{Codepoint, Flags, Header, Options, Segment, SeqNumber};
use silk_testkit::dice::Dice;
use silk_testkit::emulator::{self, Conditions, Loss};

/// The conditions of a link as most tests say them; the chances are per mille.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    pub loss: u64,
    pub duplication: u64,
    pub corruption: u64,
    /// Chance of being held up for as much as four times the delay.
    pub reordering: u64,
    pub delay: Duration,
    /// Octets per second; 0 for any number.
    pub rate: u64,
    /// Packets that may wait for their turn when there is a rate; more are lost.
    pub queue: usize,
}

impl Weather {
    pub const FAIR: Self = Self {
        loss: 0,
        duplication: 0,
        corruption: 0,
        reordering: 0,
        delay: Duration::from_millis(5),
        rate: 0,
        queue: 0,
    };
}

impl From<Weather> for Conditions {
    fn from(weather: Weather) -> Self {
        let chance = |per_mille: u64| per_mille as f64 / 1_000.0;
        Self {
            duplicate: chance(weather.duplication),
            queue: weather.queue,
            rate: NonZeroU64::new(weather.rate * 8),
            loss: Loss::random(chance(weather.loss)),
            corrupt: chance(weather.corruption),
            delay: weather.delay,
            reorder: chance(weather.reordering),
            reorder_by: 4 * weather.delay,
            ..Self::default()
        }
    }
}

/// A segment as it crosses the link.
#[derive(Clone, Debug)]
pub struct Packet {
    pub header: Header,
    pub ecn: Codepoint,
    pub text: Vec<u8>,
}

impl Packet {
    /// Octets before what is written of the TCP header, so that a packet is as long as it is on
    /// Ethernet: 14, 20 of IPv4, and 4 of TCP that are left out.
    const LOWER: usize = 38;
    /// Octets written of the TCP header, without options.
    const FIXED: usize = 16;
    /// Where IPv4 has its service bits.
    const TOS: usize = 15;

    fn encode(&self) -> Vec<u8> {
        let Header { seq, ack, flags, window, urgent, options } = self.header;
        let mut field = [0; Options::MAX_BYTES];
        let len = options.write(&mut field);
        let mut bytes = vec![0; Self::LOWER];
        bytes.extend([0, 0, flags.bits(), len as u8]);
        bytes[Self::TOS] = self.ecn.bits();
        bytes.extend(window.to_be_bytes());
        bytes.extend(seq.raw().to_be_bytes());
        bytes.extend(ack.raw().to_be_bytes());
        bytes.extend(urgent.to_be_bytes());
        bytes.extend(&field[..len]);
        bytes.extend(&self.text);
        let sum = checksum(&bytes);
        bytes[Self::LOWER..][..2].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        if checksum(bytes) != 0 {
            return None;
        }
        let ecn = Codepoint::from_tos(*bytes.get(Self::TOS)?);
        let bytes = bytes.get(Self::LOWER..)?;
        let word = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let options_end = Self::FIXED + usize::from(*bytes.get(3)?);
        let options = Options::parse(bytes.get(Self::FIXED..options_end)?).ok()?;
        let (flags, window) = (Flags::from_bits(bytes[2]), u16::from_be_bytes([bytes[4], bytes[5]]));
        let (seq, ack) = (SeqNumber::new(word(6)?), SeqNumber::new(word(10)?));
        let urgent = u16::from_be_bytes([*bytes.get(14)?, *bytes.get(15)?]);
        let text = bytes.get(options_end..)?.to_vec();
        Some(Self { header: Header { seq, ack, flags, window, urgent, options }, ecn, text })
    }

    pub fn segment(&self) -> Segment<'_> {
        let Header { seq, ack, flags, window, urgent, options } = self.header;
        Segment { seq, ack, flags, window, urgent, ecn: self.ecn, options, payload: &self.text }
    }
}

/// The Internet checksum (RFC 1071); zero over bytes that contain their own.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u64 = words.sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}

/// Decides about a packet by its number and content.
pub type Fate = Box<dyn FnMut(u64, &Packet) -> bool>;

/// One direction of a link.
pub struct Link {
    link: emulator::Link,
    departures: u64,
    /// Who brings what has arrived.
    carrier: Option<Carrier>,
    /// Decides the fate of the n-th packet beside the weather: true loses it.
    pub lose: Fate,
    /// Decides whether the n-th packet is marked, if it is ECN-capable.
    pub mark: Fate,
}

impl Link {
    pub fn new(conditions: &Conditions, seed: u64) -> Self {
        let lose = Box::new(|_, _: &Packet| false);
        let mark = Box::new(|_, _: &Packet| false);
        Self { link: emulator::Link::new(conditions, seed), departures: 0, carrier: None, lose, mark }
    }

    /// What arrives is brought by somebody who is late.
    pub fn set_late(&mut self, usually: Duration, sometimes: Duration, seed: u64) {
        self.carrier = Some(Carrier { usually, sometimes, dice: Dice::new(seed), comes: None });
    }

    pub fn send(&mut self, now: Instant, packet: &Packet) {
        self.departures += 1;
        if (self.lose)(self.departures, packet) {
            return;
        }
        let mut packet = packet.clone();
        if packet.ecn != Codepoint::NotEct && (self.mark)(self.departures, &packet) {
            packet.ecn = Codepoint::Ce;
        }
        self.link.send(now, packet.encode());
        self.call();
    }

    /// Whoever brings packets is called for the next one.
    fn call(&mut self) {
        if let (Some(carrier), Some(next)) = (&mut self.carrier, self.link.next_event()) {
            carrier.call(next);
        }
    }

    /// The way now takes packets of so many bytes.
    pub fn set_longest(&mut self, longest: Option<NonZeroU64>) {
        self.link.set_longest(longest);
    }

    pub fn next_event(&self) -> Option<Instant> {
        match &self.carrier {
            Some(carrier) => carrier.comes,
            None => self.link.next_event(),
        }
    }

    /// A packet that has arrived; a corrupted one is dropped here.
    pub fn arrive(&mut self, now: Instant) -> Option<Packet> {
        if self.next_event().is_none_or(|next| next > now) {
            return None;
        }
        while let Some(bytes) = self.link.arrive(now) {
            if let Some(packet) = Packet::decode(&bytes) {
                return Some(packet);
            }
        }
        self.carrier.iter_mut().for_each(|carrier| carrier.comes = None);
        self.call();
        None
    }
}

/// Brings what has arrived, all of it together, some time after it was called for the first: a thread that waits for
/// a processor, or an interrupt that is put off.
struct Carrier {
    /// Up to so late as a rule.
    usually: Duration,
    /// Up to so late one time in twenty.
    sometimes: Duration,
    dice: Dice,
    comes: Option<Instant>,
}

impl Carrier {
    fn call(&mut self, next: Instant) {
        if self.comes.is_none() {
            let most = if self.dice.falls(0.05) { self.sometimes } else { self.usually };
            let late = self.dice.below(most.as_nanos() as u64);
            self.comes = Some(next + Duration::from_nanos(late));
        }
    }
}
