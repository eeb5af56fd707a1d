//! Memory of the control thread's books that nobody needs goes back to Linux.

use crate::between::idle_memory::period;
use crate::control::server::Server;
use silk_stream::Left;

/// Rings that are given back at one time: no packet waits for the control thread.
const MANY: usize = 64;

impl Server {
    /// Gives back what is in the control thread's books, of which connections that programs open have their rings.
    pub(crate) fn give_back_now_and_then(&mut self, now: std::time::Instant) {
        if now < self.rings_looked_at + period(self.shortage_told) {
            return;
        }
        // One family after the other: the period of each is over when it has no more to give back.
        while let Some((family, known)) = self.families.range_mut(self.rings_from..).next() {
            if known.pool.give_back(MANY) == Left::More {
                self.rings_from = *family;
                return;
            }
            self.rings_from = family.saturating_add(1);
        }
        (self.rings_from, self.rings_looked_at) = (0, now);
    }
}
