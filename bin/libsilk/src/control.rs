//! Control data of messages (`cmsg(3)`): what a program asks with a datagram, and what it is told
//! with one. Only what the buffer's length allows is read or written.

use crate::errno::Answer;
use libc::{c_int, cmsghdr, msghdr};
use std::net::IpAddr;
use std::ptr;

/// `SOL_UDP`, and its options.
pub const UDP: c_int = libc::SOL_UDP;
/// Send: cut into datagrams of so many bytes.
pub const UDP_SEGMENT: c_int = libc::UDP_SEGMENT;
/// Receive: several datagrams at once, told of how many bytes each.
pub const UDP_GRO: c_int = libc::UDP_GRO;

/// Set: how much is left is told; received: how much that is (Linux 4.18; the C library has no name for it).
pub const TCP_INQ: c_int = 36;

/// Writes control data into a message that is received.
pub struct Telling<'a> {
    message: &'a mut msghdr,
    room: usize,
}

impl<'a> Telling<'a> {
    /// Nothing told yet: the message's control buffer is taken to be as long as the program says.
    ///
    /// # Safety
    /// The control buffer must have `msg_controllen` writable bytes, or be null.
    pub unsafe fn new(message: &'a mut msghdr) -> Self {
        let room = if message.msg_control.is_null() { 0 } else { message.msg_controllen };
        message.msg_controllen = 0;
        Self { message, room }
    }

    /// Tells `value`, or as much of it as there is room for, which is marked, as Linux does (`put_cmsg`).
    pub fn put<T: Copy>(&mut self, level: c_int, kind: c_int, value: T) {
        let size = size_of::<T>() as u32;
        // SAFETY: these compute sizes.
        let (space, length) = unsafe { (libc::CMSG_SPACE(size) as usize, libc::CMSG_LEN(size) as usize) };
        let used = self.message.msg_controllen;
        let told = length.min(self.room - used);
        if told < length {
            self.message.msg_flags |= libc::MSG_CTRUNC;
        }
        let Some(bytes) = told.checked_sub(size_of::<cmsghdr>()) else { return };
        // SAFETY: `told` bytes are left behind those used, by `new`'s caller's word, which are the header and no more bytes than the
        // value has; the entry is written without a claim of how it is aligned.
        unsafe {
            let at = self.message.msg_control.cast::<u8>().add(used);
            let header = cmsghdr { cmsg_len: told as _, cmsg_level: level, cmsg_type: kind };
            at.cast::<cmsghdr>().write_unaligned(header);
            let (from, to) = (ptr::from_ref(&value).cast::<u8>(), at.add(size_of::<cmsghdr>()));
            ptr::copy_nonoverlapping(from, to, bytes);
        }
        self.message.msg_controllen = (used + space).min(self.room);
    }
}

/// What a program asks with one message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// `UDP_SEGMENT`.
    pub segment: Option<u16>,
    /// `IP_TOS` or `IPV6_TCLASS`.
    pub service: Option<u8>,
    /// `IP_TTL` or `IPV6_HOPLIMIT`.
    pub hops: Option<u8>,
    /// The address it is to leave from: `IP_PKTINFO` or `IPV6_PKTINFO`.
    pub source: Option<IpAddr>,
}

/// What of a socket's own a message may ask for by control data: the rest is unknown to Linux. `SCM_RIGHTS`,
/// `SCM_CREDENTIALS`, `SO_PRIORITY`, `SO_MARK`, `SO_TIMESTAMPING` in two forms, `SCM_TXTIME`, `SCM_TS_OPT_ID`.
const OF_SOCKETS: [c_int; 8] = [1, 2, libc::SO_PRIORITY, libc::SO_MARK, libc::SO_TIMESTAMPING, 65, 61, 81];

/// Which IPs' control data a message may have: that of the way it goes, and IPv6's on a socket of IPv6.
#[derive(Clone, Copy, Debug)]
pub struct Speaks {
    /// It goes over IPv4.
    pub four: bool,
    /// The socket is of IPv6.
    pub six: bool,
}

/// Reads what a program asks with a message of UDP. As in Linux what is of the IP that the message does not go over is not
/// looked at.
///
/// # Errors
/// `EINVAL` for control data that are malformed, out of range, or of UDP or of sockets and unknown.
///
/// # Safety
/// The message must be valid, with all it points to.
pub unsafe fn asked(message: &msghdr, speaks: Speaks) -> Answer<Asked> {
    let mut asked = Asked::default();
    // SAFETY: as the caller promises.
    for entry in unsafe { Entries::of(message) } {
        let (level, kind, data) = entry?;
        match (level, kind) {
            (UDP, UDP_SEGMENT) => {
                let two = <[u8; 2]>::try_from(data).map_err(|_| libc::EINVAL)?;
                asked.segment = Some(u16::from_ne_bytes(two));
            }
            (UDP, _) => return Err(libc::EINVAL),
            (libc::SOL_SOCKET, kind) if !OF_SOCKETS.contains(&kind) => return Err(libc::EINVAL),
            (libc::IPPROTO_IP, _) if !speaks.four => {}
            (libc::IPPROTO_IPV6, _) if !speaks.six => {}
            (libc::IPPROTO_IP, libc::IP_TOS) => asked.service = Some(octet(data, 0)?),
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                // The index of an interface, the address, and one that means something on arrival only.
                let address = data.get(4..8).filter(|_| data.len() == size_of::<libc::in_pktinfo>());
                asked.source = source::<4>(address)?;
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                // There may be more behind it, as Linux has it.
                let address = data.get(..16).filter(|_| data.len() >= size_of::<libc::in6_pktinfo>());
                asked.source = source::<16>(address)?;
            }
            (libc::IPPROTO_IP, libc::IP_TTL) => asked.hops = Some(octet(data, 1)?),
            // -1 is what the socket has.
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) if !is_minus_one(data) => {
                asked.service = Some(octet(data, 0)?);
            }
            (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) if !is_minus_one(data) => {
                asked.hops = Some(octet(data, 0)?).filter(|hops| *hops > 0);
            }
            _ => {}
        }
    }
    Ok(asked)
}

/// Whether what a message asks of a socket's own by control data is known; the rest a byte stream does not look at.
///
/// # Safety
/// As [`asked`].
pub unsafe fn is_known_to_sockets(message: &msghdr) -> bool {
    // SAFETY: as the caller promises.
    let mut entries = unsafe { Entries::of(message) };
    entries.all(|entry| {
        entry.is_ok_and(|(level, kind, _)| level != libc::SOL_SOCKET || OF_SOCKETS.contains(&kind))
    })
}

/// An address to leave from; one that means any leaves it to the socket.
fn source<const N: usize>(address: Option<&[u8]>) -> Answer<Option<IpAddr>>
where
    IpAddr: From<[u8; N]>,
{
    let octets = address.and_then(|bytes| <[u8; N]>::try_from(bytes).ok()).ok_or(libc::EINVAL)?;
    Ok(Some(IpAddr::from(octets).to_canonical()).filter(|address| !address.is_unspecified()))
}

fn is_minus_one(data: &[u8]) -> bool {
    data == (-1i32).to_ne_bytes()
}

/// A number, or a byte, of `least` to 255.
fn octet(data: &[u8], least: u8) -> Answer<u8> {
    let number = match *data {
        [byte] => i32::from(byte),
        [a, b, c, d] => i32::from_ne_bytes([a, b, c, d]),
        _ => return Err(libc::EINVAL),
    };
    u8::try_from(number).ok().filter(|octet| *octet >= least).ok_or(libc::EINVAL)
}

/// The entries of a control buffer: level, type and data of each.
struct Entries<'a>(&'a [u8]);

impl<'a> Entries<'a> {
    /// Those of a message.
    ///
    /// # Safety
    /// The control buffer must have as many bytes as the message says, or be null.
    unsafe fn of(message: &'a msghdr) -> Self {
        if message.msg_control.is_null() {
            return Self(&[]);
        }
        // SAFETY: as the caller promises.
        Self(unsafe { std::slice::from_raw_parts(message.msg_control.cast::<u8>(), message.msg_controllen) })
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Answer<(c_int, c_int, &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        // SAFETY: computes a size.
        let front = unsafe { libc::CMSG_LEN(0) } as usize;
        // As Linux: what is shorter than a header ends the list.
        let head = self.0.get(..front)?;
        let word = |at: usize| head.get(at..at + 4)?.try_into().ok().map(c_int::from_ne_bytes);
        let length = head.get(..8)?.try_into().ok().map(usize::from_ne_bytes)?;
        let (level, kind) = (word(8)?, word(12)?);
        let Some(data) = self.0.get(front..length) else {
            self.0 = &[];
            return Some(Err(libc::EINVAL));
        };
        self.0 = self.0.get(length.next_multiple_of(size_of::<usize>())..).unwrap_or(&[]);
        Some(Ok((level, kind, data)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Speaks = Speaks { four: true, six: true };

    fn message(control: &mut [u8]) -> msghdr {
        // SAFETY: a message of zeroes is an empty one.
        let mut message: msghdr = unsafe { std::mem::zeroed() };
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = control.len();
        message
    }

    #[test]
    fn what_is_told_reads_back_as_what_is_asked() {
        let mut control = [0; 64];
        let mut told = message(&mut control);
        // SAFETY: the buffer is that long.
        let mut telling = unsafe { Telling::new(&mut told) };
        telling.put(libc::IPPROTO_IP, libc::IP_TTL, 5);
        telling.put(UDP, UDP_SEGMENT, 1200u16);
        assert_eq!((told.msg_controllen, told.msg_flags), (48, 0));
        // SAFETY: as above.
        let asked = unsafe { asked(&told, BOTH) };
        assert_eq!(asked, Ok(Asked { segment: Some(1200), hops: Some(5), ..Asked::default() }));
    }

    #[test]
    fn service_and_hops_are_octets_and_may_be_left_to_the_socket() {
        let asked = |level, kind, value: c_int| {
            let mut control = [0; 24];
            let mut told = message(&mut control);
            // SAFETY: the buffer is that long.
            unsafe { Telling::new(&mut told) }.put(level, kind, value);
            // SAFETY: as above.
            unsafe { asked(&told, BOTH) }.map(|asked| (asked.service, asked.hops))
        };
        let (ip, ip6) = (libc::IPPROTO_IP, libc::IPPROTO_IPV6);
        assert_eq!(
            [0, 255].map(|tos| asked(ip, libc::IP_TOS, tos)),
            [0, 255].map(|tos| Ok((Some(tos), None)))
        );
        assert_eq!([-1, 256].map(|tos| asked(ip, libc::IP_TOS, tos)), [Err(libc::EINVAL); 2]);
        assert_eq!([0, 256].map(|ttl| asked(ip, libc::IP_TTL, ttl)), [Err(libc::EINVAL); 2]);
        assert_eq!(asked(ip6, libc::IPV6_TCLASS, 2), Ok((Some(2), None)));
        assert_eq!(asked(ip6, libc::IPV6_HOPLIMIT, 7), Ok((None, Some(7))));
        for kind in [libc::IPV6_TCLASS, libc::IPV6_HOPLIMIT] {
            assert_eq!(asked(ip6, kind, -1), Ok((None, None)));
            assert_eq!(asked(ip6, kind, 256), Err(libc::EINVAL));
        }
    }

    #[test]
    fn an_address_to_leave_from_is_that_of_either_ip() {
        fn asked_with<T: Copy>(level: c_int, kind: c_int, value: T) -> Answer<Option<IpAddr>> {
            let mut control = [0; 64];
            let mut told = message(&mut control);
            // SAFETY: the buffer is that long.
            unsafe { Telling::new(&mut told) }.put(level, kind, value);
            // SAFETY: as above.
            unsafe { asked(&told, BOTH) }.map(|asked| asked.source)
        }
        let v4 = |octets| {
            let own = libc::in_addr { s_addr: u32::from_ne_bytes(octets) };
            let none = libc::in_addr { s_addr: 0 };
            let info = libc::in_pktinfo { ipi_ifindex: 3, ipi_spec_dst: own, ipi_addr: none };
            asked_with(libc::IPPROTO_IP, libc::IP_PKTINFO, info)
        };
        let v6 = |address: &str| {
            let address: std::net::Ipv6Addr = address.parse().unwrap();
            let ipi6_addr = libc::in6_addr { s6_addr: address.octets() };
            let info = libc::in6_pktinfo { ipi6_addr, ipi6_ifindex: 0 };
            asked_with(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info)
        };
        assert_eq!(v4([10, 0, 0, 9]), Ok(Some("10.0.0.9".parse().unwrap())));
        assert_eq!(v6("fd00::9"), Ok(Some("fd00::9".parse().unwrap())));
        assert_eq!(v6("::ffff:10.0.0.9"), v4([10, 0, 0, 9]));
        assert_eq!([v4([0; 4]), v6("::")], [Ok(None); 2]);
        for (level, kind) in [(libc::IPPROTO_IP, libc::IP_PKTINFO), (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO)]
        {
            assert_eq!(asked_with(level, kind, [7u8; 11]), Err(libc::EINVAL));
        }
        assert_eq!(asked_with(libc::IPPROTO_IP, libc::IP_PKTINFO, [7u8; 24]), Err(libc::EINVAL));
        let longer = asked_with(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, [7u8; 24]);
        assert_eq!(longer, Ok(Some(std::net::Ipv6Addr::from([7; 16]).into())));
    }

    #[test]
    fn of_the_other_ip_nothing_is_looked_at_and_of_sockets_only_what_there_is() {
        let asked_of = |speaks, level, kind, value: i32| {
            let mut control = [0; 64];
            let mut told = message(&mut control);
            // SAFETY: the buffer is that long.
            unsafe { Telling::new(&mut told) }.put(level, kind, value);
            // SAFETY: as above.
            unsafe { asked(&told, speaks) }
        };
        let (over4, over6) = (Speaks { six: false, ..BOTH }, Speaks { four: false, ..BOTH });
        let refused = Err(libc::EINVAL);
        let hops = [(libc::IPPROTO_IP, libc::IP_TTL), (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT)];
        let answers = |speaks| hops.map(|(level, kind)| asked_of(speaks, level, kind, 300));
        assert_eq!(answers(BOTH), [refused, refused]);
        assert_eq!(answers(over4), [refused, Ok(Asked::default())]);
        assert_eq!(answers(over6), [Ok(Asked::default()), refused]);
        let mark = asked_of(BOTH, libc::SOL_SOCKET, libc::SO_MARK, 0);
        assert_eq!((mark, asked_of(BOTH, libc::SOL_SOCKET, 77, 0)), (Ok(Asked::default()), refused));
    }

    #[test]
    fn what_there_is_no_room_for_is_marked() {
        let mut control = [0; 30];
        let mut told = message(&mut control);
        // SAFETY: the buffer is that long.
        let mut telling = unsafe { Telling::new(&mut told) };
        telling.put(UDP, UDP_GRO, 1);
        telling.put(UDP, UDP_GRO, 2);
        assert_eq!((told.msg_controllen, told.msg_flags), (24, libc::MSG_CTRUNC));
    }

    #[test]
    fn a_lying_length_or_an_unknown_option_of_udp_is_refused() {
        for (length, kind, size) in [(2usize, 103, 24), (99, 103, 24), (20, 103, 24), (18, 99, 24)] {
            let mut control = [0u8; 24];
            control[..8].copy_from_slice(&length.to_ne_bytes());
            control[8..12].copy_from_slice(&UDP.to_ne_bytes());
            control[12..16].copy_from_slice(&i32::to_ne_bytes(kind));
            let told = message(&mut control[..size]);
            // SAFETY: the buffer is that long.
            assert_eq!(unsafe { asked(&told, BOTH) }, Err(libc::EINVAL), "{length} {kind}");
        }
    }
}
