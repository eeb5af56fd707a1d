//! While too many descriptors wait to be closed, who brings more is not heard if nobody knows him yet, or if he has sent some that
//! nobody asked for. The thread that closes them may have to wait at each for a moment, and a program sends thousands in a
//! millisecond: they would be all that the daemon can have.

use crate::control::server::{LISTENER, Server};
use rustix::event::epoll;
use silk_stream::wake;
use std::os::fd::{AsFd, BorrowedFd};

impl Server {
    /// Whether a lifeline is not to be heard for now.
    pub(crate) fn is_to_wait(&mut self, number: u64) -> bool {
        let is_to_wait = self.closing.is_crowded()
            && self.peers.get(&number).is_some_and(|peer| {
                (peer.sends_unasked || peer.member.is_none()) && peer.line.brings_descriptors()
            });
        if is_to_wait {
            self.put_aside(number);
        }
        is_to_wait
    }

    /// This is not looked at until there is room.
    pub(crate) fn put_aside(&mut self, number: u64) {
        if let Some(fd) = self.watched_as(number) {
            let _ = epoll::delete(&self.epoll, fd);
            self.aside.insert(number);
            // It may be over just now.
            if !self.closing.calls_later() {
                wake::notify(self.event.as_fd());
            }
        }
    }

    /// Looks again at what was put aside, if there is room now.
    pub(crate) fn hear_again(&mut self) {
        if self.aside.is_empty() || self.closing.is_crowded() || !self.has_spare() {
            return;
        }
        std::mem::take(&mut self.aside).into_iter().for_each(|number| self.look_again_at(number));
    }

    /// Looks at this from now on; where the kernel has no room for that, later.
    pub(crate) fn look_again_at(&mut self, number: u64) {
        let Some(fd) = self.watched_as(number) else { return };
        if self.watch(fd, number).is_err() {
            self.aside.insert(number);
        } else if self.peers.get(&number).is_some_and(|peer| !peer.owed.is_empty()) {
            self.heed(number, epoll::EventFlags::OUT);
        }
    }

    fn watched_as(&self, number: u64) -> Option<BorrowedFd<'_>> {
        if number == LISTENER {
            return Some(self.socket.as_fd());
        }
        self.peers.get(&number).map(|peer| peer.line.as_fd())
    }
}
