//! What socket options are called, for people who read what silk left to Linux. Only those stand here that silk does not serve
//! and programs are known to set; others are told by their numbers.

use libc::c_int;

const SOCKET: [(c_int, &str); 13] = [
    (libc::SO_BINDTODEVICE, "SO_BINDTODEVICE"),
    (libc::SO_BUSY_POLL, "SO_BUSY_POLL"),
    (libc::SO_ATTACH_FILTER, "SO_ATTACH_FILTER"),
    (libc::SO_ATTACH_BPF, "SO_ATTACH_BPF"),
    (libc::SO_ATTACH_REUSEPORT_CBPF, "SO_ATTACH_REUSEPORT_CBPF"),
    (libc::SO_ATTACH_REUSEPORT_EBPF, "SO_ATTACH_REUSEPORT_EBPF"),
    (libc::SO_MARK, "SO_MARK"),
    (libc::SO_PASSCRED, "SO_PASSCRED"),
    (libc::SO_PRIORITY, "SO_PRIORITY"),
    (libc::SO_RXQ_OVFL, "SO_RXQ_OVFL"),
    (libc::SO_SELECT_ERR_QUEUE, "SO_SELECT_ERR_QUEUE"),
    (libc::SO_TIMESTAMPING, "SO_TIMESTAMPING"),
    (libc::SO_ZEROCOPY, "SO_ZEROCOPY"),
];
const IP: [(c_int, &str); 7] = [
    (libc::IP_BIND_ADDRESS_NO_PORT, "IP_BIND_ADDRESS_NO_PORT"),
    (libc::IP_FREEBIND, "IP_FREEBIND"),
    (21, "IP_MINTTL"),
    (41, "IP_MSFILTER"),
    (libc::IP_OPTIONS, "IP_OPTIONS"),
    (libc::IP_RECVOPTS, "IP_RECVOPTS"),
    (libc::IP_TRANSPARENT, "IP_TRANSPARENT"),
];
const IPV6: [(c_int, &str); 6] = [
    (libc::IPV6_FREEBIND, "IPV6_FREEBIND"),
    (libc::IPV6_FLOWINFO, "IPV6_FLOWINFO"),
    (73, "IPV6_MINHOPCOUNT"),
    (libc::IPV6_MTU, "IPV6_MTU"),
    (libc::IPV6_TRANSPARENT, "IPV6_TRANSPARENT"),
    (libc::IPV6_RECVRTHDR, "IPV6_RECVRTHDR"),
];
const TCP: [(c_int, &str); 10] = [
    (libc::TCP_FASTOPEN, "TCP_FASTOPEN"),
    (libc::TCP_FASTOPEN_CONNECT, "TCP_FASTOPEN_CONNECT"),
    (38, "TCP_AO_ADD_KEY"),
    (libc::TCP_MD5SIG, "TCP_MD5SIG"),
    (libc::TCP_REPAIR, "TCP_REPAIR"),
    (libc::TCP_SAVE_SYN, "TCP_SAVE_SYN"),
    (libc::TCP_THIN_DUPACK, "TCP_THIN_DUPACK"),
    (libc::TCP_THIN_LINEAR_TIMEOUTS, "TCP_THIN_LINEAR_TIMEOUTS"),
    (libc::TCP_ULP, "TCP_ULP"),
    (libc::TCP_WINDOW_CLAMP, "TCP_WINDOW_CLAMP"),
];

/// A call about an option, as people write it.
pub fn told(call: &str, level: c_int, name: c_int) -> String {
    let known: &[_] = match level {
        libc::SOL_SOCKET => &SOCKET,
        libc::IPPROTO_IP => &IP,
        libc::IPPROTO_IPV6 => &IPV6,
        libc::IPPROTO_TCP => &TCP,
        _ => &[],
    };
    match known.iter().find(|(number, _)| *number == name) {
        Some((_, option)) => format!("{call}({option})"),
        None => format!("{call}({level}, {name})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_told_by_their_names_where_these_are_known() {
        assert_eq!(told("setsockopt", 6, 23), "setsockopt(TCP_FASTOPEN)");
        assert_eq!(told("getsockopt", 1, 23), "getsockopt(1, 23)");
        assert_eq!(told("getsockopt", 77, 1), "getsockopt(77, 1)");
    }
}
