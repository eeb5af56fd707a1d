//! What the network says of datagrams that a program sent: to which socket it belongs, what it means
//! there, and the socket's error queue (`IP_RECVERR`), all as on Linux. A report can be forged, so it
//! changes nothing but what the program is told and how large its packets are.

use crate::between::command::Command;
use crate::between::reported::Reported;
use crate::domain::engine::Engine;
use silk_instant::Instant;
use silk_path::classify::{Between, Protocol};
use silk_path::{Discovery, Endpoint, PathId, Quoted};
use silk_stream::{SocketError, wish};
use std::net::IpAddr;

/// ICMP's "destination unreachable", "time exceeded" and "parameter problem" (RFC 792).
const UNREACHABLE: u8 = 3;
const EXCEEDED: u8 = 11;
const PROBLEM: u8 = 12;
/// The code of the first for a packet that was too big.
const TOO_BIG: u8 = 4;
/// ICMPv6's errors (RFC 4443 §3).
const UNREACHABLE6: u8 = 1;
const TOO_BIG6: u8 = 2;
const EXCEEDED6: u8 = 3;

/// An error as Linux has it: its number, and whether a socket that does not ask hears of it too.
fn meaning(quoted: &Quoted) -> (i32, bool) {
    match (quoted.offender, quoted.kind) {
        (IpAddr::V4(_), (UNREACHABLE, code)) => match code {
            0 | 11 => (libc::ENETUNREACH, false),
            1 | 12 => (libc::EHOSTUNREACH, false),
            2 => (libc::ENOPROTOOPT, true),
            3 => (libc::ECONNREFUSED, true),
            TOO_BIG => (libc::EMSGSIZE, true),
            5 => (libc::EOPNOTSUPP, false),
            6 | 9 => (libc::ENETUNREACH, true),
            7 => (libc::EHOSTDOWN, true),
            8 => (libc::ENONET, true),
            _ => (libc::EHOSTUNREACH, true),
        },
        (IpAddr::V4(_), (PROBLEM, _)) => (libc::EPROTO, true),
        (IpAddr::V4(_), (EXCEEDED, _)) | (IpAddr::V6(_), (EXCEEDED6, _)) => (libc::EHOSTUNREACH, false),
        (IpAddr::V6(_), (UNREACHABLE6, code)) => match code {
            0 => (libc::ENETUNREACH, false),
            2 | 3 => (libc::EHOSTUNREACH, false),
            4 => (libc::ECONNREFUSED, true),
            1 | 5 | 6 => (libc::EACCES, true),
            _ => (libc::EPROTO, true),
        },
        (IpAddr::V6(_), (TOO_BIG6, _)) => (libc::EMSGSIZE, true),
        _ => (libc::EPROTO, true),
    }
}

/// What an error says beside its number (`ee_info`).
fn info(quoted: &Quoted) -> u32 {
    match (quoted.offender, quoted.kind) {
        (IpAddr::V6(_), _) => quoted.info,
        (_, (UNREACHABLE, TOO_BIG)) => quoted.info & 0xffff,
        (_, (PROBLEM, _)) => quoted.info >> 24,
        _ => 0,
    }
}

impl Engine {
    /// The network has said something about a packet of this flow.
    pub(crate) fn reported(&mut self, udp: bool, said: Reported, now: Instant) {
        let protocol = if udp { Protocol::Udp } else { Protocol::Tcp };
        let flow = Between { protocol, local: said.local, remote: said.remote };
        let found = self.core.tables.flows.lookup(&flow).filter(|f| usize::from(f.domain) == self.domain);
        if let Some(id) = found.and_then(|found| self.core.paths.at(found.index)) {
            return self.report_to(id, &said, now);
        }
        // A datagram socket that speaks with anybody is known by its own end alone.
        let home = self.homes.find(said.local).filter(|_| udp);
        match home {
            Some(domain) if domain == self.domain || said.to_lane => {
                if let Some(id) = self.waiting_for(said.local, said.remote) {
                    self.report_to(id, &said, now);
                }
                if !said.to_lane {
                    self.pass_to_lanes(&said);
                }
            }
            Some(domain) => {
                if let Some(sibling) = self.siblings.get(domain)
                    && let Err(reason) = sibling.give(|| Command::Reported(Box::new(said)))
                {
                    self.core.drops.count(reason);
                }
            }
            None => {}
        }
    }

    fn report_to(&mut self, id: PathId, said: &Reported, now: Instant) {
        self.core.report(id, said.report, now);
        // First how large packets may be: who is told that one was too large asks for it.
        self.conclude(id, now);
        if let Some(quoted) = &said.quoted {
            self.tell_of_datagram(id, said.remote, quoted);
            self.tell_program(id);
        }
    }

    /// Tells a datagram socket of an error, as far as Linux would.
    pub(crate) fn tell_of_datagram(&mut self, id: PathId, remote: Endpoint, quoted: &Quoted) {
        let Some(path) = self.core.paths.path(id) else { return };
        let connected = path.state.attrs.remote().is_some();
        let Some(end) = self.core.port.datagrams(id) else { return };
        let ((errno, hard), wishes) = (meaning(quoted), crate::domain::wishes::of(end.slot()));
        let asked = if remote.is_v6() { wish::SOFT_ERRORS6 } else { wish::SOFT_ERRORS };
        let asked = end.slot().wishes.word(asked) != 0;
        let discovery = if remote.is_v6() { wishes.discovery6 } else { wishes.discovery };
        let indifferent = errno == libc::EMSGSIZE && discovery == Discovery::Dont;
        let told = if remote.is_v6() { asked } else { asked && !indifferent };
        if told {
            let error = SocketError {
                errno: errno.unsigned_abs(),
                kind: quoted.kind,
                info: info(quoted),
                peer: remote.into(),
                offender: quoted.offender,
                len: 0,
            };
            end.queue_error(&error, &quoted.data);
        }
        if told || (connected && hard && !indifferent) {
            end.tell_error(errno);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(offender: &str, kind: (u8, u8), info: u32) -> Quoted {
        Quoted { kind, info, offender: offender.parse().unwrap(), data: Vec::new() }
    }

    #[test]
    fn errors_mean_what_they_mean_on_linux() {
        let of = |kind| meaning(&quoted("10.0.0.9", kind, 0));
        assert_eq!(of((3, 3)), (libc::ECONNREFUSED, true));
        assert_eq!(of((3, 1)), (libc::EHOSTUNREACH, false));
        assert_eq!(of((3, 13)), (libc::EHOSTUNREACH, true));
        assert_eq!(of((11, 0)), (libc::EHOSTUNREACH, false));
        let of6 = |kind| meaning(&quoted("fe80::9", kind, 0));
        assert_eq!(of6((1, 4)), (libc::ECONNREFUSED, true));
        assert_eq!(of6((2, 0)), (libc::EMSGSIZE, true));
        assert_eq!(of6((3, 0)), (libc::EHOSTUNREACH, false));
    }

    #[test]
    fn the_word_beside_is_told_where_it_means_something() {
        assert_eq!(info(&quoted("10.0.0.9", (3, 4), 0xdead_05dc)), 1500);
        assert_eq!(info(&quoted("10.0.0.9", (3, 3), 0xdead_05dc)), 0);
        assert_eq!(info(&quoted("10.0.0.9", (12, 0), 0x1400_0000)), 20);
        assert_eq!(info(&quoted("fe80::9", (2, 0), 1280)), 1280);
    }
}
