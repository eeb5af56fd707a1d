//! How paths begin: a program connects, and what every path is let into the schedule with.

use crate::between::names::SocketName;
use crate::between::sockets::Rings;
use crate::classes::terms_of;
use crate::domain::engine::Engine;
use crate::domain::socket_end::SocketEnd;
use crate::domain::sockets::Socket;
use crate::domain::wishes;
use silk_device::Frame;
use silk_instant::Instant;
use silk_path::{Attr, Attrs, Bell, CreateError, DropReason, Endpoint, ModuleId, PathId};
use silk_sched::{Member, Terms};
use silk_wire::ipv4;
use std::sync::atomic::Ordering::SeqCst;

impl Engine {
    /// A program connects.
    pub fn connect(
        &mut self,
        name: SocketName,
        rings: Rings,
        (local, peer): (Endpoint, Endpoint),
        priority: Option<u8>,
        now: Instant,
    ) {
        let Some(family) = self.families.get(&name.family) else { return };
        let Some(end) = SocketEnd::new(&family.arena, name, rings) else { return };
        let Some(top) = self.top() else { return };
        self.giving_back.wake(now);
        let class = self.classes.class_of(peer.ip(), 0, local.port());
        let service = end.slot().service.load(SeqCst) as u8;
        let attrs = if service == 0 { Attrs::new() } else { Attrs::new().with(Attr::Tos(service)) };
        let attrs = wishes::attrs(&wishes::of(end.slot()), attrs)
            .with(Attr::Local(local))
            .with(Attr::Remote(peer))
            .with(Attr::ProtId(ipv4::TCP.into()))
            .with(Attr::Class(class as u8))
            .with(Attr::InputQueue(self.input_queue(class)))
            .with(Attr::Owner(name.as_owner()));
        match self.core.paths.create(top, attrs, Some(Box::new(end)), now, &mut self.core.port) {
            Ok(id) => {
                self.admit(id, class);
                self.admit_with(id, class, priority);
                self.show_priority(name, priority.map_or_else(|| self.classes.priority(class), u32::from));
                // The program may have rung before the path was there to hear it.
                let mut socket = Socket::on(id, true);
                socket.rung = true;
                self.sockets.insert(name, socket);
                self.apply_first_wishes(id, now);
                // The SYN leaves with the first look at the path.
                self.core.bell(id, Bell::Sent, now);
                self.settle(id, now);
                self.wake(id, now);
            }
            Err(error) => self.refuse(name, rings, &error),
        }
    }

    /// A connection that could not even begin: its socket says why.
    fn refuse(&mut self, name: SocketName, rings: Rings, error: &CreateError) {
        let errno = match error {
            CreateError::NoRoute(_) => libc::ENETUNREACH,
            CreateError::Overlap { .. } => libc::EADDRNOTAVAIL,
            CreateError::Refused(_) | CreateError::TableFull | CreateError::ClassifierFull => libc::ENOBUFS,
            _ => libc::EINVAL,
        };
        let Some(family) = self.families.get(&name.family) else { return };
        let Some(mut end) = SocketEnd::new(&family.arena, name, rings) else { return };
        end.fail(errno);
        let mut socket = Socket::without_path(true);
        let wake = end.take_news();
        socket.end = Some(Box::new(end));
        self.sockets.insert(name, socket);
        self.tell_ended(name, wake);
        // The program may have closed it already.
        self.answer_ended(name);
    }

    /// The module at the top of sockets' paths.
    pub(crate) fn top(&self) -> Option<ModuleId> {
        self.core.paths.graph().modules().of_kind("socket")
    }

    /// Lets a path into the schedule on its class's terms.
    pub(crate) fn admit(&mut self, id: PathId, class: usize) {
        let terms = self.classes.classes.get(class).map_or_else(Terms::default, |(class, _)| terms_of(class));
        // What a policy cannot keep of the terms it refuses whole. The configuration has seen to the others: only for
        // what is reserved there may be no room any more.
        if self.core.policy.admit(Member(id.index), terms).is_err() {
            let _ = self.core.policy.admit(Member(id.index), Terms { reserved: None, ..terms });
        }
    }

    /// Gives a path of the graph the priority that it names.
    pub(crate) fn admit_with(&mut self, id: PathId, class: usize, priority: Option<u8>) {
        if let Some(priority) = priority {
            // What the policy has no room for stays on its class's terms.
            let _ = self.core.policy.admit(Member(id.index), self.classes.terms(class, priority));
        }
    }

    /// How many messages may wait for a path of a class.
    pub(crate) fn input_queue(&self, class: usize) -> u16 {
        self.classes
            .classes
            .get(class)
            .map_or(256, |(class, _)| class.limits.queue.min(u32::from(u16::MAX)) as u16)
    }

    /// The path of a frame whose path may just have been made.
    pub(crate) fn classify_again(&mut self, frame: Frame) -> Result<PathId, DropReason> {
        self.core.path_of(Frame { path: 0, ..frame })
    }
}
