//! A thread that waited in `accept` has ended: with its process, by itself, or because its process has become another by
//! `exec`. The connections it was called for are another's, and so is one that it was handed and has not taken, which on
//! Linux would still lie in the listening socket's queue.

use crate::between::listener_hold::ListenerHold;
use crate::between::names::{FamilyIndex, SocketName};
use crate::domain::engine::Engine;
use silk_instant::Instant;
use silk_path::Endpoint;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

impl Engine {
    /// A thread of a family has ended.
    pub(crate) fn thread_gone(&mut self, family: FamilyIndex, number: u32, now: Instant) {
        let Some(known) = self.families.get_mut(&family) else { return };
        known.set_thread(number, None);
        if let Some(name) = self.take_back(family, number) {
            match self.listens_for(name) {
                Some(hold) => {
                    self.accepted.push((name, hold));
                    self.bring_accepted(now);
                }
                None => self.close(name, None, true, now),
            }
        }
        let holds = self.listeners.values().flatten().filter(|hold| hold.name.family == family);
        holds.for_each(|hold| self.call_acceptor(hold));
    }

    /// The connection of this domain that a thread was handed and has not taken. Only its own domain takes it back.
    fn take_back(&mut self, family: FamilyIndex, number: u32) -> Option<SocketName> {
        let handed = &self.families.get(&family)?.arena.thread(number)?.handed;
        let word = handed.load(SeqCst);
        let name = SocketName { family, slot: word.checked_sub(1)? };
        let is_ours = self.sockets.get(name).is_some_and(|socket| !socket.named && !socket.closed);
        (is_ours && handed.compare_exchange(word, 0, SeqCst, SeqCst).is_ok()).then_some(name)
    }

    /// A socket of the family that listens where a connection was accepted.
    fn listens_for(&self, name: SocketName) -> Option<Arc<ListenerHold>> {
        let local = |id| self.core.paths.path(id)?.state.attrs.local();
        let at = local(self.sockets.get(name)?.path?)?;
        let mut holds = self.listeners.values().flatten().filter(|hold| hold.name.family == name.family);
        holds.find(|hold| hold.ends.iter().any(|end| includes(end, &at))).cloned()
    }
}

/// Whether what listens at `end` gets the connections of `at`.
fn includes(end: &Endpoint, at: &Endpoint) -> bool {
    let everywhere = end.ip().is_unspecified() && end.is_v6() == at.is_v6();
    end.port() == at.port() && (everywhere || end.ip() == at.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_listens_everywhere_gets_the_connections_of_its_ip_and_port() {
        let endpoint = |text: &str| Endpoint::from(text.parse::<std::net::SocketAddr>().unwrap());
        let is_in = |end, at| includes(&endpoint(end), &endpoint(at));
        assert!(is_in("0.0.0.0:80", "10.0.0.1:80") && is_in("10.0.0.1:80", "10.0.0.1:80"));
        assert!(is_in("[::]:80", "[fd00::1]:80") && !is_in("[::]:80", "10.0.0.1:80"));
        assert!(!is_in("0.0.0.0:80", "10.0.0.1:81") && !is_in("10.0.0.2:80", "10.0.0.1:80"));
    }
}
