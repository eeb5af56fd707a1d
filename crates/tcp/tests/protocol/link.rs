//! A link with weather: loss, duplication, reordering and corruption by a seeded generator.
//! Segments cross it as bytes with a checksum, so that options are really written and parsed, and a
//! corrupted segment is noticed the way a real one is.

use std::collections::BTreeMap;
use std::time::Duration;

use silk_instant::Instant;
use silk_tcp::{Codepoint, Flags, Header, Options, Segment, SeqNumber};

/// A generator whose whole state is its seed (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.word() % limit
    }

    /// True `per_mille` times in a thousand.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1_000) < per_mille
    }
}

/// What a link does to segments; the chances are per mille.
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

    /// How long a packet of `octets` occupies the link.
    fn occupies(&self, octets: usize) -> Duration {
        match self.rate {
            0 => Duration::ZERO,
            rate => Duration::from_nanos(octets as u64 * 1_000_000_000 / rate),
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
    fn encode(&self) -> Vec<u8> {
        let Header { seq, ack, flags, window, options } = self.header;
        let mut field = [0; Options::MAX_BYTES];
        let len = options.write(&mut field);
        let mut bytes = vec![0, 0, flags.bits(), len as u8];
        bytes.push(self.ecn.bits());
        bytes.extend(window.to_be_bytes());
        bytes.extend(seq.raw().to_be_bytes());
        bytes.extend(ack.raw().to_be_bytes());
        bytes.extend(&field[..len]);
        bytes.extend(&self.text);
        let sum = checksum(&bytes);
        bytes[..2].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        if checksum(bytes) != 0 {
            return None;
        }
        let options_end = 15 + usize::from(*bytes.get(3)?);
        let options = Options::parse(bytes.get(15..options_end)?).ok()?;
        let (flags, window) = (Flags::from_bits(bytes[2]), u16::from_be_bytes([bytes[5], bytes[6]]));
        let (seq, ack) = (SeqNumber::new(word(7)?), SeqNumber::new(word(11)?));
        let text = bytes.get(options_end..)?.to_vec();
        let ecn = Codepoint::from_tos(bytes[4]);
        Some(Self { header: Header { seq, ack, flags, window, options }, ecn, text })
    }

    pub fn segment(&self) -> Segment<'_> {
        let Header { seq, ack, flags, window, options } = self.header;
        Segment { seq, ack, flags, window, urgent: 0, ecn: self.ecn, options, payload: &self.text }
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
    pub weather: Weather,
    random: Random,
    /// Under way, by arrival and then by departure.
    under_way: BTreeMap<(Instant, u64), Vec<u8>>,
    departures: u64,
    /// When the last packet will have left, at this rate.
    busy_until: Instant,
    /// Decides the fate of the n-th packet beside the weather: true loses it.
    pub lose: Fate,
    /// Decides whether the n-th packet is marked, if it is ECN-capable.
    pub mark: Fate,
}

impl Link {
    pub fn new(weather: Weather, seed: u64) -> Self {
        let lose = Box::new(|_, _: &Packet| false);
        Self {
            weather,
            random: Random(seed),
            under_way: BTreeMap::new(),
            departures: 0,
            busy_until: Instant::ZERO,
            lose,
            mark: Box::new(|_, _: &Packet| false),
        }
    }

    pub fn send(&mut self, now: Instant, packet: &Packet) {
        self.departures += 1;
        if (self.lose)(self.departures, packet) || self.random.chance(self.weather.loss) {
            return;
        }
        let occupies = self.weather.occupies(packet.text.len() + 60);
        if self.weather.rate > 0 && self.busy_until - now > occupies * self.weather.queue as u32 {
            return;
        }
        self.busy_until = self.busy_until.max(now) + occupies;
        let now = self.busy_until;
        let mut packet = packet.clone();
        if packet.ecn != Codepoint::NotEct && (self.mark)(self.departures, &packet) {
            packet.ecn = Codepoint::Ce;
        }
        self.carry(now, packet.encode());
        if self.random.chance(self.weather.duplication) {
            self.carry(now, packet.encode());
        }
    }

    fn carry(&mut self, now: Instant, mut bytes: Vec<u8>) {
        self.departures += 1;
        if self.random.chance(self.weather.corruption) {
            let bit = self.random.below(8 * bytes.len() as u64) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        let held_up = self.random.chance(self.weather.reordering);
        let extra = if held_up { self.random.below(4 * self.weather.delay.as_micros() as u64) } else { 0 };
        let arrival = now + self.weather.delay + Duration::from_micros(extra);
        self.under_way.insert((arrival, self.departures), bytes);
    }

    pub fn next_arrival(&self) -> Option<Instant> {
        self.under_way.keys().next().map(|key| key.0)
    }

    /// A packet that has arrived; a corrupted one is dropped here.
    pub fn arrive(&mut self, now: Instant) -> Option<Packet> {
        while let Some(entry) = self.under_way.first_entry().filter(|entry| entry.key().0 <= now) {
            if let Some(packet) = Packet::decode(&entry.remove()) {
                return Some(packet);
            }
        }
        None
    }
}
