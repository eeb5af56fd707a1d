//! Datagrams of Linux's as a stage: whoever runs the path reads them from Linux's socket, as it reads
//! frames from a device, and the stage passes on those that are for the path; what comes down it sends.

use super::HostDatagrams;
use alloc::boxed::Box;
use silk_path::{Bell, Cx, DropReason, Endpoint, Message, Stage, Verdict};

/// HOST's part of a path of datagrams.
pub struct DatagramStage {
    socket: Box<dyn HostDatagrams>,
    // The only one whom the path hears, and speaks to where nobody else is named.
    remote: Option<Endpoint>,
}

impl DatagramStage {
    pub(super) fn new(socket: Box<dyn HostDatagrams>, remote: Option<Endpoint>) -> Self {
        Self { socket, remote }
    }
}

impl Stage for DatagramStage {
    fn up(&mut self, _: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        match self.remote {
            Some(remote) if remote != msg.meta.remote => Verdict::Drop(DropReason::NotForPath),
            _ => Verdict::Forward,
        }
    }

    fn down(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        let [first, second] = msg.ext();
        let named = Some(msg.meta.remote).filter(|named| named.port() != 0);
        let (from, to) = (msg.meta.local.ip(), named.or(self.remote).unwrap_or(msg.meta.remote));
        if !self.socket.send(from, to, [msg.bytes(), first, second]) {
            return Verdict::Drop(DropReason::HostDatagram);
        }
        cx.count_out(msg.len());
        Verdict::Consumed
    }

    fn bell(&mut self, _: &mut Cx<'_, '_>, bell: Bell) -> bool {
        self.socket.set(bell);
        false
    }
}
