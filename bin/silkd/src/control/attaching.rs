//! Families and their processes at the control thread: who joins, forks, waits in `accept`,
//! watches with event sets, and what happens when a lifeline hangs up.

use crate::between::answer::Answer;
use crate::between::command::{Command, Orders};
use crate::between::obeyed::Obeyed;
use crate::between::thread_end::ThreadEnd;
use crate::between::told::Told;
use crate::classes::algorithm;
use crate::control::family::{Family, Process, State};
use crate::control::server::{Member, Server};
use crate::control::token::random_token;
use crate::say::say;
use crate::settings::Settings;
use crate::threads::program_thread::ProgramThread;
use crate::threads::thread_number;
use rustix::event::epoll;
use silk_control::{Refusal, Reply};
use silk_stream::{Arena, Sizes, Usual};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// Families that there may be, with those that are gone and that executors have not let go of. Each has an arena
/// in the daemon's addresses, and every executor looks after it.
const FAMILIES: usize = 8192;
/// Of these, such as one user may have that is not root.
const OF_A_USER: usize = 512;

impl Server {
    /// Whether a program of this user may have a family of its own.
    fn may_found(&self, user: Option<u32>, program: &str) -> Result<(), Refusal> {
        let leaving = || self.departed.values().filter(|departed| departed.is_unanswered());
        let of_him = || {
            let are_there = self.families.values().filter(|family| family.user == user).count();
            are_there + leaving().filter(|departed| departed.user() == user).count()
        };
        let (too_many, whose) = if self.families.len() + leaving().count() >= FAMILIES {
            (FAMILIES, "in all")
        } else if user != Some(0) && of_him() >= OF_A_USER {
            (OF_A_USER, "of this user")
        } else {
            return Ok(());
        };
        let why = format!(
            "{program} is one program too many: {too_many} run already {whose}; those that one starts count as one with it"
        );
        Err(Refusal { errno: libc::EAGAIN, why })
    }

    pub(crate) fn found_family(
        &mut self,
        program: String,
        begin: impl FnOnce(&mut Family),
    ) -> Result<u32, Refusal> {
        let sizes = Sizes {
            rings: self.settings.config.memory.arena.get() as usize,
            domains: self.orders.len() as u32,
        };
        if self.budget.is_over() {
            let why = format!(
                "{program} is one program too many: the rings of those that run use {} MB, and [memory] total is {} MB",
                self.budget.used() >> 20,
                self.budget.most() >> 20,
            );
            return Err(Refusal { errno: libc::ENOMEM, why });
        }
        let arena = Arena::create_within(sizes, &self.budget)
            .map_err(|e| Refusal { errno: libc::ENOMEM, why: format!("no arena for {program}: {e}") })?;
        let doorbells =
            self.orders.iter().map(Orders::doorbell).collect::<io::Result<Arc<_>>>().map_err(|e| {
                let errno = e.raw_os_error().unwrap_or(libc::EMFILE);
                Refusal { errno, why: format!("{program} has nothing to wake an executor by: {e}") }
            })?;
        arena.heed_budget();
        // One that is old may be there still when the numbers begin again.
        let is_taken = |index| self.families.contains_key(&index) || self.departed.contains_key(&index);
        while is_taken(self.next_family) {
            self.next_family = self.next_family.wrapping_add(1);
        }
        let index = self.next_family;
        self.next_family = index.wrapping_add(1);
        show_usual(&self.settings, &arena.header().usual);
        arena.header().ways.store(self.settings.ways.word(), SeqCst);
        let mut family = Family::new(index, random_token(), arena.clone(), program);
        family.doorbells = doorbells;
        begin(&mut family);
        let priorities = family.priorities.clone();
        self.families.insert(index, family);
        for orders in &self.orders {
            let _ = orders.give(Command::Family {
                family: index,
                arena: arena.clone(),
                priorities: priorities.clone(),
            });
        }
        Ok(index)
    }

    /// A lifeline keeps one family, in one way: it could let go of no other when it hangs up.
    fn is_nobodys(&self, number: u64) -> Result<(), Refusal> {
        if self.peers.get(&number).is_none_or(|p| p.member.is_some()) {
            return Err(Refusal { errno: libc::EALREADY, why: "this process is attached already".into() });
        }
        Ok(())
    }

    /// A family for a program to be started.
    pub(crate) fn found(&mut self, number: u64) -> Result<Reply, Refusal> {
        self.is_nobodys(number)?;
        let user = self.peers.get(&number).and_then(|peer| peer.user);
        self.may_found(user, "silk run")?;
        let index = self.found_family("silk run".into(), |family| {
            (family.founders, family.user) = (1, user);
        })?;
        self.set_member(number, index, Member::Founder);
        Ok(Reply::Family { family: self.families[&index].token })
    }

    pub(crate) fn attach(&mut self, number: u64, version: &str, token: Option<u64>, program: String) {
        let reply = self.try_attach(number, version, token, program);
        match reply {
            Err(refusal) => self.reply(number, &Reply::Refused(refusal), &[]),
            Ok((index, process)) => {
                let family = &self.families[&index];
                let attached =
                    Reply::Attached { family: family.token, process, domains: self.orders.len() as u32 };
                let arena = family.arena.clone();
                let doorbells = family.doorbells.clone();
                let mut fds = vec![arena.file()];
                fds.extend(doorbells.iter().map(AsFd::as_fd));
                self.reply(number, &attached, &fds);
            }
        }
    }

    pub(crate) fn try_attach(
        &mut self,
        number: u64,
        version: &str,
        token: Option<u64>,
        program: String,
    ) -> Result<(u32, u32), Refusal> {
        let ours = env!("CARGO_PKG_VERSION");
        if version != ours {
            let why = format!("libsilk is version {version}, silkd is {ours}: restart the older one");
            return Err(Refusal { errno: libc::EPROTO, why });
        }
        self.is_nobodys(number)?;
        let known = token.and_then(|t| self.families.values().find(|f| f.token == t).map(|f| f.index));
        let index = match known {
            Some(index) => index,
            None => {
                let user = self.peers.get(&number).and_then(|peer| peer.user);
                self.may_found(user, &program)?;
                self.found_family(program.clone(), |family| family.user = user)?
            }
        };
        let pid = self.peers.get(&number).and_then(|p| p.pid);
        let Some(family) = self.families.get_mut(&index) else {
            return Err(Refusal { errno: libc::ESRCH, why: "that family is gone".into() });
        };
        if family.program == "silk run" {
            family.program = program;
        }
        if !family.has_room() {
            return Err(Refusal { errno: libc::EAGAIN, why: "this program has too many processes".into() });
        }
        let process = family.join(pid);
        self.set_member(number, index, Member::Process(process));
        Ok((index, process))
    }

    /// A record for a thread of a process, which answers to it when every executor knows the thread.
    pub(crate) fn thread(
        &mut self,
        number: u64,
        (family, process): (u32, u32),
        tid: u32,
        answer: &Arc<Answer>,
    ) -> Result<Reply, Refusal> {
        let pid = self.peers.get(&number).and_then(|p| p.pid);
        let found = pid.and_then(|pid| Some((pid, thread_number::find(pid, tid)?)));
        let held = found.map(|(pid, found)| Ok((pid, ProgramThread::of(found)?))).transpose();
        let held = held.map_err(|error: io::Error| Refusal {
            errno: libc::EAGAIN,
            why: format!("thread {tid} cannot be told from others: {error}"),
        })?;
        // One that ended before it was held may have been replaced by another process's.
        let Some((_, held)) = held.filter(|(pid, held)| thread_number::is_of(*pid, held.tid())) else {
            let why = format!("thread {tid} is not a thread of the process that asks");
            return Err(Refusal { errno: libc::EPERM, why });
        };
        let too_many =
            || Refusal { errno: libc::EAGAIN, why: "this program has too many threads waiting".into() };
        let known = self.families.get_mut(&family).ok_or_else(too_many)?;
        let thread = known.take_thread(process).ok_or_else(too_many)?;
        let held = Arc::new(held);
        self.watched.add(&held, thread, known.priorities.clone(), known.arena.clone());
        self.set_reserves(family);
        self.tell_all(|| Command::Thread {
            family,
            thread,
            end: ThreadEnd { process, thread: held.clone() },
            answer: answer.clone(),
        });
        Ok(Reply::Thread { thread })
    }

    /// A number for an event set of a process, which answers to it when every executor knows what to write.
    pub(crate) fn bell(
        &mut self,
        (family, process): (u32, u32),
        event: Option<Arc<OwnedFd>>,
        answer: &Arc<Answer>,
    ) -> Result<Reply, Refusal> {
        let event = event
            .ok_or_else(|| Refusal { errno: libc::EINVAL, why: "an event set needs its eventfd".into() })?;
        let known = self.families.get_mut(&family).filter(|known| known.bells_ring);
        let bell = known.and_then(|known| known.take_bell(process));
        let bell = bell.ok_or_else(|| Refusal {
            errno: libc::ENOSPC,
            why: "this program has too many event sets".into(),
        })?;
        self.tell_all(|| Command::Bell { family, bell, event: event.clone(), answer: answer.clone() });
        Ok(Reply::Bell { bell })
    }

    /// A program let an executor wait that rang one of its event sets: none of them is rung any more.
    pub(crate) fn ring_no_more(&mut self, family: u32) {
        let Some(known) = self.families.get_mut(&family) else { return };
        if std::mem::replace(&mut known.bells_ring, false) {
            say!(
                Error,
                "silkd: {}: it has made an eventfd of libsilk's block, and filled it: its event sets are told of nothing any more",
                known.program
            );
        }
        let bells: Vec<u32> = known.processes.values().flat_map(|process| process.bells.clone()).collect();
        let quiet = |bell| self.tell_all(|| Command::BellGone { family, bell, obeyed: None });
        bells.into_iter().for_each(quiet);
    }

    /// A thread has ended.
    pub(crate) fn thread_gone(&self, family: u32, thread: u32) {
        let free = Told::ThreadFree { family, thread };
        let obeyed = Obeyed::telling(free, &self.report_events, &self.event);
        self.tell_all(|| Command::ThreadGone { family, thread, obeyed: obeyed.clone() });
    }

    /// An event set is gone. Its number is another's when no executor holds its eventfd any more: so there
    /// are no more of these than of numbers, however fast a program begins and ends event sets.
    pub(crate) fn bell_gone(&self, family: u32, bell: u32) {
        let free = Told::BellFree { family, bell };
        let obeyed = Obeyed::telling(free, &self.report_events, &self.event);
        self.tell_all(|| Command::BellGone { family, bell, obeyed: Some(obeyed.clone()) });
    }

    /// The threads and event sets of a process are gone.
    pub(crate) fn let_go(&self, family: u32, gone: &Process) {
        gone.threads.iter().for_each(|thread| self.thread_gone(family, *thread));
        gone.bells.iter().for_each(|bell| self.bell_gone(family, *bell));
    }

    /// How many waiters are kept for the higher classes depends on how many there are.
    pub(crate) fn set_reserves(&self, family: u32) {
        let Some(known) = self.families.get(&family) else { return };
        let reserve = self.settings.reserve(known.thread_count());
        for slot in known.sockets.iter().filter(|(_, s)| s.state == State::Listening).map(|(slot, _)| *slot) {
            let number = known.arena.slot(slot).map(|record| record.listener.load(SeqCst));
            if let Some(listener) = number.and_then(|n| known.arena.listener(n)) {
                listener.reserve.store(reserve, SeqCst);
            }
        }
    }

    /// A lifeline hung up: whoever held it is gone.
    pub(crate) fn hang_up(&mut self, number: u64) {
        let Some(peer) = self.peers.remove(&number) else { return };
        self.deaf.remove(&number);
        self.aside.remove(&number);
        let _ = epoll::delete(&self.epoll, peer.line.as_fd());
        // With it goes what was sent and nobody has heard.
        peer.line.end();
        self.closing.close(peer.line.into_descriptor());
        let Some((index, member)) = peer.member else { return };
        self.for_family(index, |server| server.lose(index, member));
        if self.families.get(&index).is_some_and(Family::is_deserted) {
            self.take_leave(index);
            self.tell_all(|| Command::FamilyGone { family: index });
        }
    }

    /// A member of a family is gone.
    fn lose(&mut self, index: u32, member: Member) {
        let Some(family) = self.families.get_mut(&index) else { return };
        match member {
            Member::Founder => family.founders -= 1,
            Member::Process(process) => {
                let (last, gone) = family.leave(process);
                self.let_go(index, &gone);
                // A socket that was on its way is closed in order as on Linux, and no executor knows who held it.
                let is_passed = gone.ticket.is_some();
                let died = !is_passed && !gone.executes;
                for (slot, socket) in last {
                    self.close(index, slot, &socket, died);
                }
                if !is_passed {
                    self.tell_all(|| Command::ProcessGone { family: index, process, died });
                }
            }
        }
    }
}

/// Lets programs see what their sockets have that wish nothing.
fn show_usual(settings: &Settings, usual: &Usual) {
    let tcp = &settings.config.tcp;
    let seconds = |time: Duration| u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
    usual.congestion.store(algorithm(tcp.congestion).number().into(), SeqCst);
    usual.syn_retries.store(tcp.syn_retries.into(), SeqCst);
    usual.linger.store(seconds(tcp.fin_wait), SeqCst);
    usual.keep_idle.store(seconds(tcp.keepalive.idle), SeqCst);
    usual.keep_interval.store(seconds(tcp.keepalive.interval), SeqCst);
    usual.keep_count.store(tcp.keepalive.probes.into(), SeqCst);
    usual.mtu.store(settings.mtu.into(), SeqCst);
    usual.largest_ring.store(settings.config.memory.largest_ring.get() as u32, SeqCst);
    let shared = usual.interfaces.iter().zip(&settings.interfaces);
    shared.for_each(|(to, interface)| to.store(*interface, SeqCst));
    show_networks(settings, usual);
}

/// The same of what may become another while they run.
pub(crate) fn show_networks(settings: &Settings, usual: &Usual) {
    let everyone = settings.broadcasts().map(u32::from).chain(std::iter::repeat(0));
    usual.broadcasts.iter().zip(everyone).for_each(|(to, everyone)| to.store(everyone, SeqCst));
    let first = settings.addresses.iter().find_map(|address| match address {
        IpAddr::V4(address) => Some(u32::from(*address)),
        IpAddr::V6(_) => None,
    });
    usual.address.store(first.unwrap_or(0), SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::server::tests::{server, with_executor};
    use silk_stream::{BELLS, wake};

    #[test]
    fn a_user_has_only_so_many_families_and_others_still_find_room() {
        let folder = tempfile::tempdir().unwrap();
        let mut server = server(folder.path());
        let arena = Arena::create(Sizes { rings: 4 << 20, domains: 1 }).unwrap();
        for index in 0..OF_A_USER as u32 {
            let mut family = Family::new(index, random_token(), arena.clone(), "his".into());
            family.user = Some(1000);
            assert!(server.may_found(Some(1000), "his").is_ok(), "{index}");
            server.families.insert(index, family);
        }
        let refused = server.may_found(Some(1000), "his").unwrap_err();
        assert_eq!(refused.errno, libc::EAGAIN);
        assert!(refused.why.contains("512 run already of this user"), "{}", refused.why);
        assert!(
            server.may_found(Some(1001), "another's").is_ok() && server.may_found(Some(0), "root's").is_ok()
        );
        server.families.values_mut().for_each(|family| family.user = Some(0));
        assert!(server.may_found(Some(0), "root's").is_ok());
    }

    #[test]
    fn a_family_has_no_more_eventfds_with_executors_that_do_not_obey_than_event_sets() {
        let folder = tempfile::tempdir().unwrap();
        let (mut server, mut executor) = with_executor(folder.path());
        let arena = Arena::create(Sizes { rings: 4 << 20, domains: 1 }).unwrap();
        let mut family = Family::new(0, random_token(), arena, "hasty".into());
        let process = family.join(None);
        server.families.insert(0, family);
        let event = Arc::new(wake::event().unwrap());
        let begin = |server: &mut Server| {
            let answer = Answer::to(0, &server.report_events, &server.event);
            let begun = server.bell((0, process), Some(event.clone()), &answer);
            begun.map_err(|refusal| refusal.errno)
        };
        for _ in 0..BELLS {
            let Ok(Reply::Bell { bell }) = begin(&mut server) else { panic!("there are more") };
            assert!(server.families.get_mut(&0).unwrap().end_bell(process, bell));
            server.bell_gone(0, bell);
        }
        assert_eq!(begin(&mut server), Err(libc::ENOSPC));
        assert_eq!(Arc::strong_count(&event), 1 + BELLS as usize);
        while executor.receive().is_ok() {}
        assert_eq!(Arc::strong_count(&event), 1);
        server.take_events();
        assert!(begin(&mut server).is_ok());
    }

    #[test]
    fn a_family_that_is_gone_counts_until_the_executors_have_let_go_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let (mut server, _executor) = with_executor(folder.path());
        let arena = Arena::create(Sizes { rings: 4 << 20, domains: 1 }).unwrap();
        for index in 0..OF_A_USER as u32 {
            let mut family = Family::new(index, random_token(), arena.clone(), "his".into());
            family.user = Some(1000);
            server.families.insert(index, family);
            server.take_leave(index);
        }
        assert!(server.families.is_empty());
        assert!(server.may_found(Some(1000), "his").is_err() && server.may_found(Some(1001), "hers").is_ok());
        server.family_ended(7, Vec::new());
        assert!(server.may_found(Some(1000), "his").is_ok());
        (0..OF_A_USER as u32).for_each(|index| server.family_ended(index, Vec::new()));
        assert!(server.departed.is_empty());
    }
}
