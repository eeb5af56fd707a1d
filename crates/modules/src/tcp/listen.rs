//! TCP's part of a listening path: half-open connections, connections in TIME-WAIT, and the
//! resets for segments that belong to nobody.

use super::segment::{HEADROOM, meta, parse, push};
use super::{Four, HEADERS, Tcp, UP};
use core::net::SocketAddrV4;
use silk_instant::Instant;
use silk_path::{Attr, Attrs, Bell, CreateError, Cx, DropReason, Message, Request, Stage, Verdict};
use silk_tcp::listen::{Admission, Established, ListenAction, SynTable};
use silk_tcp::time_wait::TimeWaitAction;
use silk_tcp::{Header, Segment, reset_for};
use silk_wire::ipv4;

/// The stage.
pub(super) struct ListenStage {
    /// Where it listens; nowhere: it takes what nobody else does.
    local: Option<SocketAddrV4>,
    backlog: usize,
    half_open: Option<SynTable<Four>>,
    accept_full: bool,
    // In the module's list.
    entered: bool,
    // Bytes charged for half-open connections.
    charged: usize,
}

impl ListenStage {
    pub(super) fn new(local: Option<SocketAddrV4>, backlog: u16) -> Self {
        Self {
            local,
            backlog: backlog.into(),
            half_open: None,
            accept_full: false,
            entered: false,
            charged: 0,
        }
    }

    fn send(cx: &mut Cx<'_, '_>, four: Four, header: &Header) {
        let mut headroom = [0; HEADROOM];
        let mut msg = Message::outgoing(&mut headroom, [&[], &[]], meta(four));
        if push(&mut msg, header, four).is_ok() {
            // A drop on the way is counted there; the peer asks again.
            let _ = cx.down(&mut msg);
        }
    }

    /// A segment for a connection in TIME-WAIT. `Ok` when it is for the listener after all,
    /// with the floor of the new initial sequence number.
    fn in_time_wait(
        cx: &mut Cx<'_, '_>,
        four: Four,
        segment: &Segment<'_>,
    ) -> Result<Option<silk_tcp::SeqNumber>, Verdict> {
        let now = cx.now();
        match cx.module::<Tcp>().time_wait.on_segment(now, &four, segment) {
            TimeWaitAction::Absent => Ok(None),
            TimeWaitAction::Reuse { iss_floor } => {
                cx.module::<Tcp>().leave(four);
                Ok(Some(iss_floor))
            }
            TimeWaitAction::Ack(header) => {
                Self::send(cx, four, &header);
                Err(Verdict::Consumed)
            }
            TimeWaitAction::Drop(why) => Err(reason(why).into()),
        }
    }

    /// The handshake is complete: a path is asked for, and the segment goes up that.
    fn established(cx: &mut Cx<'_, '_>, four: Four, established: Established, tos: u8) -> Verdict {
        let number = cx.module::<Tcp>().keep(established, four);
        let Some(top) = cx.linked_id(UP) else { return Verdict::Drop(DropReason::NoReceiver) };
        let attrs = Attrs::new()
            .with(Attr::Local(four.local))
            .with(Attr::Remote(four.remote))
            .with(Attr::ProtId(ipv4::TCP.into()))
            .with(Attr::Handshake(number))
            .with(Attr::Tos(tos));
        let by = cx.path();
        cx.request(Request::Create { top, attrs, by });
        Verdict::Handoff
    }

    fn listen(&mut self, cx: &mut Cx<'_, '_>, four: Four, segment: &Segment<'_>, tos: u8) -> Verdict {
        let iss_floor = match Self::in_time_wait(cx, four, segment) {
            Ok(floor) => floor,
            Err(verdict) => return verdict,
        };
        let now = cx.now();
        let Some(half_open) = &mut self.half_open else {
            if let Some(reset) = reset_for(segment) {
                Self::send(cx, four, &reset);
            }
            return Verdict::Drop(DropReason::TcpNoPort);
        };
        let admission = Admission { accept_queue_full: self.accept_full, iss_floor };
        match half_open.on_segment(now, four, segment, admission) {
            ListenAction::Reply(header) => {
                Self::send(cx, four, &header);
                Verdict::Consumed
            }
            ListenAction::Established(established) => Self::established(cx, four, established, tos),
            ListenAction::Drop(why) => reason(why).into(),
            ListenAction::Challenge(why, header) => {
                Self::send(cx, four, &header);
                reason(why).into()
            }
            ListenAction::Reset(header) => {
                Self::send(cx, four, &header);
                Verdict::Drop(DropReason::TcpNoPort)
            }
        }
    }

    /// Timers and memory after every run.
    fn after(&mut self, cx: &mut Cx<'_, '_>) {
        let held = self.half_open.as_ref().map_or(0, SynTable::memory);
        if held > self.charged {
            // Beyond the limit nothing new is taken: the table is bounded by the backlog, and
            // what it has is not given up for a limit that was lowered.
            match cx.charge(held - self.charged) {
                Ok(()) => self.charged = held,
                Err(reason) => cx.count_drop(reason),
            }
        } else {
            cx.release(self.charged - held);
            self.charged = held;
        }
        let half_open = self.half_open.as_ref().and_then(SynTable::poll_timeout);
        let time_wait = if self.local.is_none() { cx.module::<Tcp>().time_wait.poll_timeout() } else { None };
        // A TIME-WAIT may begin while this path sleeps, so the one that ends them looks now
        // and then.
        let look = self.local.is_none().then(|| cx.now() + core::time::Duration::from_secs(1));
        let due = [half_open, time_wait.map(|at| at.max(cx.now())), look].into_iter().flatten().min();
        cx.arm(due.unwrap_or(Instant::FAR));
    }
}

impl Stage for ListenStage {
    fn establish(&mut self, cx: &mut Cx<'_, '_>) -> Result<(), CreateError> {
        let (path, mtu) = (cx.path(), cx.attrs().mtu());
        let tcp = cx.module::<Tcp>();
        match self.local {
            None => tcp.stray = Some(path),
            Some(local) => {
                let mut config = tcp.config.clone();
                config.mss = mtu.map_or(config.mss, |mtu| mtu.saturating_sub(HEADERS));
                let tables = tcp.tables.clone();
                tcp.listening.enter(&tables, silk_path::classify::Protocol::Tcp, local, path)?;
                self.half_open = Some(SynTable::new(config, tcp.secret, self.backlog));
            }
        }
        self.entered = true;
        self.after(cx);
        Ok(())
    }

    fn up(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        let tos = msg.meta.tos;
        let verdict = match parse(msg) {
            Err(reason) => return reason.into(),
            Ok((four, segment)) => self.listen(cx, four, &segment, tos),
        };
        self.after(cx);
        verdict
    }

    fn down(&mut self, _: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        Verdict::Drop(DropReason::Unexpected)
    }

    fn timer(&mut self, cx: &mut Cx<'_, '_>) {
        let now = cx.now();
        while let Some((four, header)) = self.half_open.as_mut().and_then(|table| table.on_timeout(now)) {
            Self::send(cx, four, &header);
        }
        if self.local.is_none() {
            cx.module::<Tcp>().end_time_waits(now);
        }
        self.after(cx);
    }

    fn bell(&mut self, cx: &mut Cx<'_, '_>, bell: Bell) -> bool {
        match (bell, &mut self.half_open) {
            (Bell::AcceptFull(full), _) => self.accept_full = full,
            (Bell::Backlog(backlog), Some(table)) => table.set_backlog(backlog.into()),
            _ => {}
        }
        self.after(cx);
        false
    }

    fn destroy(&mut self, cx: &mut Cx<'_, '_>) {
        while let Some((four, header)) = self.half_open.as_mut().and_then(SynTable::drain) {
            Self::send(cx, four, &header);
        }
        let (path, local) = (cx.path(), self.local);
        if core::mem::take(&mut self.entered) {
            let tcp = cx.module::<Tcp>();
            match local {
                None => tcp.stray = None,
                Some(local) => {
                    let tables = tcp.tables.clone();
                    tcp.listening.leave(&tables, silk_path::classify::Protocol::Tcp, local, path);
                }
            }
        }
        cx.release(core::mem::take(&mut self.charged));
    }

    fn state(&self) -> &'static str {
        if self.local.is_some() { "LISTEN" } else { "" }
    }
}

/// The state machine's reasons in the words of the house.
pub(super) fn reason(why: silk_tcp::DropReason) -> DropReason {
    use silk_tcp::DropReason as Why;
    match why {
        Why::Closed | Why::AfterClose => DropReason::TcpClosed,
        Why::OutOfWindow | Why::Duplicate => DropReason::TcpWindow,
        Why::OldTimestamp | Why::MissingTimestamp => DropReason::TcpPaws,
        Why::AckOfUnsent | Why::AckTooOld => DropReason::TcpAck,
        Why::ResetOutOfWindow | Why::BlindReset | Why::UnexpectedSyn | Why::ResetInTimeWait => {
            DropReason::TcpChallenge
        }
        Why::HandshakeReset => DropReason::TcpReset,
        Why::NoAck | Why::BadHandshake | Why::SynWithFin | Why::NotForListener => DropReason::TcpFlags,
        Why::ReassemblyFull | Why::NoRoom => DropReason::TcpBuffer,
        Why::BacklogFull | Why::AcceptQueueFull => DropReason::TcpBacklog,
        // Not lost: the connection waits for more.
        Why::Deferred | Why::InTimeWait => DropReason::TcpWindow,
    }
}
