//! A connection as a stage: segments, bells and timers go into the state machine of
//! `silk-tcp`; segments, events and a deadline come out. The text never passes through here:
//! it lies in the program's buffers and leaves by reference.

use super::buffers::{Receive, Send};
use super::emit::{HEADROOM, segment, write_header};
use super::reasons;
use super::{Key, Tcp, headers};
use crate::faults;
use alloc::boxed::Box;
use core::time::Duration;
use silk_instant::Instant;
use silk_path::{
    Bell, CreateError, Cx, DropReason, Endpoint, Event, Message, Meta, Report, Stage, Verdict, Wishes,
};
use silk_tcp::ensemble::Member;
use silk_tcp::{Algorithm, Connection, Cork, Flags, Info, KeepaliveConfig, Progress, SeqNumber, State};
use silk_wire::{checksum, ipv4, ipv6, tcp};

/// The most text of a message that the device cuts up: IP's total length is 16 bits.
const GSO_MAX: u32 = 65_000;
/// What a segment out of order may cost beside its text.
const PIECE_COST: usize = 64;

/// TCP's part of a connection's path.
pub struct ConnectionStage {
    connection: Connection,
    // Opened by us: the SYN is still to be sent when the path is established.
    active: bool,
    // The classifier leads to this path.
    entered: bool,
    // The end has been told; nothing more is raised.
    ended: bool,
    gso: u32,
    // Bytes charged for what the connection holds beside itself.
    charged: u32,
    // Its place among those to the same peer.
    member: Member,
}

pub(super) fn opened(connection: Connection, active: bool) -> Box<ConnectionStage> {
    Box::new(ConnectionStage {
        connection,
        active,
        entered: false,
        ended: false,
        gso: 0,
        charged: 0,
        member: Member::NONE,
    })
}

impl ConnectionStage {
    /// What there is to know about the connection: for `TCP_INFO` and `silk paths`.
    pub fn info(&self) -> Info {
        self.connection.info()
    }

    /// What the program wishes of TCP. Its largest segment counts in the handshake alone.
    // RFC 9293 MUST-21.
    fn grant(&mut self, wishes: &Wishes) {
        if let Some(algorithm) = wishes.congestion.and_then(Algorithm::from_number) {
            self.connection.set_congestion(algorithm);
        }
        if let Some(times) = wishes.syn_retries {
            self.connection.set_syn_retries(times);
        }
        if let Some(time) = wishes.linger {
            self.connection.set_fin_wait_2(Duration::from_secs(time.into()));
        }
        let millis = |millis: u32| Duration::from_millis(millis.into());
        self.connection.set_user_timeout(wishes.user_timeout.map(millis));
        self.connection.set_max_pacing_rate(wishes.pacing_rate);
        self.connection.set_quickack(wishes.quick_ack);
    }

    /// Takes one segment in.
    fn receive(&mut self, cx: &mut Cx<'_, '_>, msg: &Message<'_>) -> Result<Progress, DropReason> {
        let key = Key::of(cx.attrs());
        let (source, destination) = (key.remote.ip(), key.local.ip());
        let pseudo = |length| checksum::pseudo_of(source, destination, ipv4::TCP, length);
        let read = tcp::parse(msg.bytes(), faults::accept(&msg.meta), pseudo).map_err(faults::reason)?;
        if read.header.source() != key.remote.port() || read.header.destination() != key.local.port() {
            return Err(DropReason::NotForPath);
        }
        let segment = segment(&read, msg.meta.tos)?;
        // What may have to be kept out of order is charged before it is taken; what comes in order, and so sets free what was kept, is not
        // refused for that.
        let might_keep =
            if self.connection.may_keep(&segment) { segment.payload.len() + PIECE_COST } else { 0 };
        cx.charge(might_keep)?;
        // A segment is no longer than IP's packet.
        self.charged += might_keep as u32;
        let now = cx.now();
        let result = match cx.stream_and_down() {
            Some((stream, _)) => {
                let (incoming, outgoing) = stream.split();
                self.connection.on_segment(now, &segment, &mut Send(outgoing), &mut Receive(incoming))
            }
            None => return Err(DropReason::NoReceiver),
        };
        result.map_err(reasons::reason)
    }

    /// What routers said to earlier connections (RFC 1191 §6.2), once the SYNs have offered what the
    /// link takes.
    fn recall_path_mtu(&mut self, cx: &mut Cx<'_, '_>) {
        let (link, path) = (cx.attrs().mtu(), cx.attrs().path_mtu());
        if let Some(mtu) = path.filter(|path| link.is_some_and(|link| *path < link)) {
            let headers = headers(&Key::of(cx.attrs()).remote);
            self.connection.on_packet_too_big(cx.now(), mtu.saturating_sub(headers));
        }
    }

    /// Sends whatever is to be sent, sets the timer, settles the account.
    fn pump(&mut self, cx: &mut Cx<'_, '_>) {
        let (now, key) = (cx.now(), Key::of(cx.attrs()));
        self.begin_together(cx, key.remote);
        if let Some((stream, mut down)) = cx.stream_and_down() {
            let (incoming, outgoing) = stream.split();
            while let Some(transmit) = {
                let (tx, rx) = (Send(outgoing), Receive(incoming));
                self.connection.poll_transmit(now, &tx, &rx, self.gso as usize)
            } {
                let text = outgoing.peek(transmit.offset, transmit.len);
                // Who has closed waits for nothing but to forget the connection: the
                // acknowledgement of the last FIN can leave with what is sent next.
                let lazy = (transmit.len, transmit.header.flags) == (0, Flags::ACK)
                    && matches!(self.connection.state(), State::TimeWait | State::Closed);
                let (gso_size, tos) = (transmit.gso_size, transmit.ecn.bits());
                let meta = Meta { gso_size, tos, lazy, ..Meta::default() };
                let mut headroom = [0; HEADROOM];
                let mut msg = Message::outgoing(&mut headroom, text, meta);
                let sent = write_header(&mut msg, &key, &transmit.header).and_then(|()| down.send(&mut msg));
                if sent.is_err() {
                    // Counted below. To the machine it is a loss like any other; asking for more
                    // would only lose more.
                    break;
                }
            }
            outgoing.sent(self.connection.octets_outstanding() as usize);
            outgoing.want(self.connection.text_wanted() as usize);
            incoming.want(self.connection.room_wanted() as usize);
        }
        self.go_on_together(cx, key.remote);
        cx.arm(self.connection.poll_timeout().unwrap_or(Instant::FAR));
        self.settle(cx);
    }

    /// What is proven of the way to the peer is where the first text begins, and what comes after a pause.
    fn begin_together(&mut self, cx: &mut Cx<'_, '_>, peer: Endpoint) {
        let (now, text) = (cx.now(), cx.stream_and_down().map_or(0, |(stream, _)| stream.split().1.len()));
        if self.connection.outgrows_window(now, text)
            && let Some(ensembles) = &mut cx.module::<Tcp>().ensembles
        {
            ensembles.begin(now, peer.ip(), &mut self.connection, &mut self.member);
        }
    }

    /// The others to the peer are told what became of this one.
    fn go_on_together(&mut self, cx: &mut Cx<'_, '_>, peer: Endpoint) {
        if self.member.is_some() || self.connection.outgrows_initial_window() {
            let now = cx.now();
            if let Some(ensembles) = &mut cx.module::<Tcp>().ensembles {
                ensembles.follow(now, peer.ip(), &self.connection, &mut self.member);
            }
        }
    }

    /// Charges, or gives back, what the connection holds beside itself.
    fn settle(&mut self, cx: &mut Cx<'_, '_>) {
        let held = self.connection.memory().saturating_sub(size_of::<Connection>());
        let (held, charged) = (u32::try_from(held).unwrap_or(u32::MAX), self.charged);
        if held < charged {
            cx.release((charged - held) as usize);
            self.charged = held;
        } else if held > charged && cx.charge((held - charged) as usize).is_ok() {
            self.charged = held;
        }
    }

    /// Tells what became true, in the order in which it did.
    fn tell(&mut self, cx: &mut Cx<'_, '_>, progress: Progress) {
        const EVENTS: [(Progress, Event); 8] = [
            (Progress::ESTABLISHED, Event::Connected),
            (Progress::URGENT, Event::Urgent),
            (Progress::READABLE, Event::Readable),
            (Progress::WRITABLE, Event::Writable),
            (Progress::PEER_FIN, Event::PeerFinished),
            (Progress::RESET, Event::Reset),
            (Progress::REFUSED, Event::Refused),
            (Progress::TIMED_OUT, Event::TimedOut),
        ];
        if !progress.is_empty() {
            for (what, event) in EVENTS {
                if progress.contains(what) {
                    cx.raise(event);
                }
            }
        }
        self.end(cx);
    }

    /// When the connection is over, or only TIME-WAIT is left of it, says so, once.
    fn end(&mut self, cx: &mut Cx<'_, '_>) {
        let event = match self.connection.state() {
            State::Closed => Event::Closed,
            State::TimeWait => Event::TimeWait,
            _ => return,
        };
        if core::mem::replace(&mut self.ended, true) {
            return;
        }
        cx.arm(Instant::FAR);
        if let (Some(left), true) = (self.connection.time_wait(), self.entered) {
            self.entered = false;
            let (now, key) = (cx.now(), Key::of(cx.attrs()));
            let (module, port) = cx.module_and_port::<Tcp>();
            module.begin_time_wait(now, key, left, port);
        }
        cx.raise(event);
    }
}

impl Stage for ConnectionStage {
    fn establish(&mut self, cx: &mut Cx<'_, '_>) -> Result<(), CreateError> {
        let attrs = *cx.attrs();
        attrs.local().ok_or(CreateError::Missing("Local"))?;
        let key = Key::of(&attrs);
        self.gso = attrs.gso().unwrap_or(0).min(GSO_MAX);
        if let Some(mtu) = attrs.mtu() {
            self.connection.set_link_mtu(cx.now(), mtu.saturating_sub(headers(&key.remote)));
        }
        let path = cx.path();
        let module = cx.module::<Tcp>();
        crate::bound::enter_flow(&module.tables, &key.flow(), module.found(path))?;
        self.entered = true;
        if cx.stream_and_down().is_none() {
            return Err(CreateError::Missing("a stream"));
        }
        Ok(())
    }

    fn start(&mut self, cx: &mut Cx<'_, '_>) {
        if core::mem::take(&mut self.active) {
            self.pump(cx);
        } else {
            self.recall_path_mtu(cx);
        }
    }

    // RFC 9293 MUST-58, MUST-59.
    fn up(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        let result = self.receive(cx, msg);
        if result.is_ok_and(|progress| progress.contains(Progress::ESTABLISHED)) {
            self.recall_path_mtu(cx);
        }
        // One acknowledgement does for all that came together, and what a series of
        // acknowledgements lets go leaves at once. A drop may have to be answered for itself.
        if !msg.meta.more || result.is_err() {
            self.pump(cx);
        }
        self.tell(cx, result.unwrap_or(Progress::NONE));
        match result {
            Ok(_) => Verdict::Consumed,
            Err(reason) => reason.into(),
        }
    }

    fn down(&mut self, _: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        Verdict::Drop(DropReason::Unexpected)
    }

    fn timer(&mut self, cx: &mut Cx<'_, '_>) {
        let progress = self.connection.on_timeout(cx.now());
        self.pump(cx);
        self.tell(cx, progress);
    }

    fn bell(&mut self, cx: &mut Cx<'_, '_>, bell: Bell) -> bool {
        let now = cx.now();
        match bell {
            Bell::Sent => {}
            Bell::Read => {
                let Some((stream, _)) = cx.stream_and_down() else { return false };
                if !self.connection.on_read(now, &Receive(stream.split().0)) {
                    return false;
                }
            }
            Bell::Urgent(octets) => self.connection.mark_urgent(octets as usize),
            Bell::ShutdownWrite => self.connection.shutdown_write(),
            Bell::ShutdownRead => self.connection.shutdown_read(),
            Bell::Close => self.connection.close(now),
            Bell::Abort => self.connection.abort(),
            Bell::NoDelay(on) => self.connection.set_nodelay(on),
            Bell::Cork(cork) => self.connection.set_cork(match cork {
                silk_path::Cork::Out => Cork::Out,
                silk_path::Cork::Loose => Cork::Loose,
                silk_path::Cork::Tight => Cork::Tight,
            }),
            Bell::KeepAlive(keepalive) => self.connection.set_keepalive(now, keepalive.map(keepalive_config)),
            // IP's.
            Bell::Service(_) => return true,
            Bell::Wishes(wishes) => {
                // Nothing leaves before IP has heard it, too; whoever wishes rings once more.
                self.grant(&wishes);
                return true;
            }
            _ => return false,
        }
        self.pump(cx);
        self.end(cx);
        false
    }

    // RFC 9293 MUST-47, MUST-54, MUST-56, SHLD-25; RFC 1191 §3.
    fn report(&mut self, cx: &mut Cx<'_, '_>, report: Report) -> bool {
        // RFC 8899 §4.6.1, RFC 8201 §4; RFC 5927 §4.1: an error about what is not outstanding is forged, or too late.
        let outstanding = |sequence| self.connection.is_outstanding(SeqNumber::new(sequence));
        match report {
            Report::PathMtu { sequence, .. } | Report::Unreachable { sequence, .. }
                if !outstanding(sequence) =>
            {
                cx.count_drop(DropReason::IcmpQuote);
                false
            }
            Report::PathMtu { mtu, .. } => {
                let remote = Key::of(cx.attrs()).remote;
                let mtu = mtu.max(if remote.is_v6() { ipv6::MIN_MTU } else { crate::ip::LEAST_MTU });
                let now = cx.now();
                self.connection.on_packet_too_big(now, mtu.saturating_sub(headers(&remote)));
                // IP is to hear of it, too, before what was too long leaves again.
                cx.arm(now);
                true
            }
            // RFC 9293 §3.9.2.2: a hard error ends only a connection that is not open yet.
            Report::Unreachable { errno, hard: true, .. } if self.connection.state() == State::SynSent => {
                self.connection.abort();
                cx.raise(Event::Unreachable(errno));
                self.pump(cx);
                self.end(cx);
                true
            }
            // Anybody on the way can say so: the connection goes on, and the program may hear of it.
            Report::Unreachable { errno, .. } => {
                cx.raise(Event::SoftError(errno));
                true
            }
            _ => true,
        }
    }

    fn destroy(&mut self, cx: &mut Cx<'_, '_>) {
        cx.release(core::mem::take(&mut self.charged) as usize);
        let member = core::mem::replace(&mut self.member, Member::NONE);
        if let (true, Some(ensembles)) = (member.is_some(), &mut cx.module::<Tcp>().ensembles) {
            ensembles.leave(member);
        }
        if core::mem::take(&mut self.entered) {
            let flow = Key::of(cx.attrs()).flow();
            cx.module::<Tcp>().tables.flows.remove(&flow);
        }
    }

    fn state(&self) -> &'static str {
        self.connection.state().name()
    }
}

fn keepalive_config((idle, interval, probes): (u32, u32, u8)) -> KeepaliveConfig {
    let seconds = |n: u32| Duration::from_secs(n.into());
    KeepaliveConfig { idle: seconds(idle), interval: seconds(interval), probes }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each connection has one.
    #[test]
    fn a_connection_has_little_beside_the_machine() {
        let beside = size_of::<ConnectionStage>() - size_of::<Connection>();
        assert!(beside <= 16, "{beside}");
    }
}
