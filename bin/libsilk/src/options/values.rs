//! The values of options in the program's memory, read and given as Linux does.

use crate::control;
use crate::errno::Answer;
use libc::socklen_t;
use std::ffi::{c_int, c_void};

/// Reads a value of the program's.
///
/// # Safety
/// `value` points to `len` readable bytes or is null.
pub(super) unsafe fn input<T: Copy>(value: *const c_void, len: socklen_t) -> Answer<T> {
    if (len as usize) < size_of::<T>() {
        return Err(libc::EINVAL);
    }
    if value.is_null() {
        return Err(libc::EFAULT);
    }
    // SAFETY: enough bytes are there, by the caller's word.
    Ok(unsafe { value.cast::<T>().read_unaligned() })
}

/// Reads a number of the program's. Of IP's options one byte is enough, and for most of them none is 0; of one of IPv6's what
/// is too short is 0.
///
/// # Safety
/// As [`input`].
pub(super) unsafe fn input_number(
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> Answer<c_int> {
    let whole = matches!(
        name,
        libc::IP_TTL | libc::IP_MULTICAST_TTL | libc::IP_MULTICAST_LOOP | libc::IP_MULTICAST_ALL
    );
    // SAFETY: as the caller promises.
    let number = unsafe {
        match (level, len) {
            (libc::IPPROTO_IP, 0) if !whole => 0,
            (libc::IPPROTO_IP, 1..4) => input::<u8>(value, len).map(c_int::from)?,
            (libc::IPPROTO_IPV6, 0..4) if name == libc::IPV6_DONTFRAG => 0,
            _ => input::<c_int>(value, len)?,
        }
    };
    let strict = [
        (libc::IPPROTO_IP, libc::IP_MULTICAST_ALL),
        (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_LOOP),
        (libc::IPPROTO_TCP, control::TCP_INQ),
    ];
    if strict.contains(&(level, name)) && !matches!(number, 0 | 1) { Err(libc::EINVAL) } else { Ok(number) }
}

/// Gives a value to the program, cut to its buffer as Linux does.
///
/// # Safety
/// `len` points to a length and `value` to as many writable bytes, or either is null.
pub(super) unsafe fn output<T>(from: &T, value: *mut c_void, len: *mut socklen_t) -> Answer<()> {
    if len.is_null() || value.is_null() {
        return Err(libc::EFAULT);
    }
    // SAFETY: as the caller promises; no more is copied than fits.
    unsafe {
        let fits = size_of::<T>().min(*len as usize);
        std::ptr::copy_nonoverlapping(std::ptr::from_ref(from).cast::<u8>(), value.cast(), fits);
        *len = fits as socklen_t;
    }
    Ok(())
}
