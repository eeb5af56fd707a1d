//! Finds neighbours where Linux shares the interface: asks the kernel, and hears when it knows, and when
//! the interface itself, its addresses or routes may have changed.

use super::{Change, Interface, LocalAddress, Neighbour, Netlink, NetlinkError, Reach, Table, Watch};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;

/// What the kernel says of a neighbour: its link address, or that it does not answer.
pub type Found = (IpAddr, Option<[u8; 6]>);

/// Neighbours that are waited for at one time: as many as the kernel itself keeps (`gc_thresh3`).
const WAITING: usize = 1024;

/// The kernel's neighbours of one interface.
pub struct Finder {
    netlink: Netlink,
    watch: Watch,
    interface: u32,
    /// The device that packets come by: the interface itself, or what it is a virtual LAN of.
    device: u32,
    /// One of the two has gone, to another namespace or for good; what has the number later is another.
    gone: bool,
    /// Asked for and not answered yet.
    waiting: BTreeSet<IpAddr>,
    /// The interface, addresses or routes have changed since they were asked for.
    moved: bool,
}

impl Finder {
    /// The neighbours on `interface`.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn open(interface: u32) -> Result<Self, NetlinkError> {
        let (netlink, watch) = (Netlink::open()?, Watch::open()?);
        let waiting = BTreeSet::new();
        Ok(Self { netlink, watch, interface, device: interface, gone: false, waiting, moved: true })
    }

    /// The same where packets come by another device than the interface, which is a virtual LAN of it.
    #[must_use]
    pub fn over(self, device: u32) -> Self {
        Self { device, ..self }
    }

    /// Readable when something changed.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.watch.fd()
    }

    /// Somebody needs `address`: the answer, if the kernel has it at hand.
    pub fn ask(&mut self, address: IpAddr) -> Option<Found> {
        let known = self.netlink.neighbour(self.interface, address).ok().flatten();
        // Linux does not see what silk sends there: without a word it would never look whether a neighbour is there still.
        let sure = known.is_some_and(|neighbour| matches!(neighbour.reach, Reach::At(_)));
        let answer = known.and_then(|neighbour| self.answer(&neighbour));
        if sure {
            return answer;
        }
        if self.netlink.probe(self.interface, address).is_ok() {
            self.wait_for(address);
            return answer;
        }
        // The kernel keeps as many as it may (`gc_thresh3`), or the interface is gone: nobody will answer, and whoever needs it
        // asks again.
        self.waiting.remove(&address);
        answer
    }

    /// Answers may have been missed: all that are waited for are asked for once more. Those that the kernel has at hand.
    fn ask_again(&mut self) -> Vec<Found> {
        let waiting = self.waiting.clone();
        waiting.into_iter().filter_map(|address| self.ask(address)).collect()
    }

    /// An answer may be missed, and anybody can have us ask for as many as a link may have: of too many some are waited for no longer.
    fn wait_for(&mut self, address: IpAddr) {
        if self.waiting.len() >= WAITING {
            self.waiting.pop_first();
        }
        self.waiting.insert(address);
    }

    /// What the kernel has found out since.
    pub fn changes(&mut self) -> Vec<Found> {
        let changes = self.watch.changes().unwrap_or_default();
        let moves = |change: &Change| match change {
            Change::Addresses | Change::Routes | Change::Missed | Change::Gone(_) => true,
            // The routes of one that is down go without a word.
            Change::Interface(interface) => interface.index == self.interface || !interface.running,
            Change::Neighbour(_) => false,
        };
        self.moved |= changes.iter().any(moves);
        let ends = |change: &Change| [self.interface, self.device].map(Change::Gone).contains(change);
        self.gone |= changes.iter().any(ends);
        let found = changes.iter().filter_map(|change| match change {
            Change::Neighbour(neighbour) => self.answer(neighbour),
            _ => None,
        });
        let mut found: Vec<Found> = found.collect();
        if changes.contains(&Change::Missed) {
            found.extend(self.ask_again());
        }
        found
    }

    /// Whether the interface, addresses or routes may have changed since [`Self::addresses`] was asked.
    pub fn has_moved(&self) -> bool {
        self.moved
    }

    /// The addresses of the interface now.
    ///
    /// # Errors
    /// What the kernel said; it may be asked again.
    pub fn addresses(&mut self) -> Result<Vec<LocalAddress>, NetlinkError> {
        let addresses = if self.gone { Vec::new() } else { self.netlink.addresses(self.interface)? };
        self.moved = false;
        Ok(addresses)
    }

    /// The routing tables now, as [`Netlink::table`] tells it.
    ///
    /// # Errors
    /// What the kernel said; it is to be asked again, as for all that has [moved](Self::has_moved).
    pub fn table(&mut self, most: usize) -> Result<Table, NetlinkError> {
        let table = self.netlink.table(most);
        self.moved |= table.is_err();
        table
    }

    /// The interface as it is now; `None`: it is gone, and stays so when another gets its number, or it comes back.
    ///
    /// # Errors
    /// What the kernel said; it is to be asked again, as for all that has [moved](Self::has_moved).
    pub fn interface(&mut self) -> Result<Option<Interface>, NetlinkError> {
        if self.gone {
            return Ok(None);
        }
        match self.netlink.interface_at(self.interface) {
            Ok(interface) => Ok(Some(interface)),
            Err(NetlinkError::Refused(error)) if error.raw_os_error() == Some(libc::ENODEV) => {
                self.gone = true;
                Ok(None)
            }
            Err(error) => {
                self.moved = true;
                Err(error)
            }
        }
    }

    fn answer(&mut self, neighbour: &Neighbour) -> Option<Found> {
        let (address, link) = match neighbour.reach {
            _ if neighbour.interface != self.interface => return None,
            Reach::At(mac) => (neighbour.address, Some(mac.0)),
            // That it is not there may be found out still.
            Reach::Stale(mac) => return Some((neighbour.address, Some(mac.0))),
            Reach::Unreachable => (neighbour.address, None),
            Reach::Pending => return None,
        };
        let wanted = self.waiting.remove(&address) || link.is_some();
        wanted.then_some((address, link))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    #[test]
    fn who_is_not_told_of_routes_is_to_ask_again() {
        let mut finder = Finder::open(1).unwrap();
        finder.addresses().unwrap();
        assert!(!finder.has_moved());
        // Nobody is there whom it asks.
        let socket = netlink_sys::Socket::new(netlink_sys::protocols::NETLINK_ROUTE).unwrap();
        finder.netlink = Netlink { socket, sequence: 0 };
        finder.netlink.socket.connect(&netlink_sys::SocketAddr::new(u32::MAX, 0)).unwrap();
        assert!(finder.table(1).is_err() && finder.has_moved());
    }

    #[test]
    fn what_is_waited_for_is_bounded_whoever_asks() {
        let addresses =
            || (0..2 * WAITING as u128).map(|n| IpAddr::from(Ipv6Addr::from_bits(0xfe80 << 112 | n)));
        // There is no such interface.
        let mut finder = Finder::open(u32::MAX >> 1).unwrap();
        addresses().for_each(|address| assert_eq!(finder.ask(address), None));
        assert_eq!(finder.waiting.len(), 0, "nobody will answer");
        addresses().for_each(|address| finder.wait_for(address));
        assert_eq!(finder.waiting.len(), WAITING);
        assert_eq!(finder.waiting.last().copied(), addresses().next_back());
    }

    #[test]
    fn who_is_waited_for_is_asked_for_again_where_answers_may_have_been_missed() {
        // There is no such interface: nobody can be asked for there.
        let mut finder = Finder::open(u32::MAX >> 1).unwrap();
        let addresses = [IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2])];
        addresses.into_iter().for_each(|address| finder.wait_for(address));
        if !finder.watch.misses() {
            return;
        }
        assert_eq!(finder.changes(), []);
        assert_eq!(finder.waiting.len(), 0, "they were asked for, and in vain");
    }
}
