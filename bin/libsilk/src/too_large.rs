//! A datagram that this library has refused since it was too large, until the program has heard of it.

use crate::address;
use silk_stream::SharedAddress;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// A datagram that was too large to be sent, until the program has heard of it: one, the last.
pub struct TooLarge {
    /// What it may have been at most; 0: there is none.
    mtu: AtomicU32,
    peer: SharedAddress,
}

impl TooLarge {
    /// None.
    pub const fn new() -> Self {
        let ip = [const { AtomicU64::new(0) }; 2];
        let peer = SharedAddress { ip, port: AtomicU32::new(0), scope: AtomicU32::new(0) };
        Self { mtu: AtomicU32::new(0), peer }
    }

    /// There is one.
    pub fn set(&self, peer: SocketAddr, mtu: u32) {
        let bits = match peer.ip() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
            IpAddr::V6(v6) => v6.to_bits(),
        };
        self.peer.ip[0].store((bits >> 64) as u64, Relaxed);
        self.peer.ip[1].store(bits as u64, Relaxed);
        self.peer.port.store(peer.port().into(), Relaxed);
        self.mtu.store(mtu, Release);
    }

    /// Whether there is one.
    pub fn is_there(&self) -> bool {
        self.mtu.load(Acquire) != 0
    }

    /// Whom it was for and what the MTU was, once.
    pub fn take(&self) -> Option<(SocketAddr, u32)> {
        let mtu = self.mtu.swap(0, AcqRel);
        (mtu > 0).then(|| (address::shared(&self.peer), mtu))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_is_told_once() {
        let refused = TooLarge::new();
        assert_eq!(refused.take(), None);
        let peer = "10.0.0.2:33434".parse().unwrap_or(address::ANY);
        refused.set(peer, 1400);
        assert!(refused.is_there());
        assert_eq!((refused.take(), refused.take()), (Some((peer, 1400)), None));
        assert!(!refused.is_there());
    }
}
