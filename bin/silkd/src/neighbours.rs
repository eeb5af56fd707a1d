//! Where Linux shares the interface, it finds the neighbours: the executors ask the control
//! thread, which asks the kernel ([`silk_device::netlink::Finder`]) and answers, then or when the
//! kernel knows.

use crate::command::Event as Told;
use crate::engine::Engine;
use silk_instant::Instant;
use silk_modules::arp::Arp;
use silk_modules::igmp::Igmp;
use silk_modules::mld::Mld;
use silk_modules::nd::Nd;
use std::net::IpAddr;

impl Engine {
    /// A path needs a neighbour's link address: the control thread has it found.
    pub(crate) fn resolve(&mut self, address: IpAddr) {
        self.tell_control(Told::Resolve(address));
    }

    /// A group is heard here from now on, or not: where the link is ours, it is told so.
    pub fn tell_of_group(&mut self, group: IpAddr, joined: bool, now: Instant) {
        match group {
            IpAddr::V4(group) => {
                if let Some(igmp) = self.paths.module_mut::<Igmp>() {
                    igmp.change(now, group, joined, &mut self.port);
                }
            }
            IpAddr::V6(group) => {
                if let Some(mld) = self.paths.module_mut::<Mld>() {
                    mld.change(now, group, joined, &mut self.port);
                }
            }
        }
        self.answer_requests(now);
    }

    /// A neighbour's link address, or that it has none.
    pub fn resolved(&mut self, address: IpAddr, link: Option<[u8; 6]>, now: Instant) {
        let link = link.map(silk_wire::MacAddr);
        match address {
            IpAddr::V4(address) => {
                if let Some(arp) = self.paths.module_mut::<Arp>() {
                    arp.learn(now, address, link, &mut self.port);
                }
            }
            IpAddr::V6(address) => {
                if let Some(nd) = self.paths.module_mut::<Nd>() {
                    nd.learn(now, address, link, &mut self.port);
                }
            }
        }
        self.answer_requests(now);
    }
}
