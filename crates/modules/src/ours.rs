//! Our addresses on a link of our own. Each is asked for at first: whoever else has it objects, and we give it up (RFC 4862 §5.4,
//! RFC 5227 §2.1). It is used meanwhile all the same, with care: it is *optimistic* (RFC 4429 §1.3), so that nobody waits
//! for a program's first packets. Afterwards it is *settled*: it may be announced, and is defended.

use alloc::vec::Vec;
use core::time::Duration;
use silk_instant::Instant;

/// How long an objection is waited for. Of RFC 4862 it is the usual RetransTimer (RFC 4861 §10); RFC 5227 §1.1 waits for
/// five seconds and more, for hosts that do not speak before.
const PROBATION: Duration = Duration::from_secs(1);
/// Between two announcements (ANNOUNCE_INTERVAL of RFC 5227 §1.1).
const ANNOUNCEMENTS: Duration = Duration::from_secs(2);

/// How often an address is asked for, and announced.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Questions, within [`PROBATION`].
    pub questions: u32,
    /// Announcements, from its end on.
    pub announcements: u32,
}

/// What is to be said of an address now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Say<A> {
    /// Whether somebody else has it.
    Ask(A),
    /// That it is ours.
    Announce(A),
}

/// Our addresses.
#[derive(Debug)]
pub struct Ours<A> {
    manner: Manner,
    addresses: Vec<Own<A>>,
}

#[derive(Clone, Copy, Debug)]
struct Own<A> {
    address: A,
    /// How often something was said of it: questions, then announcements.
    said: u32,
    /// When the next is due; past the last question, when it is settled.
    next: Instant,
}

impl<A: Copy + PartialEq> Ours<A> {
    /// These, of which nobody has been asked for.
    pub fn new(addresses: &[A], manner: Manner) -> Self {
        let mut ours = Self { manner, addresses: Vec::new() };
        ours.become_these(addresses);
        ours
    }

    /// They are these from now on; those that are new have not been asked for.
    pub fn become_these(&mut self, addresses: &[A]) {
        self.addresses.retain(|own| addresses.contains(&own.address));
        for address in addresses {
            if !self.contains(*address) {
                self.addresses.push(Own { address: *address, said: 0, next: Instant::default() });
            }
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = A> + '_ {
        self.addresses.iter().map(|own| own.address)
    }

    /// Whether it is one of them.
    pub fn contains(&self, address: A) -> bool {
        self.iter().any(|own| own == address)
    }

    /// Somebody else has it.
    pub fn give_up(&mut self, address: A) {
        self.addresses.retain(|own| own.address != address);
    }

    /// Those that may no longer be objected to.
    pub fn settled(&self, now: Instant) -> impl Iterator<Item = A> + '_ {
        let questions = self.manner.questions;
        let is_settled =
            move |own: &&Own<A>| own.said > questions || own.said == questions && own.next <= now;
        self.addresses.iter().filter(is_settled).map(|own| own.address)
    }

    /// Whether it is one of those.
    pub fn is_settled(&self, now: Instant, address: A) -> bool {
        self.settled(now).any(|settled| settled == address)
    }

    /// What is to be said next, if something is due.
    pub fn say(&mut self, now: Instant) -> Option<Say<A>> {
        let Manner { questions, announcements } = self.manner;
        let is_due = |own: &&mut Own<A>| own.next <= now && own.said < questions + announcements;
        let own = self.addresses.iter_mut().find(is_due)?;
        own.said += 1;
        let asks = own.said <= questions;
        own.next = now + if asks { PROBATION / questions } else { ANNOUNCEMENTS };
        Some(if asks { Say::Ask(own.address) } else { Say::Announce(own.address) })
    }

    /// When there is more to say, or one more is settled.
    pub fn deadline(&self, now: Instant) -> Instant {
        let ends = self.addresses.iter().map(|own| own.next).filter(|next| *next > now);
        ends.min().unwrap_or(Instant::FAR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// What is said at each moment at which something is due, ms, and whether the address is settled then.
    fn said(ours: &mut Ours<u8>) -> Vec<(u64, Vec<Say<u8>>, bool)> {
        let (start, mut now, mut all) = (Instant::default(), Instant::default(), Vec::new());
        while now < Instant::FAR {
            let say = core::iter::from_fn(|| ours.say(now)).collect();
            all.push((now.since(start).as_millis() as u64, say, ours.is_settled(now, 1)));
            now = ours.deadline(now);
        }
        all
    }

    #[test]
    fn an_address_is_asked_for_then_settled_and_announced() {
        let mut ours = Ours::new(&[1], Manner { questions: 1, announcements: 0 });
        assert_eq!(said(&mut ours), [(0, vec![Say::Ask(1)], false), (1000, vec![], true)]);
        let mut ours = Ours::new(&[1], Manner { questions: 4, announcements: 2 });
        let asked = [0, 250, 500, 750].map(|at| (at, vec![Say::Ask(1)], false));
        let announced = [1000, 3000].map(|at| (at, vec![Say::Announce(1)], true));
        let over = (5000, vec![], true);
        assert_eq!(said(&mut ours), [&asked[..], &announced, &[over]].concat());
    }

    #[test]
    fn those_that_are_new_are_asked_for_and_those_that_stay_are_not() {
        let mut ours = Ours::new(&[1], Manner { questions: 1, announcements: 0 });
        said(&mut ours);
        let now = Instant::default() + Duration::from_secs(9);
        ours.become_these(&[2, 1]);
        assert_eq!(ours.iter().collect::<Vec<_>>(), [1, 2]);
        assert_eq!([ours.say(now), ours.say(now)], [Some(Say::Ask(2)), None]);
        assert_eq!(ours.settled(now).collect::<Vec<_>>(), [1]);
        ours.give_up(1);
        assert!(!ours.contains(1) && ours.contains(2));
        assert_eq!(ours.deadline(now), now + PROBATION);
    }
}
