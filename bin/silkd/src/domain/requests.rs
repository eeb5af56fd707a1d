//! What paths have asked for during their run: what they may not do themselves, as it changes others or the tables.

use crate::between::reported::Reported;
use crate::between::told::Told;
use crate::domain::engine::Engine;
use silk_instant::Instant;
use silk_path::Request;

impl Engine {
    /// Does what paths have asked for during their run.
    pub(crate) fn answer_requests(&mut self, now: Instant) {
        while !self.core.port.requests.is_empty() {
            let mut requests = std::mem::take(&mut self.core.port.requests);
            for request in requests.drain(..) {
                self.answer_one(request, now);
            }
            // Keeps the allocation, and whatever the answers have asked for in turn.
            if self.core.port.requests.is_empty() {
                self.core.port.requests = requests;
            }
        }
    }

    fn answer_one(&mut self, request: Request, now: Instant) {
        match request {
            Request::Create { top, attrs, by, service } => self.accept((top, attrs), by, service, now),
            Request::Destroy(id) => self.destroy(id, now),
            Request::Resolve { device, address } => self.resolve(device, address),
            Request::Wake(id) => {
                self.core.report(id, silk_path::Report::Resolved, now);
                self.conclude(id, now);
            }
            Request::Report { udp, local, remote, report, quoted } => {
                self.reported(udp, Reported { local, remote, report, quoted, to_lane: false }, now);
            }
            Request::Arrived { device, mut frame, checksum } => {
                self.reassembled(&mut frame, device, checksum, now);
            }
            Request::Routers(told) => self.tell_control(Told::Routers(told)),
            Request::Duplicate { address, station } => {
                self.tell_control(Told::Duplicate { address, station });
            }
            Request::Claimed { address, station } => {
                self.tell_control(Told::Claimed { address, station });
            }
            Request::RouterLost(router) => self.lose_router(router),
            // The others hear of it, where it is believed here.
            Request::Redirected { router, destination, hop, link } => {
                if self.redirect(router, destination, hop, now) {
                    self.redirected(hop, link, now);
                    self.tell_control(Told::Redirected { router, destination, hop });
                }
            }
        }
    }
}
