//! The error queue of a datagram socket (`IP_RECVERR`): what the network has said of datagrams that the
//! program sent, with the head of each. The daemon writes, the program reads; the indices stand in
//! the socket's slot. One page a socket, of which nothing is touched before there is an error.
//!
//! Neither side trusts what it finds: every place is taken modulo the size of what it is in.

use crate::sync::AtomicU32;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::Ordering::Relaxed;

/// Errors that wait for the program at most; more are lost.
pub const ERRORS: u32 = 16;
/// Bytes of a datagram that an error tells at most.
pub const QUOTED: usize = 4 * WORDS_OF_DATA;
const WORDS_OF_DATA: usize = 51;
const WORDS: usize = 13 + WORDS_OF_DATA;

/// One error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketError {
    /// It as an `errno`.
    pub errno: u32,
    /// Type and code of the ICMP message.
    pub kind: (u8, u8),
    /// The MTU of the link that was too narrow, or what else the message says beside.
    pub info: u32,
    /// Whom the datagram was for.
    pub peer: SocketAddr,
    /// Who sent the message.
    pub offender: IpAddr,
    /// Bytes of the datagram that it quotes, at most [`QUOTED`].
    pub len: u32,
}

/// The errors of one socket.
#[repr(C, align(64))]
pub struct ErrorQueue {
    entries: [[AtomicU32; WORDS]; ERRORS as usize],
}

impl Default for ErrorQueue {
    fn default() -> Self {
        Self { entries: std::array::from_fn(|_| std::array::from_fn(|_| AtomicU32::new(0))) }
    }
}

impl ErrorQueue {
    /// Writes an error at `write`, with the head of `data`. The caller has seen that there is room, and
    /// moves the index after it.
    pub fn put(&self, write: u32, error: &SocketError, data: &[u8]) {
        let data = &data[..data.len().min(QUOTED)];
        let entry = self.entry(write);
        let head = [
            error.errno,
            u32::from_le_bytes([error.kind.0, error.kind.1, 0, 0]),
            error.info,
            data.len() as u32,
            u32::from(error.peer.port()),
        ];
        let head = head.into_iter().chain(words_of(error.peer.ip())).chain(words_of(error.offender));
        entry.iter().zip(head).for_each(|(to, word)| to.store(word, Relaxed));
        for (to, from) in entry[WORDS - WORDS_OF_DATA..].iter().zip(data.chunks(4)) {
            let mut bytes = [0; 4];
            bytes[..from.len()].copy_from_slice(from);
            to.store(u32::from_le_bytes(bytes), Relaxed);
        }
    }

    /// The error at `read`, and what it tells of the datagram in the first `len` bytes of the array.
    pub fn at(&self, read: u32) -> (SocketError, [u8; QUOTED]) {
        let entry = self.entry(read);
        let word = |at: usize| entry[at].load(Relaxed);
        let [kind, code, ..] = word(1).to_le_bytes();
        let mut data = [0; QUOTED];
        for (to, from) in data.chunks_exact_mut(4).zip(&entry[WORDS - WORDS_OF_DATA..]) {
            to.copy_from_slice(&from.load(Relaxed).to_le_bytes());
        }
        let error = SocketError {
            errno: word(0),
            kind: (kind, code),
            info: word(2),
            peer: SocketAddr::new(address(&entry[5..9]), word(4) as u16),
            offender: address(&entry[9..13]),
            len: word(3).min(QUOTED as u32),
        };
        (error, data)
    }

    fn entry(&self, index: u32) -> &[AtomicU32; WORDS] {
        &self.entries[(index % ERRORS) as usize]
    }
}

fn words_of(address: IpAddr) -> [u32; 4] {
    let v6 = match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    let octets = v6.octets();
    std::array::from_fn(|n| {
        u32::from_le_bytes([octets[4 * n], octets[4 * n + 1], octets[4 * n + 2], octets[4 * n + 3]])
    })
}

fn address(words: &[AtomicU32]) -> IpAddr {
    let mut octets = [0; 16];
    for (to, from) in octets.chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&from.load(Relaxed).to_le_bytes());
    }
    Ipv6Addr::from(octets).to_canonical()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn error(len: u32) -> SocketError {
        let peer = "10.0.0.2:33434".parse().unwrap();
        SocketError { errno: 113, kind: (11, 0), info: 1400, peer, offender: [10, 0, 0, 9].into(), len }
    }

    #[test]
    fn an_error_reads_back_as_it_was_written_wherever_the_index_is() {
        let queue = ErrorQueue::default();
        for index in [0, 17, u32::MAX] {
            queue.put(index, &error(5), b"probe");
            let (read, data) = queue.at(index);
            assert_eq!((read, &data[..5]), (error(5), &b"probe"[..]));
        }
    }

    #[test]
    fn more_than_there_is_room_for_is_cut() {
        let queue = ErrorQueue::default();
        queue.put(0, &error(0), &[7; QUOTED + 1]);
        assert_eq!(queue.at(0).0.len, QUOTED as u32);
    }

    #[test]
    fn a_queue_is_a_page() {
        assert_eq!(size_of::<ErrorQueue>(), 4096);
    }
}
