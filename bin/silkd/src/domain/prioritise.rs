//! A path gets another priority (SILK §5.3): its terms among the others of its domain follow, and so does the thread that serves it.

use crate::between::names::SocketName;
use crate::between::told::Told;
use crate::domain::engine::Engine;
use silk_control::Refusal;
use silk_path::{Attr, PathId};
use silk_sched::Member;
use silk_stream::named;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::SeqCst;

fn refuse<T>(errno: i32, why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { errno, why: why.into() })
}

impl Engine {
    /// Gives the path of a socket another priority.
    ///
    /// # Errors
    /// `EPERM` above what its class allows, `EBUSY` when the policy has no room for such a
    /// path, `ENOTCONN` without a path, `EBADF` without a socket. Nothing is changed then.
    pub fn prioritise(&mut self, name: SocketName, asked: u32) -> Result<(), Refusal> {
        let Some(socket) = self.sockets.find(name) else {
            return refuse(libc::EBADF, "there is no such socket");
        };
        let Some((id, path)) = socket.path.and_then(|id| Some((id, self.core.paths.path(id)?))) else {
            return refuse(libc::ENOTCONN, "that socket has no path any more");
        };
        let class = usize::from(path.state.class);
        let allowed = self.classes.max_priority(class);
        let priority = match u8::try_from(asked) {
            Ok(priority) if priority <= allowed => priority,
            _ => {
                let name = self.classes.name(class);
                let why = format!(
                    "class {name} allows its programs priorities up to {allowed}: [[class]] max_priority \
                     raises that"
                );
                return refuse(libc::EPERM, why);
            }
        };
        let terms = self.classes.terms(class, priority);
        if let Err(refused) = self.core.policy.admit(Member(id.index), terms) {
            return refuse(
                libc::EBUSY,
                format!("priority {priority} has terms that cannot be kept: {refused}"),
            );
        }
        // A datagram socket's others, over the other IP and over Linux, have what terms there is room for.
        for other in self.paths_of(name).filter(|other| *other != id) {
            let _ = self.core.policy.admit(Member(other.index), terms);
        }
        self.note_priority(id, name, priority);
        self.lead_thread(name, priority);
        Ok(())
    }

    /// Tells the control thread.
    pub(crate) fn tell_control(&self, what: Told) {
        // It may be gone at the end of the daemon.
        let _ = self.events.send(what);
        self.wake_control();
    }

    /// There may be events for the control thread.
    pub(crate) fn wake_control(&self) {
        silk_stream::wake::notify(self.control_event.as_fd());
    }

    fn note_priority(&mut self, id: PathId, name: SocketName, priority: u8) {
        if let Some(path) = self.core.paths.path_mut(id) {
            // The attribute is there already, or there is room: paths have few.
            let _ = path.state.attrs.set(Attr::Priority(priority));
        }
        self.show_priority(name, priority.into());
    }

    /// Says in a socket's slot which priority its path has.
    pub(crate) fn show_priority(&self, name: SocketName, priority: u32) {
        let record = self.slot_of(name);
        if let Some(record) = record {
            record.priority.store(priority, SeqCst);
        }
    }

    /// The thread that serves a socket follows its path's priority.
    fn lead_thread(&mut self, name: SocketName, priority: u8) {
        if !self.extend || !self.classes.are_apart() {
            return;
        }
        let Some(family) = self.families.get(&name.family) else { return };
        let said = family.arena.slot(name.slot).and_then(|slot| named::number(slot.thread.load(SeqCst)));
        let Some(socket) = self.sockets.find(name) else { return };
        let before = socket.thread().map(|(thread, _)| thread);
        // Whoever asks says that it serves the socket.
        let Some(thread) = said.or(before).filter(|n| family.thread(*n).is_some()) else { return };
        let own = self.classes.priorities[self.domain];
        let raised = std::mem::replace(&mut socket.raised, (u32::from(priority) > own).then_some(priority));
        // A thread we may not raise serves all the same, at its own priority.
        family.extend(thread, self.base, priority.into(), self.domain);
        if before != Some(thread) {
            if let (Some(before), Some(raised)) = (before, raised) {
                self.release_thread(name, before, raised);
            }
            self.serve(name, thread);
        }
    }

    /// A thread is done with a socket for which it had been raised above its class.
    pub(crate) fn release_thread(&self, name: SocketName, thread: u32, raised: u8) {
        let Some(family) = self.families.get(&name.family) else { return };
        // Meanwhile it may serve another, or have lost its priority to the watchdog.
        if family.priority_of(thread) == Some(raised.into()) && family.rank_of(thread) == Some(self.domain) {
            let delivery = self.delivery();
            family.extend(thread, delivery.base, delivery.extend_to.unwrap_or(0), delivery.rank);
        }
    }
}
