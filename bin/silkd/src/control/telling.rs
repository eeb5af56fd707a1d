//! What the other ends of lifelines are told. The control thread serves all programs and waits for none: what one has no room for,
//! since it does not listen, is kept until it has, and until then nothing more is heard from it.

use crate::control::server::{Peer, Server};
use rustix::event::epoll::{self, EventFlags};
use silk_control::{Lifeline, Reply, WireError};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Answers that are kept beside those of the lifeline that was told last: a report of 100 000 paths, which is collected whole, is
/// some 2000. Where there are more, whoever else is owed the most is hung up on.
const KEPT: usize = 4096;
/// Who has had no room for an answer for so long is hung up on: nothing more is heard from it meanwhile, not even that it has the
/// other end no longer, which may lie in what it has sent.
const DEAF: Duration = Duration::from_secs(10);

/// Tells a lifeline something if there is room for it; whether there was. One that cannot be told is hung up on, since whoever asked would wait
/// for ever. (One that has hung up is heard to have.)
fn tell(line: &Lifeline, reply: &Reply, fds: &[BorrowedFd<'_>]) -> bool {
    match line.try_send(reply, fds) {
        Err(WireError::WouldBlock) => return false,
        Err(WireError::Io(_) | WireError::Malformed(_)) => line.end(),
        Ok(()) | Err(WireError::HungUp) => {}
    }
    true
}

impl Server {
    /// Tells a lifeline something, now or when it listens.
    pub(crate) fn reply(&mut self, number: u64, reply: &Reply, fds: &[BorrowedFd<'_>]) {
        let Some(peer) = self.peers.get_mut(&number) else { return };
        if peer.owed.is_empty() && tell(&peer.line, reply, fds) {
            return;
        }
        if !fds.is_empty() {
            // Who asked so much before it attached does not mean to hear the answer.
            return peer.line.end();
        }
        peer.owed.push_back(reply.clone());
        self.deaf.entry(number).or_insert_with(Instant::now);
        self.heed(number, EventFlags::OUT);
        let mut others: Vec<_> = self.peers.iter_mut().filter(|(other, _)| **other != number).collect();
        let kept: usize = others.iter().map(|(_, peer)| peer.owed.len()).sum();
        if kept > KEPT
            && let Some((_, deafest)) = others.iter_mut().max_by_key(|(_, peer)| peer.owed.len())
        {
            deafest.owed.clear();
            deafest.line.end();
        }
    }

    /// Tells a lifeline what was kept for it, as far as there is room. Whether nothing is left of that.
    pub(crate) fn tell_rest(&mut self, number: u64) -> bool {
        let Some(Peer { line, owed, .. }) = self.peers.get_mut(&number) else { return false };
        if owed.is_empty() {
            return true;
        }
        while let Some(reply) = owed.front() {
            match line.try_send(reply, &[]) {
                Ok(()) => {
                    owed.pop_front();
                    self.deaf.insert(number, Instant::now());
                }
                Err(WireError::WouldBlock) => return false,
                Err(_) => {
                    self.hang_up(number);
                    return false;
                }
            }
        }
        self.deaf.remove(&number);
        self.heed(number, EventFlags::IN);
        true
    }

    /// Hangs up on those who have not listened for long.
    pub(crate) fn let_go_of_the_deaf(&mut self, now: Instant) {
        let is_deaf = |(_, since): &(&u64, &Instant)| now.duration_since(**since) >= DEAF;
        let deaf: Vec<u64> = self.deaf.iter().filter(is_deaf).map(|(number, _)| *number).collect();
        for number in deaf {
            // Who is put aside may have listened since: nobody looks.
            self.tell_rest(number);
            if self.deaf.get(&number).is_some_and(|since| is_deaf(&(&number, since))) {
                self.hang_up(number);
            }
        }
    }

    /// What is to be done next of a lifeline: hear it, or tell it more.
    pub(crate) fn heed(&self, number: u64, what: EventFlags) {
        if let Some(peer) = self.peers.get(&number) {
            // It is watched already, so there is nothing that the kernel could lack.
            let _ = epoll::modify(&self.epoll, peer.line.as_fd(), epoll::EventData::new_u64(number), what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::server::tests::server;
    use silk_control::Refusal;

    /// Tells a lifeline more than there is room for.
    fn owe(server: &mut Server, number: u64) {
        while server.peers[&number].owed.len() < 3 {
            server.reply(number, &Reply::Done, &[]);
        }
    }

    #[test]
    fn who_was_put_aside_and_listens_is_not_taken_for_deaf_and_who_does_not_is() {
        let folder = tempfile::tempdir().unwrap();
        let mut server = server(folder.path());
        let (number, theirs) = server.adopt_peer();
        owe(&mut server, number);
        server.put_aside(number);
        let later = Instant::now() + DEAF;
        while theirs.try_receive::<Reply>().is_ok() {}
        server.let_go_of_the_deaf(later);
        assert_eq!(server.peers.get(&number).map(|peer| peer.owed.len()), Some(0), "it was told the rest");
        assert_eq!((0..3).filter(|_| theirs.try_receive::<Reply>().is_ok()).count(), 3);

        owe(&mut server, number);
        server.let_go_of_the_deaf(Instant::now());
        assert!(server.peers.contains_key(&number));
        server.let_go_of_the_deaf(Instant::now() + DEAF);
        assert!(!server.peers.contains_key(&number));
    }

    #[test]
    fn who_cannot_be_told_is_hung_up_on_and_who_has_no_room_waits() {
        let (ours, theirs) = Lifeline::pair().unwrap();
        let told = (0..1_000_000).take_while(|_| tell(&ours, &Reply::Done, &[])).count();
        (0..told).for_each(|_| assert_eq!(theirs.receive::<Reply>().unwrap().message, Reply::Done));
        // Longer than all that may wait for who listens.
        let too_long = Reply::Refused(Refusal { errno: 1, why: "x".repeat(16 << 20) });
        assert!(tell(&ours, &too_long, &[]));
        assert!(matches!(theirs.receive::<Reply>(), Err(WireError::HungUp)));
    }
}
