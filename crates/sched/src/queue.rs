//! First-in first-out queues of members threaded through one array, so that a member can
//! be taken out of the middle and no queue ever allocates. A member is in at most one
//! queue of a [`Chain`] at a time.

use alloc::vec::Vec;

const NONE: u32 = u32::MAX;

/// A queue of a [`Chain`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    head: u32,
    tail: u32,
}

impl Queue {
    pub(crate) const EMPTY: Self = Self { head: NONE, tail: NONE };

    pub(crate) const fn is_empty(&self) -> bool {
        self.head == NONE
    }
}

#[derive(Clone, Copy, Debug)]
struct Link {
    before: u32,
    after: u32,
}

/// The links of all members.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    links: Vec<Link>,
}

impl Chain {
    /// Makes room for members below `len`.
    pub(crate) fn reach(&mut self, len: usize) {
        if self.links.len() < len {
            self.links.resize(len, Link { before: NONE, after: NONE });
        }
    }

    /// Puts `id` last. It must be in no queue.
    pub(crate) fn push(&mut self, queue: &mut Queue, id: u32) {
        self.links[id as usize] = Link { before: queue.tail, after: NONE };
        match queue.tail {
            NONE => queue.head = id,
            tail => self.links[tail as usize].after = id,
        }
        queue.tail = id;
    }

    /// Takes the first.
    pub(crate) fn pop(&mut self, queue: &mut Queue) -> Option<u32> {
        let id = queue.head;
        (id != NONE).then(|| {
            self.unlink(queue, id);
            id
        })
    }

    /// Takes out `id`, which must be in `queue`.
    pub(crate) fn unlink(&mut self, queue: &mut Queue, id: u32) {
        let Link { before, after } = self.links[id as usize];
        match before {
            NONE => queue.head = after,
            before => self.links[before as usize].after = after,
        }
        match after {
            NONE => queue.tail = before,
            after => self.links[after as usize].before = before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_leave_in_the_order_they_came_even_after_one_left_from_the_middle() {
        let mut chain = Chain::default();
        let mut queue = Queue::EMPTY;
        chain.reach(4);
        (0..4).for_each(|id| chain.push(&mut queue, id));
        chain.unlink(&mut queue, 2);
        let left: Vec<u32> = core::iter::from_fn(|| chain.pop(&mut queue)).collect();
        assert_eq!(left, [0, 1, 3]);
        assert!(queue.is_empty());
    }

    #[test]
    fn the_ends_can_be_taken_out() {
        let mut chain = Chain::default();
        let mut queue = Queue::EMPTY;
        chain.reach(3);
        (0..3).for_each(|id| chain.push(&mut queue, id));
        chain.unlink(&mut queue, 0);
        chain.unlink(&mut queue, 2);
        chain.push(&mut queue, 0);
        let left: Vec<u32> = core::iter::from_fn(|| chain.pop(&mut queue)).collect();
        assert_eq!(left, [1, 0]);
    }
}
