//! The models that the target `tcp_listen` compares with what listens: the table of half-open
//! connections (`halves`), what was accepted (`accepted`) and TIME-WAIT (`waiting`). Each is as slow
//! and as plain as can be, and knows only what went in and what came out.

mod accepted;
mod halves;
mod waiting;

pub use accepted::Accepted;
pub use halves::Listener;
pub use waiting::Waiting;

use silk_tcp::{Config, Flags, Header, Options, SeqNumber};

/// Names a connection.
pub type Key = u8;

/// Where a peer stands, by the last that it was sent.
#[derive(Clone, Copy, Default)]
pub struct Place {
    /// What we expect of it next.
    pub seq: SeqNumber,
    /// What it would acknowledge.
    pub ack: SeqNumber,
    /// Our clock, which it would echo.
    pub stamp: Option<u32>,
}

impl Place {
    /// After a segment with `len` octets of text.
    pub fn after(self, header: &Header, len: u32) -> Self {
        Self {
            seq: if header.flags.ack() { header.ack } else { self.seq },
            ack: end(header, len),
            stamp: header.options.timestamp.map(|(value, _)| value),
        }
    }
}

/// The number after a segment of ours.
pub fn end(header: &Header, len: u32) -> SeqNumber {
    header.seq + len + u32::from(header.flags.syn()) + u32::from(header.flags.fin())
}

/// The options fit into a header, and whoever reads them reads what was meant.
pub fn check_options(options: &Options) {
    let mut bytes = [0; Options::MAX_BYTES];
    let length = options.write(&mut bytes);
    assert_eq!(length, options.encoded_len());
    assert_eq!(Options::parse(&bytes[..length]).as_ref(), Ok(options));
}

/// A SYN-ACK that answers a SYN with these flags and options.
pub fn check_syn_ack(header: &Header, (flags, offered): (Flags, &Options), config: &Config) {
    let setup = flags.contains(Flags::ECE | Flags::CWR);
    assert_eq!(header.flags.without(Flags::ECE), Flags::SYN | Flags::ACK);
    assert!(!header.flags.contains(Flags::ECE) || setup, "ECN, and nobody asked");
    check_options(&header.options);
    let said = &header.options;
    assert_eq!(said.mss, Some(config.mss));
    assert!(said.window_scale.is_none() || offered.window_scale.is_some());
    assert!(!said.sack_permitted || offered.sack_permitted);
    assert!(said.timestamp.is_none() || offered.timestamp.is_some());
    assert!(said.sack.is_empty() && header.urgent == 0);
    assert_eq!(u32::from(header.window), window(config));
}

/// What a SYN-ACK offers.
pub fn window(config: &Config) -> u32 {
    config.receive_window.min(config.receive_window_max).min(u16::MAX.into())
}
