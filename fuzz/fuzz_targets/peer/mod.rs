//! A TCP peer that stays legal, whatever the network does to it: it sends only what it may, acknowledges what
//! it has, offers a window that it never takes back, and asserts that the other side does the same.
//! Written from the RFCs and not from our own connection. Octets are counted from the first of each
//! stream; a FIN counts as one.

use silk_tcp::{Codepoint, Flags, Header, Options, Segment, SeqNumber};

/// Octets that it holds for its program.
const ROOM: u32 = 40_000;

/// The octet at this place of the peer's stream.
pub fn octet(place: u32) -> u8 {
    (place ^ (place >> 7)).wrapping_mul(167) as u8
}

/// A segment of the peer's.
#[derive(Clone, Debug)]
pub struct Sent {
    header: Header,
    payload: Vec<u8>,
}

impl Sent {
    /// As it arrives.
    pub fn segment(&self) -> Segment<'_> {
        let Header { seq, ack, flags, window, urgent, options } = self.header;
        Segment { seq, ack, flags, window, urgent, ecn: Codepoint::NotEct, options, payload: &self.payload }
    }
}

/// What the two agreed on.
#[derive(Clone, Copy, Debug)]
pub struct Agreed {
    /// The peer's largest segment, and ours.
    pub mss: (u16, u16),
    /// By how much the peer's windows are shifted, and ours.
    pub shifts: Option<(u8, u8)>,
    pub sack: bool,
    pub stamps: bool,
}

/// The peer.
pub struct Peer {
    agreed: Agreed,
    /// The first sequence number of its stream, and of ours.
    first: (SeqNumber, SeqNumber),
    /// How much it has sent, and whether a FIN after it.
    pub sent: u32,
    pub fin: bool,
    /// How much of that was acknowledged.
    pub acked: u32,
    /// Up to where it may send.
    edge: u32,
    /// What it has of our stream: pieces in order that do not touch, the last one that changed, where the FIN is.
    pieces: Vec<(u32, u32)>,
    latest: u32,
    fin_at: Option<u32>,
    /// How much of it its program has read.
    read: u32,
    /// Up to where it has ever allowed us to send.
    promised: u32,
    /// The timestamp to echo, and the acknowledgement it sent last (RFC 7323 §4.3).
    stamp: u32,
    last_ack: u32,
    /// Its clock, milliseconds.
    pub clock: u32,
    /// Where its urgent data ends; 0: it has had none.
    urgent: u32,
}

impl Peer {
    /// The peer that answers `syn`, and its answer.
    pub fn new(syn: &Header, iss: SeqNumber, agreed: Agreed) -> (Self, Sent) {
        let stamp = syn.options.timestamp.map_or(0, |(value, _)| value);
        let mut peer = Self {
            agreed,
            first: (iss + 1, syn.seq + 1),
            sent: 0,
            fin: false,
            acked: 0,
            edge: syn.window.into(),
            pieces: Vec::new(),
            latest: 0,
            fin_at: None,
            read: 0,
            promised: ROOM,
            stamp,
            last_ack: 0,
            clock: 7_000,
            urgent: 0,
        };
        let mut answer = peer.made(0, 0, Flags::SYN | Flags::ACK);
        answer.header.seq = iss;
        answer.header.window = ROOM as u16;
        let options = &mut answer.header.options;
        options.mss = Some(agreed.mss.0);
        options.window_scale = agreed.shifts.map(|(own, _)| own);
        options.sack_permitted = agreed.sack;
        (peer, answer)
    }

    /// How much of our stream it has without a gap, our FIN with it.
    pub fn has(&self) -> u32 {
        let text = self.pieces.first().filter(|(start, _)| *start == 0).map_or(0, |(_, end)| *end);
        text + u32::from(self.fin_at == Some(text))
    }

    /// Where its urgent data ends, if it has had some.
    pub fn urgent_end(&self) -> Option<u32> {
        (self.urgent > 0).then_some(self.urgent)
    }

    /// Whether everything it has sent was acknowledged.
    pub fn is_done(&self) -> bool {
        self.fin && self.acked == self.sent + 1
    }

    /// Sends so many octets, as far as it may, urgently or not.
    pub fn send(&mut self, octets: u32, urgently: bool) -> Option<Sent> {
        let most = u32::from(self.agreed.mss.1.saturating_sub(if self.agreed.stamps { 12 } else { 0 }));
        let octets = octets.min(most).min(self.edge.saturating_sub(self.sent));
        if self.fin || octets == 0 {
            return None;
        }
        let start = self.sent;
        self.sent += octets;
        if urgently {
            self.urgent = self.sent;
        }
        Some(self.made(start, octets, Flags::ACK | Flags::PSH))
    }

    /// Sends its FIN, if there is room for it in the window.
    pub fn finish(&mut self) -> Option<Sent> {
        if self.fin || self.edge <= self.sent {
            return None;
        }
        self.fin = true;
        Some(self.made(self.sent, 0, Flags::ACK | Flags::FIN))
    }

    /// Sends the first unacknowledged segment again, perhaps cut differently.
    pub fn send_again(&mut self, octets: u32) -> Option<Sent> {
        let left = (self.sent - self.acked.min(self.sent)).min(octets.clamp(1, 500));
        let ends = self.acked + left == self.sent && self.fin && self.acked <= self.sent;
        let flags = if ends { Flags::ACK | Flags::FIN } else { Flags::ACK };
        (left > 0 || ends).then(|| self.made(self.acked, left, flags))
    }

    /// An acknowledgement.
    pub fn acknowledge(&mut self) -> Sent {
        self.made(self.sent + u32::from(self.fin), 0, Flags::ACK)
    }

    /// Its program reads.
    pub fn read(&mut self, octets: u32) {
        let text = self.has().min(self.pieces.first().map_or(0, |(_, end)| *end));
        self.read = self.read.saturating_add(octets).min(text);
    }

    fn made(&mut self, start: u32, octets: u32, flags: Flags) -> Sent {
        let shift = self.agreed.shifts.map_or(0, |(own, _)| own);
        let has = self.has();
        let window = ((self.read + ROOM).saturating_sub(has) >> shift).min(u32::from(u16::MAX)) as u16;
        self.promised = self.promised.max(has + (u32::from(window) << shift));
        self.last_ack = has;
        let mut options = Options::default();
        if self.agreed.stamps {
            options.timestamp = Some((self.clock, self.stamp));
        }
        if self.agreed.sack {
            let place = |place| self.first.1 + place;
            // RFC 2018 §4: the block that grew last comes first.
            let (new, old): (Vec<_>, Vec<_>) = (self.pieces.iter().filter(|(start, _)| *start > has))
                .partition(|(start, end)| (*start..=*end).contains(&self.latest));
            new.into_iter().chain(old).take(3).for_each(|(start, end)| {
                options.sack.push(place(start), place(end));
            });
        }
        let (seq, ack) = (self.first.0 + start, self.first.1 + has);
        let urgent = u16::try_from(self.urgent.saturating_sub(start)).unwrap_or(0);
        let flags = flags | if urgent > 0 { Flags::URG } else { Flags::NONE };
        let payload = (start..start + octets).map(octet).collect();
        Sent { header: Header { seq, ack, flags, window, urgent, options }, payload }
    }

    /// A segment of ours arrives, with so much text.
    pub fn hear(&mut self, header: &Header, len: u32) {
        assert!(!header.flags.rst() && !header.flags.syn(), "a legal peer is reset: {header:?}");
        assert!(
            len <= u32::from(self.agreed.mss.0),
            "a segment of {len} is larger than {}",
            self.agreed.mss.0
        );
        assert_eq!(header.options.timestamp.is_some(), self.agreed.stamps, "timestamps on all or none");
        let ack = header.ack - self.first.0;
        assert!(ack <= self.sent + u32::from(self.fin), "acknowledges what was never sent");
        self.acked = self.acked.max(ack);
        let shift = self.agreed.shifts.map_or(0, |(_, ours)| ours);
        self.edge = self.edge.max(ack + (u32::from(header.window) << shift));
        // A probe may lie before what is acknowledged.
        let start = (header.seq - self.first.1) as i32;
        let end = start + len as i32;
        // One octet beyond may probe a closed window (RFC 9293 §3.8.6.1).
        assert!(end <= self.promised as i32 + 1, "sends up to {end}, may up to {}", self.promised);
        if let Some((value, _)) = header.options.timestamp.filter(|_| start <= self.last_ack as i32)
            && (value.wrapping_sub(self.stamp) as i32) > 0
        {
            self.stamp = value;
        }
        if header.flags.fin() {
            assert!(self.fin_at.is_none_or(|at| at as i32 == end), "two ends of one stream");
            self.fin_at = Some(end as u32);
        }
        let (start, end) = (start.max(0) as u32, (end.max(0) as u32).min(self.promised));
        if start < end {
            self.take(start, end);
        }
    }

    /// Puts a piece of our stream where it belongs.
    fn take(&mut self, mut start: u32, mut end: u32) {
        self.latest = start;
        self.pieces.retain(|(s, e)| {
            let apart = *e < start || end < *s;
            if !apart {
                (start, end) = (start.min(*s), end.max(*e));
            }
            apart
        });
        let place = self.pieces.partition_point(|(s, _)| *s < start);
        self.pieces.insert(place, (start, end));
    }
}
