//! Whether any way leads to where a datagram is to be sent: on Linux `sendto` fails at once (`ENETUNREACH`) where none does,
//! and a program tries another address then instead of waiting for an answer. Mostly some way leads everywhere, and
//! shared memory says so; else the daemon is asked once for each destination.

use crate::errno::Answer;
use crate::family;
use crate::groups;
use crate::lock::Guarded;
use silk_control::Request;
use silk_stream::Ways;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering::Relaxed;

/// So many destinations are known at a time.
const KNOWN: usize = 64;

/// Destinations that some way led to, with how things stood then. It is never waited for: who does not get it, below a
/// signal's handler or in a child whose parent had it when it forked, asks.
static LED: Guarded<[Option<(IpAddr, Ways)>; KNOWN]> = Guarded::new([None; KNOWN]);

/// Whether a datagram to `to` may leave.
///
/// # Errors
/// `ENETUNREACH`, or what else Linux's table has for the address.
#[inline]
pub fn lead_to(to: SocketAddr) -> Answer<()> {
    let Some(family) = family::joined() else { return Ok(()) };
    let ways = Ways::of(family.arena.header().ways.load(Relaxed));
    if ways.lead_everywhere(to.is_ipv6()) { Ok(()) } else { ask(to, ways) }
}

#[cold]
fn ask(to: SocketAddr, ways: Ways) -> Answer<()> {
    let address = to.ip();
    // To many leads an interface.
    if address.is_multicast() || groups::is_broadcast(to) {
        return Ok(());
    }
    let place = place_of(address);
    if LED.try_lock().is_some_and(|led| led.get(place) == Some(&Some((address, ways)))) {
        return Ok(());
    }
    family::ask(&Request::Way { to }, &[])?;
    // Nothing is kept of a refusal: the next answer may be another.
    if let Some(known) = LED.try_lock().as_mut().and_then(|led| led.get_mut(place)) {
        *known = Some((address, ways));
    }
    Ok(())
}

/// Neighbours have places beside each other.
fn place_of(to: IpAddr) -> usize {
    let octets = match to {
        IpAddr::V4(to) => u128::from(u32::from(to)),
        IpAddr::V6(to) => u128::from(to),
    };
    (octets ^ octets >> 16 ^ octets >> 64) as usize % KNOWN
}
