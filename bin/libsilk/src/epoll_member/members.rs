//! The members of one event set, and which of them are to be looked at: the level-triggered
//! ones for as long as they are ready, all others when they have changed. Sockets of paths
//! above the ordinary come first (SILK §4.3), and where there may be such a program is told
//! of few others at a time, so that it soon asks again.

use super::{Home, Member, ONE_SHOT, Queued};
use crate::bell::Bell;
use crate::epoll_apart::Apart;
use crate::family::PATIENCE;
use crate::socket::{Role, Socket};
use libc::epoll_event;
use std::collections::VecDeque;
use std::ffi::c_int;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// Events of ordinary sockets in one answer, where others may be waiting before it is worked
/// off.
const PORTION: usize = 4;

/// The members and their bell.
pub struct Inner {
    /// Who tells of changes; none while no socket of ours was ever a member.
    pub bell: Option<Bell>,
    /// Whether other processes may wait in the real set, so that the bell must not hang there.
    pub shared: bool,
    /// Where it hangs instead.
    pub apart: Option<Apart>,
    /// The descriptors of the sets that are in the real set.
    pub nested: Vec<c_int>,
    members: Vec<Option<Member>>,
    vacant: Vec<u32>,
    /// Descriptor → member plus one.
    by_descriptor: Vec<u32>,
    /// Slot → the first of its members plus one; each knows the next.
    by_slot: Vec<u32>,
    /// What is to be looked at. A member that became urgent lies in both; the place that its
    /// `queued` does not name is passed over.
    ready: VecDeque<u32>,
    urgent: VecDeque<u32>,
    /// It has, or had, a member that sockets of several classes come with.
    has_classes: bool,
    /// It has, or had, a member that is a datagram socket of silk's.
    has_datagrams: bool,
    /// Members that are silk's.
    ours: u32,
    kernels: u32,
    looks: u32,
    /// When all members were last looked at because nothing was told of any.
    looked_at_all: Duration,
}

/// The entry for `key` in an index that grows as needed.
fn entry(index: &mut Vec<u32>, key: usize) -> Option<&mut u32> {
    if key >= index.len() {
        index.resize(key + 1, 0);
    }
    index.get_mut(key)
}

impl Inner {
    /// No members.
    pub const fn new() -> Self {
        Self {
            bell: None,
            shared: false,
            apart: None,
            nested: Vec::new(),
            members: Vec::new(),
            vacant: Vec::new(),
            by_descriptor: Vec::new(),
            by_slot: Vec::new(),
            ready: VecDeque::new(),
            urgent: VecDeque::new(),
            has_classes: false,
            has_datagrams: false,
            ours: 0,
            kernels: 0,
            looks: 0,
            looked_at_all: Duration::ZERO,
        }
    }

    fn place(&self, fd: c_int) -> Option<u32> {
        self.by_descriptor.get(usize::try_from(fd).ok()?)?.checked_sub(1)
    }

    /// The member known as `fd`.
    pub fn find(&mut self, fd: c_int) -> Option<&mut Member> {
        let place = self.place(fd)?;
        self.members.get_mut(place as usize)?.as_mut()
    }

    /// Whether the socket is a member, by whatever descriptor.
    pub fn has_slot(&self, socket: &Socket) -> bool {
        let of_it = |member: &Member| std::ptr::eq(member.socket, socket) && member.home == Home::Silk;
        let place = |place| self.members.get(place as usize)?.as_ref();
        self.of_slot(socket.name().0).any(|number| place(number).is_some_and(of_it))
    }

    /// The places of a slot's members: one for each descriptor by which its socket is one.
    fn of_slot(&self, slot: u32) -> impl Iterator<Item = u32> {
        let next = |place: &u32| self.members.get(*place as usize)?.as_ref()?.next.checked_sub(1);
        let first = self.by_slot.get(slot as usize).and_then(|first| first.checked_sub(1));
        std::iter::successors(first, next)
    }

    /// Adds a member.
    pub fn add(&mut self, member: Member) {
        let fd = member.fd;
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.members.push(None);
            self.members.len() as u32 - 1
        });
        member.socket.watched.fetch_add(1, SeqCst);
        if let Some(entry) = usize::try_from(fd).ok().and_then(|fd| entry(&mut self.by_descriptor, fd)) {
            *entry = place + 1;
        }
        let silk = member.home == Home::Silk;
        if let Some(cell) = self.members.get_mut(place as usize) {
            *cell = Some(member);
        }
        if silk {
            self.ours += 1;
            self.link(place);
            self.watch(place);
        }
    }

    /// The member at `place` becomes the first of its slot's.
    fn link(&mut self, place: u32) {
        let Self { members, by_slot, .. } = self;
        let Some(Some(member)) = members.get_mut(place as usize) else { return };
        if let Some(first) = entry(by_slot, member.slot.0 as usize) {
            member.next = std::mem::replace(first, place + 1);
        }
    }

    /// The member that was at `place` is no longer among its slot's; whether any is left.
    fn unlink(&mut self, place: u32, member: &Member) -> bool {
        let before = self.of_slot(member.slot.0).take_while(|each| *each != place).last();
        let Self { members, by_slot, .. } = self;
        let pointer = match before {
            Some(before) => {
                members.get_mut(before as usize).and_then(Option::as_mut).map(|before| &mut before.next)
            }
            None => by_slot.get_mut(member.slot.0 as usize),
        };
        if let Some(pointer) = pointer.filter(|pointer| **pointer == place + 1) {
            *pointer = member.next;
        }
        self.by_slot.get(member.slot.0 as usize).is_some_and(|first| *first != 0)
    }

    /// Lets executors tell of the member at `place`.
    fn watch(&mut self, place: u32) {
        let Some(Some(member)) = self.members.get(place as usize) else { return };
        self.has_classes |= member.is_among_classes();
        self.has_datagrams |= member.slot().is_some() && member.socket.role() == Role::Datagram;
        if let (Some(bell), Some(slot)) = (&self.bell, member.slot()) {
            bell.watch(slot, true);
        }
    }

    /// Removes the member known as `fd`; whether there was one.
    pub fn remove(&mut self, fd: c_int) -> bool {
        let Some(place) = self.place(fd) else { return false };
        let Some(member) = self.members.get_mut(place as usize).and_then(Option::take) else { return false };
        member.socket.watched.fetch_sub(1, SeqCst);
        if let Some(entry) = usize::try_from(fd).ok().and_then(|fd| self.by_descriptor.get_mut(fd)) {
            *entry = 0;
        }
        if member.home == Home::Silk {
            self.ours = self.ours.saturating_sub(1);
            let is_watched_still = self.unlink(place, &member);
            if let (Some(bell), Some(slot)) =
                (self.bell.as_ref().filter(|bell| bell.is_mine() && !is_watched_still), member.slot())
            {
                bell.watch(slot, false);
            }
        }
        if member.queued != Queued::No || member.lies_in_ready {
            self.ready.retain(|queued| *queued != place);
            self.urgent.retain(|queued| *queued != place);
        }
        self.vacant.push(place);
        true
    }

    /// Removes everything, the bell too.
    pub fn clear(&mut self) {
        let all: Vec<_> = self.members.iter().flatten().map(|member| member.fd).collect();
        all.into_iter().for_each(|fd| {
            self.remove(fd);
        });
        *self = Self::new();
    }

    /// Another bell tells of all members, each of which is looked at.
    pub fn change_bell(&mut self, bell: Bell) {
        self.bell = Some(bell);
        let silks = self.members.iter().enumerate();
        let silks = silks.filter(|(_, m)| m.as_ref().is_some_and(|m| m.home == Home::Silk));
        let places: Vec<_> = silks.map(|(place, _)| place as u32).collect();
        for place in places {
            self.watch(place);
            self.enqueue(place);
        }
    }

    /// Two processes will have the set. A bell that this one has told nobody of yet is not to
    /// hang where the child cannot take it away.
    pub fn note_fork(&mut self) {
        self.shared |= self.bell.is_none();
    }

    /// Counts what the real set holds, roughly: it forgets by itself what is closed.
    pub fn count_kernels(&mut self, op: c_int) {
        match op {
            libc::EPOLL_CTL_ADD => self.kernels += 1,
            libc::EPOLL_CTL_DEL => self.kernels = self.kernels.saturating_sub(1),
            _ => {}
        }
    }

    /// Remembers what the program asked about a socket that nobody serves yet.
    pub fn note_undecided(
        &mut self,
        socket: &'static Socket,
        fd: c_int,
        op: c_int,
        asked: Option<epoll_event>,
    ) {
        match (op, asked) {
            (libc::EPOLL_CTL_ADD, Some(asked)) => {
                // The kernel has taken it: whatever was known by that number is closed.
                self.remove(fd);
                self.add(Member::new(socket, fd, Home::Kernel, asked));
            }
            (libc::EPOLL_CTL_MOD, Some(asked)) => {
                if let Some(member) = self.find(fd) {
                    member.change(asked);
                }
            }
            _ => {
                self.remove(fd);
            }
        }
    }

    /// The descriptors by which an undecided socket is a member, and whether it is told of but once.
    pub fn undecided(&self, socket: &Socket) -> Vec<(c_int, bool)> {
        let of_it = |m: &&Member| m.home == Home::Kernel && std::ptr::eq(m.socket, socket);
        self.members
            .iter()
            .flatten()
            .filter(of_it)
            .map(|member| (member.fd, member.events & ONE_SHOT != 0))
            .collect()
    }

    /// The member known as `fd` is silk's from now on; the kernel has told of it but once, where it `has_fired`.
    pub fn take_over(&mut self, fd: c_int, has_fired: bool) {
        let Some(place) = self.place(fd) else { return };
        if let Some(Some(member)) = self.members.get_mut(place as usize) {
            member.home = Home::Silk;
            member.slot = member.socket.name();
            (member.spent, member.fresh) = (has_fired, true);
        }
        self.ours += 1;
        self.link(place);
        self.watch(place);
        self.enqueue(place);
    }

    /// Removes a socket of silk's: by what descriptors it was a member, and what was asked for.
    pub fn let_go(&mut self, socket: &Socket) -> Vec<(c_int, epoll_event)> {
        let of_it = |m: &&Member| m.home == Home::Silk && std::ptr::eq(m.socket, socket);
        let all: Vec<_> = self.members.iter().flatten().filter(of_it).map(|m| (m.fd, m.wants())).collect();
        for (fd, _) in &all {
            self.remove(*fd);
        }
        all
    }

    /// Whether the member known as `fd` is the kernel's to look at.
    pub fn is_kernels(&mut self, fd: c_int) -> bool {
        self.find(fd).is_some_and(|member| member.home == Home::Kernel)
    }

    /// The descriptors of all members, and their sockets.
    pub fn descriptors(&self) -> Vec<(c_int, &'static Socket)> {
        self.members.iter().flatten().map(|member| (member.fd, member.socket)).collect()
    }

    /// Whether the record of the member known as `fd` is still that of the socket it was.
    pub fn is_of_this_use(&mut self, fd: c_int) -> bool {
        self.find(fd).is_some_and(|member| member.uses == member.socket.uses())
    }

    fn enqueue(&mut self, place: u32) {
        if let Some(Some(member)) = self.members.get_mut(place as usize) {
            enqueue(member, place, &mut self.ready, &mut self.urgent);
        }
    }

    /// The member known as `fd` is to be looked at.
    pub fn queue(&mut self, fd: c_int) {
        if let Some(place) = self.place(fd) {
            self.enqueue(place);
        }
    }

    /// Every member is to be looked at.
    pub fn queue_all(&mut self) {
        (0..self.members.len() as u32).for_each(|place| self.enqueue(place));
    }

    /// Whether any member waits to be looked at.
    pub fn has_queued(&self) -> bool {
        !self.ready.is_empty() || !self.urgent.is_empty()
    }

    /// Whether the kernel is asked first this time, so that sockets of ours which are always ready do not fill a
    /// small array each time.
    pub fn is_kernels_turn(&mut self) -> bool {
        self.looks = self.looks.wrapping_add(1);
        self.has_kernels() && self.looks.is_multiple_of(4)
    }

    /// Whether all members are to be looked at after a sleep without news that is over `now`: where no bell tells of them, and else
    /// once in a while, however short the sleeps are.
    pub fn is_silent_for_long(&mut self, now: Duration) -> bool {
        let is_due = !self.has_bell() || now.saturating_sub(self.looked_at_all) >= PATIENCE;
        if is_due {
            self.looked_at_all = now;
        }
        is_due
    }

    /// Whether sockets of ours are members, or ever were since the bell was made.
    pub fn has_ours(&self) -> bool {
        self.bell.is_some() || self.ours > 0
    }

    /// Whether datagram sockets of ours are members, or were.
    pub fn has_datagrams(&self) -> bool {
        self.has_datagrams
    }

    /// This process's bell for it.
    pub fn own_bell(&self) -> Option<&Bell> {
        self.bell.as_ref().filter(|bell| bell.is_mine())
    }

    /// Whether this process has a bell that wakes who sleeps in the set.
    pub fn has_bell(&self) -> bool {
        self.own_bell().is_some() && (self.apart.is_some() || !self.shared)
    }

    /// Whether the real set may hold anything but the bell: one that several processes have,
    /// what only the other one knows of.
    pub fn has_kernels(&self) -> bool {
        self.kernels > 0 || self.shared
    }

    /// Puts what changed where it is looked at.
    fn hear(&mut self) {
        let Self { bell, members, ready, urgent, by_slot, .. } = self;
        if let Some(bell) = bell.as_ref().filter(|bell| bell.is_mine()) {
            bell.take(|slot| {
                let mut next = by_slot.get(slot as usize).and_then(|first| first.checked_sub(1));
                while let Some(place) = next {
                    let Some(Some(member)) = members.get_mut(place as usize) else { break };
                    enqueue(member, place, ready, urgent);
                    next = member.next.checked_sub(1);
                }
            });
        }
    }

    /// Whether a look would find anything. Who has nothing to tell is not looked at before it changes.
    pub fn has_news(&mut self) -> bool {
        self.hear();
        let Self { members, ready, urgent, .. } = self;
        for (queue, which) in [(urgent, Queued::Urgent), (ready, Queued::Ordinary)] {
            while let Some(place) = queue.front() {
                let member = members.get_mut(*place as usize).and_then(Option::as_mut);
                if let Some(member) = member {
                    if member.queued == which {
                        if member.has_news() {
                            return true;
                        }
                        member.queued = Queued::No;
                    }
                    member.lies_in_ready &= which == Queued::Urgent;
                }
                queue.pop_front();
            }
        }
        false
    }

    /// Looks at what changed and what was ready before; gives at most `room` events away: those
    /// of urgent members, or else of others.
    pub fn collect(&mut self, room: usize, mut give: impl FnMut(epoll_event)) -> usize {
        self.hear();
        let given = self.collect_from(Queued::Urgent, room, &mut give);
        if given > 0 {
            return given;
        }
        let room = if self.has_classes { room.min(PORTION) } else { room };
        self.collect_from(Queued::Ordinary, room, &mut give)
    }

    fn collect_from(&mut self, which: Queued, room: usize, give: &mut impl FnMut(epoll_event)) -> usize {
        let Self { members, ready, urgent, .. } = self;
        let mut given = 0;
        for _ in 0..if which == Queued::Urgent { urgent.len() } else { ready.len() } {
            if given == room {
                break;
            }
            let queue = if which == Queued::Urgent { &mut *urgent } else { &mut *ready };
            let Some(place) = queue.pop_front() else { break };
            let Some(Some(member)) = members.get_mut(place as usize) else { continue };
            member.lies_in_ready &= which == Queued::Urgent;
            if member.queued != which {
                continue;
            }
            let (bits, again) = member.look();
            member.queued = Queued::No;
            if again {
                enqueue(member, place, ready, urgent);
            }
            if bits != 0 {
                give(epoll_event { events: bits, u64: member.data });
                given += 1;
            }
        }
        given
    }
}

/// Puts a member where its urgency says, unless it lies there or in front of that already.
fn enqueue(member: &mut Member, place: u32, ready: &mut VecDeque<u32>, urgent: &mut VecDeque<u32>) {
    let urgency = member.urgency();
    if urgency > member.queued {
        member.queued = urgency;
        match urgency {
            Queued::Urgent => urgent.push_back(place),
            // It would be told of twice at once.
            _ if member.lies_in_ready => {}
            _ => {
                member.lies_in_ready = true;
                ready.push_back(place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::{self, stage};

    #[test]
    fn who_was_urgent_for_a_while_lies_among_the_ordinary_once() {
        let socket = socket::make(stage::UNDECIDED, 0, 0).unwrap();
        let asked = epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        let mut member = Member::new(socket, 3, Home::Silk, asked);
        let [mut ready, mut urgent] = [VecDeque::new(), VecDeque::new()];
        enqueue(&mut member, 0, &mut ready, &mut urgent);
        // It became urgent, and was looked at as that.
        member.queued = Queued::No;
        enqueue(&mut member, 0, &mut ready, &mut urgent);
        assert_eq!((ready.len(), urgent.len(), member.queued), (1, 0, Queued::Ordinary));
        socket.free();
    }

    #[test]
    fn a_socket_is_a_member_for_each_of_its_descriptors() {
        let socket = socket::make(stage::UNDECIDED, 0, 0).unwrap();
        let mut set = Inner::new();
        let asked = epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        let members = |set: &Inner| set.of_slot(socket.name().0).collect::<Vec<_>>();
        (3..6).for_each(|fd| set.add(Member::new(socket, fd, Home::Silk, asked)));
        assert_eq!((members(&set), set.has_slot(socket)), (vec![2, 1, 0], true));
        for (fd, left) in [(4, vec![2, 0]), (3, vec![2]), (5, vec![])] {
            assert!(set.remove(fd) && !set.remove(fd));
            assert_eq!((members(&set), set.has_slot(socket)), (left.clone(), !left.is_empty()));
        }
        // The places are used again.
        (6..8).for_each(|fd| set.add(Member::new(socket, fd, Home::Silk, asked)));
        assert_eq!(members(&set).len(), 2);
        set.clear();
        assert_eq!(members(&set), []);
        socket.free();
    }
}
