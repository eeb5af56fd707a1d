//! Sending bytes of files by reference: instead of bytes a [`Reference`] goes into the send ring, and the
//! daemon sends what lies in the file. It knows the files that it was asked to know; a program asks
//! when it sends a file for the second time, since the first has brought it into memory and many are
//! sent only once.

use crate::family;
use crate::lock::{Guarded, Lock};
use crate::mappings::{LEAST, Part, identify};
use silk_control::Request;
use silk_stream::{Bytes, Reference, Slot};
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// Files about which is remembered how often they were sent.
const NOTED: usize = 32;
/// A file that the daemon did not want, or does not want any more since somebody changed it, is offered
/// again after so many times.
const AGAIN: u32 = 16;

struct Noted {
    device: u64,
    inode: u64,
    times: u32,
}

static SENT: Guarded<Vec<Noted>> = Guarded::new(Vec::new());

/// Puts a part of a file into the ring at `at`, if that can be; else it is to be copied.
pub fn refer(slot: &Slot, ring: Bytes<'_>, at: u32, part: &Part) -> bool {
    let Some(family) = family::joined().filter(|_| part.len >= LEAST) else { return false };
    let behind = part.offset.saturating_add(part.len as u64);
    let Some((file, generation, length)) = family.arena.find_file(part.device, part.inode) else {
        offer(part);
        return false;
    };
    let (before, newest) = (slot.tx_reference.load(Relaxed), !at);
    let Ok(len) = u32::try_from(part.len) else { return false };
    // Zero would say that there is none, and the same as before that there is no new one.
    if behind > length || newest == 0 || newest == before {
        return false;
    }
    let reference = Reference { before, len, file, generation, offset: part.offset };
    ring.write(at, &reference.to_bytes());
    slot.tx_reference.store(newest, SeqCst);
    true
}

/// Whether a part of a file is sent by reference now, as far as can be said before it is.
pub fn is_known(part: &Part) -> bool {
    let family = family::joined().filter(|_| part.len >= LEAST);
    family.is_some_and(|family| family.arena.find_file(part.device, part.inode).is_some())
}

/// Asks the daemon to know a file, where it is sent often enough.
fn offer(part: &Part) {
    if !is_worth_asking(part) {
        return;
    }
    // The number may mean another file by now.
    if identify(part.fd).is_some_and(|(device, inode, _)| (device, inode) == (part.device, part.inode)) {
        // SAFETY: just seen to be open; should another thread close it meanwhile, the kernel refuses
        // it, or the daemon knows a file that nobody sends.
        let fd = unsafe { BorrowedFd::borrow_raw(part.fd) };
        // Where it is refused the file is copied.
        let _ = family::ask(&Request::File, &[fd]);
    }
}

fn is_worth_asking(part: &Part) -> bool {
    let mut sent = SENT.lock();
    let known = sent.iter_mut().find(|one| (one.device, one.inode) == (part.device, part.inode));
    let Some(known) = known else {
        if sent.len() == NOTED {
            sent.remove(0);
        }
        sent.push(Noted { device: part.device, inode: part.inode, times: 1 });
        return false;
    };
    known.times = known.times.wrapping_add(1);
    known.times % AGAIN == 2
}

/// The lock, to be held across a fork.
pub fn lock() -> &'static Lock {
    SENT.bare()
}
