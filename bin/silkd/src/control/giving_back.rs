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
        let left = self.families.values_mut().map(|family| family.pool.give_back(MANY)).max();
        if left != Some(Left::More) {
            self.rings_looked_at = now;
        }
    }
}
