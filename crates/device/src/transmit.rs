//! The transmit half of a device: one domain's departing frames, used by one thread. It
//! never waits: what the device does not take at once is a counted drop, as on any wire, and
//! the transport's business.

use crate::Offload;

/// One domain's departing frames. Frames leave in the order of their sending.
pub trait Transmit: Send {
    /// Sends one message: `head` (headers, and payload where the caller likes) followed by
    /// `payload`, two slices because a program's ring wraps. Small messages are copied and
    /// leave with the next [`flush`](Self::flush), or before when the batch is full; large
    /// ones leave at once, after everything sent before them. Nothing is borrowed when it
    /// returns.
    fn send(&mut self, head: &[u8], payload: [&[u8]; 2], offload: Offload);

    /// Lets everything leave that was sent.
    fn flush(&mut self);

    /// What happened so far.
    fn transmitted(&self) -> Transmitted;
}

/// Why a device did not take a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The device's queue was full (`EAGAIN`, `ENOBUFS`).
    Full,
    /// The frame is longer than the interface takes (`EMSGSIZE`).
    TooLong,
    /// The interface is down or gone (`ENETDOWN`, `ENXIO`, `ENODEV`).
    Down,
    /// The offload does not fit the bytes (`EINVAL`).
    Malformed,
}

/// Counts of a transmit half, all since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transmitted {
    /// Messages the device took; one cut into packets counts once.
    pub frames: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Dropped: [`Refusal::Full`].
    pub full: u64,
    /// Dropped: [`Refusal::TooLong`].
    pub too_long: u64,
    /// Dropped: [`Refusal::Down`].
    pub down: u64,
    /// Dropped: [`Refusal::Malformed`].
    pub malformed: u64,
}

impl Transmitted {
    /// All messages that did not leave.
    pub const fn dropped(&self) -> u64 {
        self.full + self.too_long + self.down + self.malformed
    }

    pub(crate) fn took(&mut self, bytes: usize) {
        self.frames += 1;
        self.bytes += bytes as u64;
    }

    pub(crate) fn refused(&mut self, why: Refusal) {
        match why {
            Refusal::Full => self.full += 1,
            Refusal::TooLong => self.too_long += 1,
            Refusal::Down => self.down += 1,
            Refusal::Malformed => self.malformed += 1,
        }
    }
}

impl Refusal {
    /// What an error of `send` means. Anything unforeseen is laid at the interface's door.
    pub(crate) fn of(error: &std::io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => Self::Full,
            Some(libc::EMSGSIZE) => Self::TooLong,
            Some(libc::EINVAL) => Self::Malformed,
            _ => Self::Down,
        }
    }
}
