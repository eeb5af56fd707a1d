//! Sockets that the daemon has made ready for addresses that this process connects to often: to connect
//! with one takes no word with the daemon (`silk_stream::status::SPARE`).

use crate::family;
use crate::lock::{Guarded, Lock};
use silk_stream::{request, status};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering::SeqCst;

/// The most that are remembered; older ones the daemon has taken back by then, or will.
const MOST: usize = 256;

/// A spare: where it leads, its slot, and which use of that is meant.
struct Spare {
    to: IpAddr,
    slot: u32,
    generation: u32,
}

static STOCK: Guarded<VecDeque<Spare>> = Guarded::new(VecDeque::new());

/// The lock, to be held across a fork.
pub fn lock() -> &'static Lock {
    STOCK.bare()
}

/// In a forked child: what there is belongs to the parent.
pub fn forget() {
    if let Some(mut stock) = STOCK.try_lock() {
        stock.clear();
    }
}

/// The daemon has made these, for connections to the address of `peer`.
pub fn add(peer: SocketAddr, spares: &[(u32, u32)]) {
    let Some(mut stock) = STOCK.try_lock() else { return };
    let to = peer.ip().to_canonical();
    stock.extend(spares.iter().map(|&(slot, generation)| Spare { to, slot, generation }));
    let over = stock.len().saturating_sub(MOST);
    stock.drain(..over);
}

/// Claims one for a connection to `peer`; its slot, and which use of that it is. Whoever is in the middle
/// of this already, in another thread or below a signal handler, is not waited for.
pub fn claim(peer: SocketAddr) -> Option<(u32, u32)> {
    let family = family::joined()?;
    let mut stock = STOCK.try_lock()?;
    let to = peer.ip().to_canonical();
    while let Some(at) = stock.iter().position(|spare| spare.to == to) {
        let Spare { slot: number, generation, .. } = stock.remove(at)?;
        let Some(slot) = family.arena.slot(number) else { continue };
        let is_ours =
            || slot.generation.load(SeqCst) == generation && slot.owner.load(SeqCst) == family::process();
        // The daemon may have taken it back, and given the slot to another.
        if is_ours()
            && slot.status.compare_exchange(status::SPARE, status::CONNECTING, SeqCst, SeqCst).is_ok()
        {
            if is_ours() {
                slot.peer.port.store(peer.port().into(), SeqCst);
                return Some((number, generation));
            }
            slot.status.store(status::SPARE, SeqCst);
        }
    }
    None
}

/// Lets a claimed one connect.
pub fn connect(number: u32) {
    if let Some(family) = family::joined()
        && let Some(slot) = family.arena.slot(number)
    {
        family.request(number, slot, request::CONNECT);
    }
}
