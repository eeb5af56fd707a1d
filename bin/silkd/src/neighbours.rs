//! Where Linux shares the interface, it finds the neighbours: the executors ask the control
//! thread, which asks the kernel and answers, then or when the kernel knows.

use crate::command::{Command, Event as Told};
use crate::engine::Engine;
use silk_device::netlink::{Change, Neighbour, Netlink, Reach, Watch};
use silk_instant::Instant;
use silk_modules::arp::Arp;
use silk_modules::nd::Nd;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;

impl Engine {
    /// A path needs a neighbour's link address: the control thread has it found.
    pub(crate) fn resolve(&mut self, address: IpAddr) {
        self.tell_control(Told::Resolve(address));
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

/// The kernel's neighbours of one interface.
pub struct Neighbours {
    netlink: Netlink,
    watch: Watch,
    interface: u32,
    /// Asked for and not answered yet.
    waiting: BTreeSet<IpAddr>,
}

impl Neighbours {
    /// The neighbours on `interface`.
    ///
    /// # Errors
    /// What the kernel said, as a sentence.
    pub fn open(interface: u32) -> Result<Self, String> {
        let open = || Ok((Netlink::open()?, Watch::open()?));
        let (netlink, watch) =
            open().map_err(|error: silk_device::netlink::NetlinkError| error.to_string())?;
        Ok(Self { netlink, watch, interface, waiting: BTreeSet::new() })
    }

    /// Readable when something changed.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.watch.fd()
    }

    /// Somebody needs `address`: the answer, if the kernel has it at hand.
    pub fn ask(&mut self, address: IpAddr) -> Option<Command> {
        let known = self.netlink.neighbour(self.interface, address).ok().flatten();
        let answer = known.and_then(|neighbour| self.answer(&neighbour));
        if answer.is_none() {
            self.waiting.insert(address);
            // If the kernel refuses to ask, nobody will answer, and the path's own time-out
            // ends the wait.
            let _ = self.netlink.probe(self.interface, address);
        }
        answer
    }

    /// What the kernel has found out since.
    pub fn changes(&mut self) -> Vec<Command> {
        let changes = self.watch.changes().unwrap_or_default();
        let neighbours = changes.into_iter().filter_map(|change| match change {
            Change::Neighbour(neighbour) => Some(neighbour),
            _ => None,
        });
        neighbours.collect::<Vec<Neighbour>>().iter().filter_map(|neighbour| self.answer(neighbour)).collect()
    }

    fn answer(&mut self, neighbour: &Neighbour) -> Option<Command> {
        let (address, link) = match neighbour.reach {
            _ if neighbour.interface != self.interface => return None,
            Reach::At(mac) | Reach::Stale(mac) => (neighbour.address, Some(mac.0)),
            Reach::Unreachable => (neighbour.address, None),
            Reach::Pending => return None,
        };
        let wanted = self.waiting.remove(&address) || link.is_some();
        wanted.then_some(Command::Neighbour { address, link })
    }
}
