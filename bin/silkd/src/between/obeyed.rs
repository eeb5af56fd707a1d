//! Orders that the control thread waits for without waiting: each carries a share of this, whoever has obeyed lets go of
//! it, and the last to do so tells the control thread. An executor that ends lets go with its orders.

use crate::between::told::Told;
use silk_stream::mail::Sender;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, OnceLock};

/// Tells the control thread something once every order that holds it was obeyed.
#[derive(Debug)]
pub struct Obeyed {
    /// What; nothing, as long as nobody has said.
    event: OnceLock<Told>,
    events: Sender<Told>,
    control: Arc<OwnedFd>,
}

impl Obeyed {
    /// Tells nothing so far: what is told goes by `events`, and `control` wakes the control thread.
    pub fn silent(events: &Sender<Told>, control: &Arc<OwnedFd>) -> Self {
        Self { event: OnceLock::new(), events: events.clone(), control: control.clone() }
    }

    /// Tells `event`, as [`Obeyed::silent`].
    pub fn telling(event: Told, events: &Sender<Told>, control: &Arc<OwnedFd>) -> Arc<Self> {
        let obeyed = Self::silent(events, control);
        obeyed.tell(event);
        Arc::new(obeyed)
    }

    /// That is what it tells; the first time counts.
    pub fn tell(&self, event: Told) {
        let _ = self.event.set(event);
    }
}

impl Drop for Obeyed {
    fn drop(&mut self) {
        if let Some(event) = self.event.take() {
            // The control thread may be gone at the end of the daemon.
            let _ = self.events.send(event);
            silk_stream::wake::notify(self.control.as_fd());
        }
    }
}
