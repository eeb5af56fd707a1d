//! The options of a stream socket that becomes Linux's ([`given_up`](crate::given_up)): Linux's part is told what the
//! program has set while silk served the socket.

use super::told::{linger, time};
use super::{Place, place};
use crate::control;
use crate::real;
use crate::socket::Socket;
use crate::wishes;
use libc::socklen_t;
use silk_stream::wish;
use std::ffi::c_int;
use std::sync::atomic::Ordering::Relaxed;

/// What Linux's part of a stream socket may not know yet, because it was set while silk served the socket.
const HANDED_OVER: [(c_int, c_int); 32] = [
    (libc::SOL_SOCKET, libc::SO_REUSEADDR),
    (libc::SOL_SOCKET, libc::SO_REUSEPORT),
    (libc::SOL_SOCKET, libc::SO_OOBINLINE),
    (libc::SOL_SOCKET, libc::SO_KEEPALIVE),
    (libc::SOL_SOCKET, libc::SO_RCVBUF),
    (libc::SOL_SOCKET, libc::SO_SNDBUF),
    (libc::SOL_SOCKET, libc::SO_RCVLOWAT),
    (libc::SOL_SOCKET, libc::SO_LINGER),
    (libc::SOL_SOCKET, libc::SO_RCVTIMEO),
    (libc::SOL_SOCKET, libc::SO_SNDTIMEO),
    (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE),
    (libc::IPPROTO_TCP, libc::TCP_CONGESTION),
    (libc::IPPROTO_TCP, libc::TCP_NODELAY),
    (libc::IPPROTO_TCP, libc::TCP_CORK),
    (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE),
    (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL),
    (libc::IPPROTO_TCP, libc::TCP_KEEPCNT),
    (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT),
    (libc::IPPROTO_TCP, libc::TCP_SYNCNT),
    (libc::IPPROTO_TCP, libc::TCP_LINGER2),
    (libc::IPPROTO_TCP, libc::TCP_MAXSEG),
    (libc::IPPROTO_TCP, libc::TCP_QUICKACK),
    (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT),
    (libc::IPPROTO_TCP, control::TCP_INQ),
    (libc::IPPROTO_IP, libc::IP_TOS),
    (libc::IPPROTO_IP, libc::IP_TTL),
    (libc::IPPROTO_IP, libc::IP_RECVERR),
    (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER),
    (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
    (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS),
    (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
    (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER),
];

/// Gives Linux's part of a stream socket, `fd`, the options that the program has set: Linux serves it from now on.
pub fn hand_over(socket: &Socket, fd: c_int) {
    fn put<T>(fd: c_int, level: c_int, name: c_int, value: T) {
        // SAFETY: a value of the length that is said.
        unsafe { real::setsockopt(fd, level, name, (&raw const value).cast(), size_of::<T>() as socklen_t) };
    }
    let settings = &socket.settings;
    for (level, name) in HANDED_OVER {
        match place(socket, level, name) {
            Some(Place::Flag(bit)) => put(fd, level, name, c_int::from(settings.has_flag(bit))),
            Some(Place::Stream(bit)) => {
                put(fd, level, name, c_int::from(settings.stream.load(Relaxed) & bit != 0));
            }
            Some(Place::Number(cell)) if cell.load(Relaxed) != 0 || is_usually_zero(level, name) => {
                put(fd, level, name, cell.load(Relaxed));
            }
            Some(Place::Wish(place)) => match (settings.wish(place), usual(place)) {
                (0, None) => {}
                (0, Some(usual)) => put(fd, level, name, usual),
                (wish, _) => put(fd, level, name, wishes::number(place, wish, None)),
            },
            Some(Place::Congestion) if settings.wish(wish::CONGESTION) != 0 => {
                put(fd, level, name, wishes::congestion(socket, None));
            }
            Some(Place::PacingRate) => put(fd, level, name, wishes::pacing_rate(settings)),
            Some(Place::Linger) => put(fd, level, name, linger(settings)),
            Some(Place::Time(cell)) => put(fd, level, name, time(cell)),
            _ => {}
        }
    }
}

/// Whether a number that is 0 has been set so, or is so in Linux's part too.
fn is_usually_zero(level: c_int, name: c_int) -> bool {
    [(libc::IPPROTO_IP, libc::IP_TOS), (libc::IPPROTO_IPV6, libc::IPV6_TCLASS)].contains(&(level, name))
}

/// What sets an option again that a program may have set, and set to what is usual since; `None`: a wish, once there is one, does not go.
fn usual(place: usize) -> Option<c_int> {
    match place {
        wish::TTL | wish::HOPS => Some(-1),
        wish::USER_TIMEOUT
        | wish::LINGER
        | wish::MAX_SEGMENT
        | wish::NOT_SENT
        | wish::SOFT_ERRORS
        | wish::SOFT_ERRORS6 => Some(0),
        _ => None,
    }
}
