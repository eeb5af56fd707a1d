//! Whoever opens the control socket: his lifeline is heard from then on.

use crate::control::server::{LISTENER, Member, Peer, Server};
use crate::say::say;
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use silk_control::Lifeline;
use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};

/// Those that are taken in at once: whoever comes, again and again, does not keep the others from being heard.
const NEWCOMERS: usize = 64;

impl Server {
    /// Takes some in of those who have come. The rest is told of again.
    pub(crate) fn welcome(&mut self) {
        for _ in 0..NEWCOMERS {
            match accept_with(&self.socket, SocketFlags::CLOEXEC) {
                Ok(fd) => self.adopt(Lifeline::from_descriptor(fd), None),
                Err(Errno::MFILE | Errno::NFILE) if self.turn_away() => {}
                Err(_) => return,
            }
        }
    }

    /// No descriptor is left for who has come. He would wait, and the daemon turn in a circle: he gets the one that is kept for
    /// that, and is hung up on, so that he goes to Linux. Whether he was.
    fn turn_away(&mut self) -> bool {
        self.spare = None;
        let came = accept_with(&self.socket, SocketFlags::CLOEXEC);
        let is_away = came.is_ok();
        if let Ok(line) = came.map(Lifeline::from_descriptor) {
            say!(
                Error,
                "silkd: a program was turned away: no descriptor is left (raise LimitNOFILE, or `ulimit -n`)"
            );
            // It may have sent something already.
            line.end();
            self.closing.close(line.into_descriptor());
        }
        if !self.has_spare() {
            self.put_aside(LISTENER);
        }
        is_away
    }

    /// Whether there is a descriptor for that, again.
    pub(crate) fn has_spare(&mut self) -> bool {
        self.spare = self.spare.take().or_else(|| self.event.try_clone().ok());
        self.spare.is_some()
    }

    /// Hears the last of what a program has sent, a lifeline, from now on.
    pub(crate) fn adopt_last(&mut self, sent: &mut Vec<OwnedFd>, member: (u32, Member)) {
        if let Some(line) = sent.pop() {
            self.adopt(Lifeline::from_descriptor(line), Some(member));
        }
    }

    /// Hears a lifeline from now on. One that cannot be heard hangs up: who has the other end is gone.
    pub(crate) fn adopt(&mut self, line: Lifeline, member: Option<(u32, Member)>) {
        let number = self.next_peer;
        self.next_peer += 1;
        let is_heard = line.vouch().and_then(|()| self.watch(line.as_fd(), number)).is_ok();
        self.peers.insert(
            number,
            Peer { line, member, pid: None, user: None, owed: VecDeque::new(), sends_unasked: false },
        );
        if !is_heard {
            self.hang_up(number);
        }
    }
}
