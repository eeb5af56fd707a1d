//! Where the tags of virtual LANs (IEEE 802.1Q-2018 §9.6) are kept apart from their frames. Linux and its
//! drivers mostly carry a tag beside a frame and not in it, where no XDP program sees it. This looks
//! whether it is so on an interface, and says what to switch off. It must never switch anything itself:
//! the interface is Linux's too.

use crate::netlink::{Interface, Netlink};
use crate::sys;

/// Why no tags will be seen in frames that arrive on `interface`, and what to do, as a sentence; `None`
/// where nothing can be found that keeps them apart. The other end of a veth can be looked at only in
/// the same network namespace.
pub fn kept_apart(netlink: &mut Netlink, interface: &Interface) -> Option<String> {
    if interface.veth {
        let peer = netlink.interface_at(interface.below?).ok()?;
        let (out, _) = sys::tags_apart(&peer.name).ok()?;
        return out.then(|| {
            format!(
                "`{}`, the other end of `{}`, keeps VLAN tags beside the frames, where XDP does not see \
                 them: `ethtool -K {0} txvlan off`",
                peer.name, interface.name
            )
        });
    }
    let (_, into) = sys::tags_apart(&interface.name).ok()?;
    into.then(|| {
        format!(
            "`{0}` takes VLAN tags out of the frames before XDP sees them: `ethtool -K {0} rxvlan off`",
            interface.name
        )
    })
}
