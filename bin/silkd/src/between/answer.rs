//! An answer that waits for executors ([`Obeyed`]): the last to obey sends the control thread to give it. So a program
//! hears that it listens, or that a datagram socket has its address, when every executor knows. An answer to a program
//! that has ended is nobody's.

use crate::between::obeyed::Obeyed;
use crate::between::told::Told;
use silk_control::Reply;
use silk_stream::mail::Sender;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// What a lifeline of the control thread's is to be told, once every order that holds it was obeyed.
#[derive(Debug)]
pub struct Answer {
    /// The lifeline.
    peer: u64,
    /// Silent until the control thread has the words.
    obeyed: Obeyed,
}

impl Answer {
    /// An answer to `peer`, which goes to the control thread by `events` and wakes it by `control`.
    pub fn to(peer: u64, events: &Sender<Told>, control: &Arc<OwnedFd>) -> Arc<Self> {
        Arc::new(Self { peer, obeyed: Obeyed::silent(events, control) })
    }

    /// Leaves the words to whoever obeys last; back, where nobody had to obey.
    pub fn leave(self: Arc<Self>, reply: Reply) -> Option<Reply> {
        // Orders are given by the caller alone, so nobody can come to hold it meanwhile.
        if Arc::strong_count(&self) == 1 {
            return Some(reply);
        }
        self.obeyed.tell(Told::Answered { peer: self.peer, reply });
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};
    use silk_stream::mail::{Receiver, mail};

    fn answer() -> (Arc<Answer>, Receiver<Told>) {
        let (events, heard) = mail();
        let control = Arc::new(eventfd(0, EventfdFlags::NONBLOCK).unwrap());
        (Answer::to(7, &events, &control), heard)
    }

    #[test]
    fn the_last_of_several_to_obey_gives_it() {
        let (answer, mut heard) = answer();
        let orders = [answer.clone(), answer.clone()];
        assert_eq!(answer.leave(Reply::Done), None);
        let [first, last] = orders;
        drop(first);
        assert!(heard.receive().is_err());
        drop(last);
        assert!(matches!(heard.receive(), Ok(Told::Answered { peer: 7, reply: Reply::Done })));
    }

    #[test]
    fn what_nobody_has_to_obey_is_answered_at_once() {
        let (answer, mut heard) = answer();
        assert_eq!(answer.leave(Reply::Done), Some(Reply::Done));
        assert!(heard.receive().is_err());
    }

    #[test]
    fn orders_of_a_refused_request_say_nothing() {
        let (answer, mut heard) = answer();
        let order = answer.clone();
        drop((answer, order));
        assert!(heard.receive().is_err());
    }
}
