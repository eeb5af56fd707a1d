//! A connection that a program takes apart ends here and at once; the socket stays the program's.

use crate::between::names::SocketName;
use crate::between::told::Told;
use crate::domain::engine::Engine;
use silk_instant::Instant;
use silk_path::Bell;

impl Engine {
    /// The connection of a socket is reset and forgotten; the socket stays the program's.
    pub fn disconnect(&mut self, name: SocketName, now: Instant) {
        let open = self.sockets.find(name).filter(|socket| !socket.closed).and_then(|socket| socket.path);
        if let Some(id) = open {
            self.core.bell(id, Bell::Abort, now);
            self.settle(id, now);
        }
        if self.sockets.get(name).is_some_and(|socket| socket.closed) {
            // It is told of when it is gone.
            return;
        }
        // It may be one that was made ready: who has claimed it has not been heard yet, and its rings are others' from here on.
        self.spares.remove(&name);
        let cpu = self.end_serving(name);
        if let Some(socket) = self.sockets.remove(name) {
            self.core.paths.charge_past(socket.past_class, cpu);
            if let Some((end, family)) = socket.end.zip(self.families.get_mut(&name.family)) {
                end.return_larger(&mut family.pool);
            }
        }
        self.tell_control(Told::Disconnected { name });
    }
}
