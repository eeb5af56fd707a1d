//! What comes over lifelines: each request to whom it is for, and who has asked is answered.

use crate::between::answer::Answer;
use crate::binding::Share;
use crate::control::descriptors::{is_eventfd, is_lifeline};
use crate::control::family::NotPassed;
use crate::control::server::{Member, Server, refused};
use crate::control::token::random_token;
use crate::first_wishes::First;
use crate::legible::legible;
use crate::say::say;
use rustix::event::epoll::EventFlags;
use silk_control::{Received, Refusal, Reply, Request, WireError};
use std::os::fd::OwnedFd;
use std::sync::Arc;

impl Server {
    /// Hears some of what a lifeline has said.
    pub(crate) fn hear(&mut self, number: u64) {
        // A few at a time, so that nobody talks the others down.
        for _ in 0..16 {
            if !self.tell_rest(number) || self.is_to_wait(number) || self.is_ahead(number) {
                return;
            }
            let Some(peer) = self.peers.get_mut(&number) else { return };
            match self.ringing.during(|| peer.line.try_receive::<Request>()) {
                Ok(got) => {
                    peer.pid = got.pid.or(peer.pid);
                    peer.user = got.user.or(peer.user);
                    if let (Some(pid), Some((family, Member::Process(process)))) = (got.pid, peer.member) {
                        let family = self.families.get_mut(&family);
                        if let Some(known) = family.and_then(|f| f.processes.get_mut(&process)) {
                            (known.pid, known.user) = (Some(pid), got.user);
                        }
                    }
                    // For these everybody waits, or who asks, who is not heard until he has his report.
                    let is_long = matches!(got.message, Request::Report | Request::Reload | Request::Fork);
                    self.answer(number, got);
                    if is_long {
                        return;
                    }
                }
                Err(WireError::WouldBlock) => return,
                Err(WireError::Malformed(beside)) => {
                    beside.into_iter().for_each(|fd| self.closing.close(fd));
                    let why = "that was no message of this version".to_owned();
                    self.reply(number, &Reply::Refused(Refusal { errno: libc::EPROTO, why }), &[]);
                    return self.hang_up(number);
                }
                Err(WireError::HungUp | WireError::Io(_)) => return self.hang_up(number),
            }
        }
    }

    fn answer(&mut self, number: u64, got: Received<Request>) {
        let Received { message, mut descriptors, .. } = got;
        // A file is looked at, and closed.
        let asked = usize::from(matches!(message, Request::File));
        match message {
            Request::Attach { version, family, program } => {
                self.attach(number, &version, family, legible(&program));
            }
            Request::Found => {
                let reply = self.found(number).unwrap_or_else(Reply::Refused);
                self.reply(number, &reply, &[]);
            }
            Request::Report => self.report(number),
            Request::Reload => {
                let reply = match self.reload() {
                    Ok((applied, restart)) => Reply::Reloaded { applied, restart },
                    Err(refusal) => Reply::Refused(refusal),
                };
                self.reply(number, &reply, &[]);
            }
            other => match self.peers.get(&number).and_then(|p| p.member) {
                Some((family, Member::Process(process))) => {
                    let serve =
                        |server: &mut Self| server.serve(number, family, process, other, &mut descriptors);
                    if let Some(reply) = self.for_family(family, serve) {
                        self.reply(number, &reply, &[]);
                    }
                }
                _ => self.reply(number, &refused(libc::EPROTO, "attach first".into()), &[]),
            },
        }
        if let Some(peer) = self.peers.get_mut(&number) {
            peer.sends_unasked |= descriptors.len() > asked;
        }
        descriptors.into_iter().for_each(|unasked| self.closing.close(unasked));
    }

    /// Whoever has a lifeline is another from now on, with another number: what its forerunner is still to be answered reaches nobody.
    /// It is owed nothing, as nobody who is heard is.
    fn number_anew(&mut self, number: u64) -> Option<u64> {
        let peer = self.peers.remove(&number)?;
        let now = self.next_peer;
        self.next_peer += 1;
        self.peers.insert(now, peer);
        self.heed(now, EventFlags::IN);
        Some(now)
    }

    pub(crate) fn set_member(&mut self, number: u64, family: u32, member: Member) {
        if let Some(peer) = self.peers.get_mut(&number) {
            peer.member = Some((family, member));
        }
    }

    /// A request of an attached process, which takes what it needs of what came beside it; `None` where it has no answer.
    pub(crate) fn serve(
        &mut self,
        number: u64,
        family: u32,
        process: u32,
        request: Request,
        fds: &mut Vec<OwnedFd>,
    ) -> Option<Reply> {
        Some(match request {
            Request::Fork => {
                if !fds.last().is_some_and(is_lifeline) {
                    return Some(refused(libc::EINVAL, "a fork needs the child's lifeline".into()));
                }
                let Some(child) = self.families.get_mut(&family)?.fork(process) else {
                    return Some(refused(libc::EAGAIN, "this program has too many processes".into()));
                };
                self.adopt_last(fds, (family, Member::Process(child)));
                Reply::Forked { process: child }
            }
            Request::Pass { slot, generation } => {
                if !fds.last().is_some_and(is_lifeline) {
                    return Some(refused(libc::EINVAL, "to pass a socket needs a lifeline".into()));
                }
                let ticket = random_token();
                let carrier = match self.families.get_mut(&family)?.pass(process, (slot, generation), ticket)
                {
                    Ok(carrier) => carrier,
                    Err(NotPassed::NotHeld) => {
                        return Some(refused(libc::EBADF, "that socket is not this process's".into()));
                    }
                    Err(NotPassed::NoRoom) => {
                        let why = "too many sockets of this program are on their way or held";
                        return Some(refused(libc::ETOOMANYREFS, why.into()));
                    }
                };
                self.adopt_last(fds, (family, Member::Process(carrier)));
                Reply::Passed { ticket }
            }
            Request::Take { ticket, slot, generation } => {
                if self.families.get_mut(&family)?.take(process, (slot, generation), ticket) {
                    Reply::Done
                } else {
                    refused(libc::EBADF, "no such socket was passed to a process of this program".into())
                }
            }
            Request::Renew => {
                let (last, gone) = self.families.get_mut(&family)?.renew(process);
                self.let_go(family, &gone);
                last.iter().for_each(|(slot, socket)| self.close(family, *slot, socket, true));
                let now = self.number_anew(number)?;
                self.reply(now, &Reply::Renewed, &[]);
                return None;
            }
            Request::Executes { now } => {
                self.families.get_mut(&family)?.executes(process, now);
                return None;
            }
            Request::Thread { tid } => {
                let thread =
                    |server: &mut Self, answer: &_| server.thread(number, (family, process), tid, answer);
                return self.when_obeyed(number, thread);
            }
            Request::ThreadGone { thread } => {
                if self.families.get_mut(&family)?.end_thread(process, thread) {
                    self.thread_gone(family, thread);
                }
                return None;
            }
            Request::Bell => {
                let event = fds.pop_if(|fd| is_eventfd(fd)).map(Arc::new);
                let bell = |server: &mut Self, answer: &_| server.bell((family, process), event, answer);
                return self.when_obeyed(number, bell);
            }
            Request::BellGone { bell } => {
                if self.families.get_mut(&family)?.end_bell(process, bell) {
                    self.bell_gone(family, bell);
                }
                return None;
            }
            Request::Bind { kind, local, reuse_address, reuse_port, only_v6 } => {
                let user = self.peers.get(&number).and_then(|peer| peer.user);
                let share = Share { port: reuse_port, address: reuse_address, user };
                let bind = |server: &mut Self, answer: &_| {
                    server.bind(family, process, kind, (local, only_v6), share, answer)
                };
                let reply = self.when_obeyed(number, bind);
                let again = Request::Bind { kind, local, reuse_address, reuse_port, only_v6 };
                return if self.binds_later(number, (family, process), again, &reply) { None } else { reply };
            }
            Request::Listen { slot, generation, backlog, defer_accept } => {
                let (of, terms) = ((slot, generation), (backlog, defer_accept));
                let listen =
                    |server: &mut Self, answer: &_| server.listen((family, process), of, terms, answer);
                return self.when_obeyed(number, listen);
            }
            Request::Connect { kind, bound, peer, service, wishes } => {
                let first = First { service, wishes, priority: None };
                let connect = |server: &mut Self, answer: &_| {
                    server.connect((family, process), kind, bound, peer, first, answer)
                };
                return self.when_obeyed(number, connect);
            }
            Request::Release { slot, generation } => {
                let known = self.families.get_mut(&family)?;
                if known.sockets.get(&slot).is_some_and(|s| s.generation == generation)
                    && let Some(socket) = known.release(process, slot)
                {
                    self.close(family, slot, &socket, false);
                }
                return None;
            }
            Request::SetPriority { slot, generation, priority } => {
                // The executor answers.
                match self.prioritise(number, (family, process), (slot, generation), priority) {
                    Ok(()) => return None,
                    Err(refusal) => Reply::Refused(refusal),
                }
            }
            Request::Disconnect { slot, generation } => {
                // Who lets go of it last answers.
                match self.disconnect(number, (family, process), (slot, generation)) {
                    Ok(true) => Reply::Done,
                    Ok(false) => return None,
                    Err(refusal) => Reply::Refused(refusal),
                }
            }
            Request::File => self.serve_file(family, fds.last()),
            Request::Way { to } => self.way_to(to).unwrap_or_else(Reply::Refused),
            Request::Group { slot, generation, group, at, change } => self
                .group((family, process), (slot, generation), group, at, change)
                .unwrap_or_else(Reply::Refused),
            Request::Scout { kind, name } => {
                let scout =
                    |server: &mut Self, answer: &_| server.scout(family, process, (kind, &name), answer);
                return self.when_obeyed(number, scout);
            }
            Request::Unserved { what } => {
                let (program, what) = (self.families.get(&family)?.program.clone(), legible(&what));
                // Bounded: a program cannot make the daemon remember without end.
                if self.unserved.len() < 1024 || self.unserved.contains_key(&(program.clone(), what.clone()))
                {
                    let count = self.unserved.entry((program.clone(), what.clone())).or_default();
                    *count += 1;
                    if *count == 1 {
                        say!(Info, "silkd: {program}: left to Linux: {what}");
                    }
                }
                return None;
            }
            Request::Attach { .. } | Request::Found | Request::Report | Request::Reload => return None,
        })
    }

    /// Does something whose answer waits until the executors that it gives orders to have obeyed;
    /// `None` when it follows.
    fn when_obeyed(
        &mut self,
        number: u64,
        what: impl FnOnce(&mut Self, &Arc<Answer>) -> Result<Reply, Refusal>,
    ) -> Option<Reply> {
        let answer = Answer::to(number, &self.report_events, &self.event);
        match what(self, &answer) {
            Ok(reply) => answer.leave(reply),
            Err(refusal) => Some(Reply::Refused(refusal)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::family::Family;
    use crate::control::server::tests::server;
    use rustix::event::epoll;
    use silk_stream::{Arena, Sizes};

    #[test]
    fn who_asks_is_known_by_the_number_and_the_user_that_the_kernel_vouches_for() {
        let folder = tempfile::tempdir().unwrap();
        let mut server = server(folder.path());
        let (number, theirs) = server.adopt_peer();
        let arena = Arena::create(Sizes { rings: 4 << 20, domains: 1 }).unwrap();
        let mut family = Family::new(0, 7, arena, "asking".into());
        let process = family.join(None);
        server.families.insert(0, family);
        server.set_member(number, 0, Member::Process(process));
        theirs.try_send(&Request::Executes { now: true }, &[]).unwrap();
        server.hear(number);
        let known = &server.families[&0].processes[&process];
        let user = rustix::process::getuid().as_raw();
        assert_eq!((known.pid, known.user), (Some(std::process::id()), Some(user)));
    }

    #[test]
    fn what_a_program_was_to_be_answered_before_it_executed_another_reaches_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let mut server = server(folder.path());
        let (before, theirs) = server.adopt_peer();
        let now = server.number_anew(before).unwrap();
        server.reply(before, &Reply::Done, &[]);
        server.reply(now, &Reply::Renewed, &[]);
        assert_eq!(theirs.try_receive::<Reply>().unwrap().message, Reply::Renewed);
        assert!(theirs.try_receive::<Reply>().is_err());
        // And what it says is heard under its new number.
        theirs.try_send(&Request::Found, &[]).unwrap();
        let mut ready = Vec::with_capacity(8);
        epoll::wait(&server.epoll, rustix::buffer::spare_capacity(&mut ready), None).unwrap();
        assert_eq!(ready.iter().map(|event| event.data.u64()).collect::<Vec<_>>(), [now]);
        assert_eq!(server.number_anew(before), None);
    }
}
