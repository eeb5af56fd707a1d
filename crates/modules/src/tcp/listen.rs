//! A listening path's stage: SYNs become entries of a bounded table, completed handshakes ask
//! for a path. The one without an address answers for connections that are gone: TIME-WAIT,
//! and resets for what nobody knows (RFC 9293 §3.10.7.1).

use super::emit::{HEADROOM, bare, segment};
use super::reasons::reason;
use super::{Key, Tcp, UP, headers, seconds};
use crate::bound::Share;
use crate::faults;
use core::hash::{Hash, Hasher};
use silk_instant::Instant;
use silk_path::classify::Protocol;
use silk_path::{
    Attr, Attrs, Bell, CreateError, Cx, DropReason, Endpoint, Message, NOWHERE, Report, Request, Stage,
    Station, Verdict, Wishes,
};
use silk_tcp::listen::{Admission, Established, ListenAction, SynTable};
use silk_tcp::time_wait::TimeWaitAction;
use silk_tcp::{Config, Header, IsnSecret, Segment, SeqNumber, reset_for};
use silk_wire::{checksum, ipv4, tcp};

/// Who asks for a connection: its name, and where its SYN came from. There it is answered again, too, if the routes do not say
/// where it is.
#[derive(Clone, Copy, Debug)]
struct Asker {
    key: Key,
    link: Station,
}

impl PartialEq for Asker {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Asker {}

impl Hash for Asker {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

/// TCP's part of a listening path.
pub(super) struct ListenStage {
    // Where it listens; none for the path that answers for connections that are gone.
    local: Option<Endpoint>,
    // Over IPv6.
    six: bool,
    halves: SynTable<Asker>,
    // Why the program can take no connection now.
    full: Option<DropReason>,
    // What counts where the program wishes nothing else: SYN-ACKs sent again, and the MSS of the link.
    usual_retries: u8,
    link_mss: u16,
    entered: bool,
    // Bytes charged for the table.
    charged: usize,
}

impl ListenStage {
    pub fn new(
        local: Option<Endpoint>,
        six: bool,
        config: &Config,
        secret: IsnSecret,
        backlog: usize,
    ) -> Self {
        let halves = SynTable::new(config.clone(), secret, backlog);
        let (usual_retries, link_mss) = (config.syn_ack_retries, config.mss);
        Self { local, six, halves, full: None, usual_retries, link_mss, entered: false, charged: 0 }
    }

    /// What is to be done with a segment, TIME-WAIT first.
    fn receive(&mut self, cx: &mut Cx<'_, '_>, msg: &Message<'_>) -> Verdict {
        let (source, destination) = (msg.meta.remote.ip(), msg.meta.local.ip());
        let pseudo = |length| checksum::pseudo_of(source, destination, ipv4::TCP, length);
        let read = match tcp::parse(msg.bytes(), faults::accept(&msg.meta), pseudo) {
            Ok(read) => read,
            Err(fault) => return faults::reason(fault).into(),
        };
        let key = Key {
            local: Endpoint::new(destination, read.header.destination()),
            remote: Endpoint::new(source, read.header.source()),
        };
        let segment = match segment(&read, msg.meta.tos) {
            Ok(segment) => segment,
            Err(reason) => return reason.into(),
        };
        let (now, link, service) = (cx.now(), msg.meta.link, msg.meta.tos);
        let module = cx.module::<Tcp>();
        match module.time_wait.on_segment(now, &key, &segment) {
            TimeWaitAction::Absent => self.listen(cx, key, &segment, None, (link, service)),
            TimeWaitAction::Reuse { iss_floor } => {
                module.tables.flows.remove(&key.flow());
                if !self.listens_at(key.local.port()) {
                    // The port may be another's now, with whom this machine is shared: the next of its SYNs finds no
                    // flow any more, and whoever has the port.
                    return Verdict::Drop(DropReason::TcpNoPort);
                }
                self.listen(cx, key, &segment, Some(iss_floor), (link, service))
            }
            TimeWaitAction::Ack(header) => reply(cx, &key, &header, link),
            TimeWaitAction::Ended => {
                module.tables.flows.remove(&key.flow());
                Verdict::Consumed
            }
            TimeWaitAction::Drop(why) => reason(why).into(),
        }
    }

    fn listens_at(&self, port: u16) -> bool {
        self.local.is_some_and(|local| local.port() == port)
    }

    fn listen(
        &mut self,
        cx: &mut Cx<'_, '_>,
        key: Key,
        segment: &Segment<'_>,
        iss_floor: Option<SeqNumber>,
        (link, service): (Station, u8),
    ) -> Verdict {
        if !self.listens_at(key.local.port()) {
            return match reset_for(segment) {
                Some(header) => {
                    cx.count_drop(DropReason::TcpNoPort);
                    reset(cx, &key, &header, link)
                }
                None => Verdict::Drop(DropReason::TcpNoPort),
            };
        }
        let no_room = !self.may_grow(cx, segment);
        let admission = Admission { accept_queue_full: self.full.is_some(), no_room, iss_floor };
        let crowded = if no_room { DropReason::NoMemory } else { reason(silk_tcp::DropReason::BacklogFull) };
        match self.halves.on_segment(cx.now(), Asker { key, link }, segment, admission) {
            ListenAction::Reply(header) => reply(cx, &key, &header, link),
            ListenAction::Reset(header) => reset(cx, &key, &header, link),
            ListenAction::Cookie(header) => {
                cx.count_drop(crowded);
                reply(cx, &key, &header, link)
            }
            ListenAction::Challenge(why, header) => {
                cx.count_drop(reason(why));
                reply(cx, &key, &header, link)
            }
            ListenAction::Established(half) => ask_for_path(cx, key, half, service),
            ListenAction::Drop(why @ silk_tcp::DropReason::AcceptQueueFull) => {
                self.full.unwrap_or(reason(why)).into()
            }
            ListenAction::Drop(silk_tcp::DropReason::BacklogFull) => crowded.into(),
            ListenAction::Drop(why) => reason(why).into(),
        }
    }

    /// Whether the table may have what it grows by for a SYN, which is charged before.
    fn may_grow(&mut self, cx: &mut Cx<'_, '_>, segment: &Segment<'_>) -> bool {
        let asks = segment.flags.syn() && !segment.flags.ack();
        let growth = if asks { self.halves.growth() } else { 0 };
        let is_paid = growth == 0 || cx.charge(growth).is_ok();
        self.charged += if is_paid { growth } else { 0 };
        is_paid
    }

    /// What the program wishes of handshakes.
    fn grant(&mut self, wishes: &Wishes) {
        let config = self.halves.config();
        let syn_ack_retries = wishes.syn_retries.unwrap_or(self.usual_retries);
        let mss = wishes.max_segment.map_or(self.link_mss, |mss| mss.min(self.link_mss));
        self.halves.set_config(Config { mss, syn_ack_retries, ..config.clone() });
    }

    /// Sets the timer and settles the account.
    fn settle(&mut self, cx: &mut Cx<'_, '_>) {
        let halves = self.halves.poll_timeout().unwrap_or(Instant::FAR);
        let now = cx.now();
        let waiting = match self.local {
            Some(_) => Instant::FAR,
            None => cx.module::<Tcp>().expire_time_wait(now),
        };
        cx.arm(halves.min(waiting));
        let held = self.halves.memory();
        if held < self.charged {
            cx.release(self.charged - held);
            self.charged = held;
        } else if held > self.charged && cx.charge(held - self.charged).is_ok() {
            self.charged = held;
        }
    }
}

/// Sends a segment without text back; `link` is where what it answers came from.
fn reply(cx: &mut Cx<'_, '_>, key: &Key, header: &Header, link: Station) -> Verdict {
    let mut headroom = [0; HEADROOM];
    match bare(&mut headroom, key, header, link) {
        // A drop on the way down has been counted there; the peer will ask again.
        Ok(mut msg) => _ = cx.down(&mut msg),
        Err(reason) => return reason.into(),
    }
    Verdict::Consumed
}

/// Sends a reset back, as long as that is not too many.
fn reset(cx: &mut Cx<'_, '_>, key: &Key, header: &Header, link: Station) -> Verdict {
    let now = cx.now();
    match cx.module::<Tcp>().resets.allow(now) {
        true => reply(cx, key, header, link),
        false => Verdict::Drop(DropReason::TcpResetLimit),
    }
}

/// A handshake is complete: its path is asked for, and the segment, which had these `service` bits, goes there.
fn ask_for_path(cx: &mut Cx<'_, '_>, key: Key, half: Established, service: u8) -> Verdict {
    let number = cx.module::<Tcp>().pending.put(key, half);
    let mut attrs = Attrs::new()
        .with(Attr::Local(key.local))
        .with(Attr::Remote(key.remote))
        .with(Attr::ProtId(ipv4::TCP.into()))
        .with(Attr::Handshake(number));
    for attr in cx.attrs().iter() {
        if matches!(
            attr,
            Attr::Class(_)
                | Attr::Priority(_)
                | Attr::Owner(_)
                | Attr::Tos(_)
                | Attr::Ttl(_)
                | Attr::InputQueue(_)
        ) {
            attrs = attrs.with(attr);
        }
    }
    let by = cx.path();
    let above = cx.linked_id(UP).unwrap_or(cx.top());
    let top = if cx.top() == cx.module_id() { above } else { cx.top() };
    cx.request(Request::Create { top, attrs, by, service });
    Verdict::Handoff
}

impl Stage for ListenStage {
    // RFC 9293 MUST-41, MUST-67, SHLD-6.
    fn establish(&mut self, cx: &mut Cx<'_, '_>) -> Result<(), CreateError> {
        if let Some(mtu) = cx.attrs().mtu() {
            let end = self.local.or(cx.attrs().local()).unwrap_or(NOWHERE);
            self.link_mss = mtu.saturating_sub(headers(&end));
        }
        self.grant(&Wishes { max_segment: cx.attrs().max_segment(), ..Wishes::default() });
        let (path, local, share) = (cx.path(), self.local, Share::of(cx.attrs(), cx.path()));
        let module = cx.module::<Tcp>();
        match local {
            Some(local) => {
                let Tcp { bound, tables, .. } = module;
                bound.enter(tables, Protocol::Tcp, (local, None), (path, share))?;
            }
            None => module.stray[usize::from(self.six)] = Some(path),
        }
        self.entered = true;
        self.settle(cx);
        Ok(())
    }

    fn up(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        let verdict = self.receive(cx, msg);
        self.settle(cx);
        verdict
    }

    fn down(&mut self, _: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        Verdict::Drop(DropReason::Unexpected)
    }

    fn timer(&mut self, cx: &mut Cx<'_, '_>) {
        while let Some((Asker { key, link }, header)) = self.halves.on_timeout(cx.now()) {
            let _ = reply(cx, &key, &header, link);
        }
        self.settle(cx);
    }

    fn bell(&mut self, _: &mut Cx<'_, '_>, bell: Bell) -> bool {
        match bell {
            Bell::Full(why) => self.full = why,
            Bell::DeferAccept(limit) => {
                let config = Config { defer_accept: seconds(limit), ..self.halves.config().clone() };
                self.halves.set_config(config);
            }
            Bell::Wishes(wishes) => {
                self.grant(&wishes);
                return true;
            }
            // What answers a SYN bears them, below.
            Bell::Service(_) => return true,
            _ => {}
        }
        false
    }

    fn report(&mut self, cx: &mut Cx<'_, '_>, report: Report) -> bool {
        if report == Report::Resolved {
            self.settle(cx);
        }
        true
    }

    fn destroy(&mut self, cx: &mut Cx<'_, '_>) {
        while let Some((Asker { key, link }, header)) = self.halves.drain() {
            let _ = reply(cx, &key, &header, link);
        }
        cx.release(core::mem::take(&mut self.charged));
        if !core::mem::take(&mut self.entered) {
            return;
        }
        let (path, local) = (cx.path(), self.local.unwrap_or(NOWHERE));
        let Tcp { bound, tables, stray, .. } = cx.module::<Tcp>();
        bound.leave(tables, Protocol::Tcp, local, path);
        let stray = &mut stray[usize::from(self.six)];
        if *stray == Some(path) {
            *stray = None;
        }
    }

    fn state(&self) -> &'static str {
        if self.local.is_some() { "LISTEN" } else { "" }
    }
}
