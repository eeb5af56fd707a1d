//! The transmit half, also the `xdp` device's: small frames together when they are flushed, large
//! ones by reference at once, each with its virtio-net header.

use std::os::fd::{AsFd, OwnedFd};

use super::{PACKET_VNET_HDR, Sending};
use crate::sys::{self, SendBatch};
use crate::{Offload, OpenError, Refusal, Transmit, Transmitted, vnet};

const PACKET_QDISC_BYPASS: i32 = 20;
/// Frames that are waiting for a flush, at most.
const BATCH: usize = 64;
/// Messages longer than this, in bytes, are sent by reference and at once.
const BY_REFERENCE: usize = 2304;

/// Sends through a packet socket; it sees no arriving frame.
pub(crate) struct PacketTransmit {
    fd: OwnedFd,
    batch: SendBatch,
    transmitted: Transmitted,
}

impl PacketTransmit {
    /// On `interface`.
    pub fn open(interface: &str, options: &Sending) -> Result<Self, OpenError> {
        let what = "send raw frames";
        let of = |error| OpenError::of(interface, what, error);
        let index = sys::interface_index(interface).map_err(of)?;
        let fd = sys::packet_socket().map_err(of)?;
        sys::set_packet_option(fd.as_fd(), PACKET_VNET_HDR, 1).map_err(of)?;
        sys::set_packet_option(fd.as_fd(), PACKET_QDISC_BYPASS, options.bypass_qdisc.into()).map_err(of)?;
        sys::send_buffer(fd.as_fd(), options.buffer).map_err(of)?;
        sys::bind_packet(fd.as_fd(), index, 0).map_err(of)?;
        Ok(Self { fd, batch: SendBatch::new(BATCH, 256), transmitted: Transmitted::default() })
    }

    fn send_batch(&mut self) {
        let transmitted = &mut self.transmitted;
        self.batch.send(self.fd.as_fd(), |len, outcome| match outcome {
            Ok(()) => transmitted.took(len - vnet::LEN),
            Err(error) => transmitted.refused(Refusal::of(error)),
        });
    }

    fn send_now(&mut self, parts: [&[u8]; 4]) {
        match sys::send_parts(self.fd.as_fd(), parts) {
            Ok(len) => self.transmitted.took(len - vnet::LEN),
            Err(error) => self.transmitted.refused(Refusal::of(&error)),
        }
    }
}

impl Transmit for PacketTransmit {
    fn send(&mut self, head: &[u8], payload: [&[u8]; 2], offload: Offload) {
        let header = vnet::encode(offload);
        let parts = [&header, head, payload[0], payload[1]];
        if head.len() + payload[0].len() + payload[1].len() > BY_REFERENCE {
            self.send_batch();
            self.send_now(parts);
        } else {
            self.batch.push(parts);
            if self.batch.len() == BATCH {
                self.send_batch();
            }
        }
    }

    fn flush(&mut self) {
        if self.batch.len() > 0 {
            self.send_batch();
        }
    }

    fn transmitted(&self) -> Transmitted {
        self.transmitted
    }
}
