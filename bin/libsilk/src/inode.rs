//! What tells sockets apart: their inodes (`fstat(2)`). A socket that the program made has the kernel's, which follows it to
//! whoever it is passed to. Accepted connections have one descriptor of the kernel's in common, so theirs are made here, of
//! what every process that holds the connection knows of it. The kernel's numbers for sockets have 32 bits: none is like one
//! of these.

use crate::socket::{Socket, shape};
use crate::table;
use std::ffi::c_int;

/// Bits of a slot's number. It stands lowest, so that sockets of one moment differ also for who keeps 32 bits.
const SLOT: u32 = silk_stream::SLOTS.ilog2();
const _: () = assert!(silk_stream::SLOTS.is_power_of_two() && SLOT >= 1);
/// Above the kernel's, and small enough to be exact as a floating-point number.
const OURS: u64 = 1 << 52;

/// The inode of `fd`, if the kernel does not know it.
#[inline]
pub fn of(fd: c_int) -> Option<u64> {
    table::served(fd).filter(|socket| socket.is(shape::ACCEPTED)).map(|socket| number(&socket))
}

fn number(socket: &Socket) -> u64 {
    let (slot, generation) = socket.name();
    OURS | u64::from(generation) << SLOT | u64::from(slot)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::{self, Role, stage};
    use std::collections::BTreeSet;

    #[test]
    fn every_use_of_every_slot_has_its_own_which_is_no_kernels_and_exact_as_a_float() {
        let socket = socket::make(stage::UNDECIDED, shape::ACCEPTED, 0).unwrap();
        let edges = [0, 1, u32::MAX];
        let all: Vec<u64> = edges
            .iter()
            .flat_map(|generation| [0, 1, silk_stream::SLOTS - 1].map(|slot| (slot, *generation)))
            .map(|(slot, generation)| {
                socket.serve(slot, generation, Role::Stream);
                number(socket)
            })
            .collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 9);
        assert!(all.iter().all(|number| *number > u64::from(u32::MAX) && *number < 1 << 53));
    }
}
