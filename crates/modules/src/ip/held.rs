//! The messages that wait for their next hop's address (RFC 1122 §2.3.2.2): copies, as the messages
//! themselves are gone when the run ends. The only thing on a path that waits in the middle, and
//! bounded; of more than that the latest are kept. After a while the neighbour is looked for anew: another may have got
//! its place in the cache. What a path still has when it ends is left to IP's
//! own path: a program that sends a datagram and is done has sent it.

use crate::errors::{QUOTED, errno};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::mem::take;
use core::net::IpAddr;
use core::time::Duration;
use silk_instant::Instant;
use silk_path::{
    Checksum, Cx, DropReason, Endpoint, Message, Meta, PathId, Quoted, Report, Request, Stage, Verdict,
};
use silk_wire::{ipv4, udp};

/// ICMP's "host unreachable" (RFC 792), and ICMPv6's "address unreachable" (RFC 4443 §3.1).
const HOST_UNREACHABLE: (u8, u8) = (3, 1);
const ADDRESS_UNREACHABLE6: (u8, u8) = (1, 3);

/// What waits on a path, in bytes with all that it takes to keep it: the longest datagram and some, as on Linux.
const MOST: usize = 128 << 10;
/// After so long what waits is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// Paths that have ended and left something to be sent.
const DEPARTED: usize = 64;
/// Room in front of a message for headers.
const HEADROOM: usize = 64;

/// A message that waits.
pub(crate) struct Held {
    // HEADROOM bytes, then the message's.
    bytes: Vec<u8>,
    meta: Meta,
}

impl Held {
    /// What holding `msg` costs, in bytes.
    fn cost(msg: &Message<'_>) -> usize {
        size_of::<Self>() + HEADROOM + msg.len()
    }

    /// A copy of `msg`.
    fn copy(msg: &Message<'_>) -> Self {
        let mut bytes = vec![0; HEADROOM + msg.len()];
        msg.copy_to(&mut bytes[HEADROOM..]);
        let mut meta = msg.meta;
        if let Checksum::Partial { start, field } = meta.checksum {
            // Both positions are behind the head, in the first bytes of what follows it.
            let moved = |at: u16| (usize::from(at).saturating_sub(msg.head()) + HEADROOM) as u16;
            meta.checksum = Checksum::Partial { start: moved(start), field: moved(field) };
        }
        Self { bytes, meta }
    }

    /// Bytes it takes.
    fn len(&self) -> usize {
        size_of::<Self>() + self.bytes.len()
    }

    /// The message again.
    pub fn message(&mut self) -> Message<'_> {
        let end = self.bytes.len();
        Message::new(&mut self.bytes, HEADROOM, end, self.meta)
    }
}

/// Messages in the order in which they were sent.
#[derive(Default)]
struct Queue {
    messages: VecDeque<Held>,
    bytes: usize,
    // What of `bytes` the path's account is charged: all, or nothing on the way from one path to another.
    charged: usize,
    // When they are tried again.
    again: Instant,
}

/// Their place on the path, whose account they are charged to.
#[derive(Default)]
pub(crate) struct Waiting(Option<Box<Queue>>);

impl Waiting {
    /// Keeps a copy of a message. What there is no room for, the longest there first, is dropped for this reason.
    pub fn hold(&mut self, cx: &mut Cx<'_, '_>, msg: &Message<'_>, full: DropReason) -> Verdict {
        let cost = Held::cost(msg);
        let again = cx.now() + AGAIN;
        let queue = self.0.get_or_insert_with(|| Box::new(Queue { again, ..Queue::default() }));
        while queue.bytes + cost > MOST
            && let Some(oldest) = queue.messages.pop_front()
        {
            queue.bytes -= oldest.len();
            queue.charged -= oldest.len();
            cx.release(oldest.len());
            cx.count_drop(full);
        }
        if cost > MOST || cx.charge(cost).is_err() {
            return Verdict::Drop(full);
        }
        queue.messages.push_back(Held::copy(msg));
        queue.bytes += cost;
        queue.charged += cost;
        Verdict::Consumed
    }

    /// Takes out what waits.
    pub fn take(&mut self, cx: &mut Cx<'_, '_>) -> impl Iterator<Item = Held> + use<> {
        self.disown(cx);
        self.0.take().map(|queue| queue.messages).into_iter().flatten()
    }

    /// The path's account pays for it no longer.
    fn disown(&mut self, cx: &mut Cx<'_, '_>) {
        if let Some(queue) = &mut self.0 {
            cx.release(take(&mut queue.charged));
        }
    }

    /// When what waits is tried again.
    fn again(&self) -> Instant {
        let queue = self.0.as_ref().filter(|queue| !queue.messages.is_empty());
        queue.map_or(Instant::FAR, |queue| queue.again)
    }

    /// Whether nothing waits.
    fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|queue| queue.messages.is_empty())
    }
}

/// IP's own path, and the stages of paths that have ended, with what waits on them.
pub(crate) struct OwnPath<S> {
    /// It takes fragments, and sends what other paths have left.
    pub path: Option<PathId>,
    departed: Vec<S>,
}

impl<S> Default for OwnPath<S> {
    fn default() -> Self {
        Self { path: None, departed: Vec::new() }
    }
}

/// A stage of either IP, on which messages wait.
pub(crate) trait Holds: Stage + Sized {
    /// What is not sent for want of room counts as this.
    const FULL: DropReason;

    /// What its module has.
    fn own<'c>(cx: &'c mut Cx<'_, '_>) -> &'c mut OwnPath<Self>;

    /// Where they wait.
    fn held(&mut self) -> &mut Waiting;

    /// The stage for the last that its path has to send, with what waits.
    fn rest(&mut self) -> Self;

    /// Sets the timer for whatever is to be done next.
    fn arm(&mut self, cx: &mut Cx<'_, '_>);

    /// Keeps a message until its next hop's address is known.
    fn hold(&mut self, cx: &mut Cx<'_, '_>, msg: &Message<'_>) -> Verdict {
        let verdict = self.held().hold(cx, msg, Self::FULL);
        self.arm(cx);
        verdict
    }

    /// When what waits is tried again; on IP's own path also what others have left.
    fn again(&mut self, cx: &mut Cx<'_, '_>) -> Instant {
        let (path, own) = (cx.path(), Self::own(cx));
        let departed = own.departed.iter_mut().filter(|_| own.path == Some(path));
        departed.map(|stage| stage.held().again()).fold(self.held().again(), Instant::min)
    }

    /// Tries again what has waited long enough.
    fn try_again(&mut self, cx: &mut Cx<'_, '_>) {
        if self.again(cx) <= cx.now() {
            self.send_held(cx);
        }
    }

    /// Sends a message as if it came from above. A drop is counted.
    fn send(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Result<(), DropReason> {
        match self.down(cx, msg) {
            // A drop below has been counted there.
            Verdict::Forward => _ = cx.down(msg),
            Verdict::Drop(reason) => {
                cx.count_drop(reason);
                return Err(reason);
            }
            Verdict::Consumed | Verdict::Handoff => {}
        }
        Ok(())
    }

    /// The resolver has news: sends what waits, or drops what has no way; on IP's own path also what others have left.
    fn send_held(&mut self, cx: &mut Cx<'_, '_>) {
        self.send_waiting(cx);
        let path = cx.path();
        if Self::own(cx).path == Some(path) {
            let mut departed = take(&mut Self::own(cx).departed);
            departed.iter_mut().for_each(|stage| stage.send_waiting(cx));
            departed.retain_mut(|stage| !stage.held().is_empty());
            Self::own(cx).departed = departed;
        }
        self.arm(cx);
    }

    /// Sends what waits on this stage.
    fn send_waiting(&mut self, cx: &mut Cx<'_, '_>) {
        for mut held in self.held().take(cx) {
            // A drop is counted.
            let _ = self.send(cx, &mut held.message());
        }
    }

    /// The path ends: what still waits is left to IP's own, where there is one. If it is that, all is lost.
    fn bequeath(&mut self, cx: &mut Cx<'_, '_>) {
        let path = cx.path();
        let own = Self::own(cx);
        if own.path == Some(path) {
            let departed = take(own).departed;
            departed.into_iter().for_each(|mut stage| drop(stage.held().take(cx)));
        } else if !self.held().is_empty()
            && let Some(heir) = own.path.filter(|_| own.departed.len() < DEPARTED)
        {
            self.held().disown(cx);
            let rest = self.rest();
            Self::own(cx).departed.push(rest);
            cx.request(Request::Wake(heir));
        }
        self.held().take(cx).for_each(|_| cx.count_drop(Self::FULL));
    }
}

/// What the sender of a message is told whose next hop does not answer: what a router says of a host
/// on its link that does not (RFC 1812 §5.3.6), with the certainty of one who has asked himself.
/// `message` begins with the header above IP. `None`: nobody is to be told.
pub(crate) fn unreached(
    message: &Message<'_>,
    protocol: u8,
    local: IpAddr,
    remote: IpAddr,
) -> Option<Request> {
    // Headers are in place.
    let [a, b, c, d, e, f, g, h] = *message.bytes().first_chunk()?;
    let remote = Endpoint::new(remote, u16::from_be_bytes([c, d]));
    let sequence = u32::from_be_bytes([e, f, g, h]);
    let quoted = || {
        let kind = if local.is_ipv6() { ADDRESS_UNREACHABLE6 } else { HOST_UNREACHABLE };
        let data = message.parts().into_iter().flatten().copied().skip(udp::HEADER).take(QUOTED).collect();
        Box::new(Quoted { kind, info: 0, offender: local, data })
    };
    let udp = protocol == ipv4::UDP;
    (udp || protocol == ipv4::TCP).then(|| Request::Report {
        udp,
        local: Endpoint::new(local, u16::from_be_bytes([a, b])),
        remote,
        report: Report::Unreachable { errno: errno::HOST, hard: true, sequence, remote },
        quoted: udp.then(quoted),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_message_is_the_same_and_its_checksum_in_the_same_place() {
        let mut headroom = [0; 100];
        let mut msg = Message::outgoing(&mut headroom, [b"pay", b"load"], Meta::default());
        msg.push(8).unwrap().copy_from_slice(b"header??");
        msg.meta.checksum = Checksum::Partial { start: 92, field: 98 };
        let mut held = Held::copy(&msg);
        assert_eq!(held.len(), Held::cost(&msg));
        let again = held.message();
        assert_eq!(again.bytes(), b"header??payload");
        let Checksum::Partial { start, field } = again.meta.checksum else { panic!("still to be completed") };
        assert_eq!((usize::from(start) - again.head(), usize::from(field) - again.head()), (0, 6));
    }
}
