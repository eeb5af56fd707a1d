//! Where Linux shares the interface, it finds the neighbours: the executors ask the control
//! thread, which asks the kernel ([`silk_device::netlink::Finder`]) and answers, then or when the
//! kernel knows.

use crate::between::told::Told;
use crate::domain::engine::Engine;
use silk_instant::Instant;
use silk_modules::filter::Filter;
use silk_modules::igmp::Igmp;
use silk_modules::mld::Mld;
use std::net::IpAddr;

impl Engine {
    /// A path needs the link address of a neighbour beside a device: the control thread has it found.
    pub(crate) fn resolve(&mut self, device: u8, address: IpAddr) {
        self.tell_control(Told::Resolve { device, address });
    }

    /// These sources of a group are heard here from now on: where the link is ours, it is told so.
    pub fn tell_of_group(&mut self, group: IpAddr, filter: &Filter<IpAddr>, now: Instant) {
        match group {
            IpAddr::V4(group) => {
                if let Some(igmp) = self.core.paths.module_mut::<Igmp>() {
                    let filter = filter
                        .of(|source| if let IpAddr::V4(source) = source { Some(*source) } else { None });
                    igmp.change(now, group, filter, &mut self.core.port);
                }
            }
            IpAddr::V6(group) => {
                if let Some(mld) = self.core.paths.module_mut::<Mld>() {
                    let filter = filter
                        .of(|source| if let IpAddr::V6(source) = source { Some(*source) } else { None });
                    mld.change(now, group, filter, &mut self.core.port);
                }
            }
        }
        self.answer_requests(now);
    }

    /// The link address of a neighbour beside a device, or that it has none.
    pub fn resolved(&mut self, neighbour: (u8, IpAddr), link: Option<[u8; 6]>, now: Instant) {
        self.core.learn(neighbour, link, now);
        self.answer_requests(now);
    }
}
