//! Who may bind the low ports. Linux keeps those below `net.ipv4.ip_unprivileged_port_start` for programs with the capability to
//! (capabilities(7), `CAP_NET_BIND_SERVICE`). The daemon has it, and reserves ports for programs that may have given theirs up: it
//! must not lend it to them.

use std::fs;
use std::os::unix::fs::MetadataExt;

/// What the kernel calls the capability.
const NET_BIND_SERVICE: u32 = 10;

/// Whether the process with this kernel id may bind `port`; one that is not known may bind what everybody may.
pub fn may_bind(pid: Option<u32>, port: u16) -> bool {
    port == 0 || port >= first() || pid.is_some_and(has_right)
}

/// The first port that is everybody's, where the daemon is.
fn first() -> u16 {
    let said = fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    said.ok().and_then(|port| port.trim().parse().ok()).unwrap_or(1024)
}

/// Whether a process has the capability, and is of the daemon's user namespace, which it must hold in.
fn has_right(pid: u32) -> bool {
    let namespace =
        |of: &str| fs::metadata(format!("/proc/{of}/ns/user")).map(|of| (of.dev(), of.ino())).ok();
    let status = fs::read_to_string(format!("/proc/{pid}/status"));
    status.is_ok_and(|status| is_capable(&status))
        && namespace("self").is_some_and(|own| namespace(&pid.to_string()) == Some(own))
}

/// Whether a process has it by its status (proc(5)).
fn is_capable(status: &str) -> bool {
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    effective.is_some_and(|bits| bits >> NET_BIND_SERVICE & 1 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_capability_is_found_in_a_status() {
        assert!(is_capable("Name:\tx\nCapPrm:\t0\nCapEff:\t0000000000000400\nCapBnd:\t0\n"));
        assert!(is_capable("CapEff:\t000001ffffffffff\n"));
        for without in
            ["", "CapEff:\t0000000000000000", "CapEff:\t000001fffffffbff", "CapBnd:\t400", "CapEff:\tx"]
        {
            assert!(!is_capable(without), "{without:?}");
        }
    }

    #[test]
    fn high_ports_and_a_chosen_one_are_everybodys() {
        assert!(may_bind(None, 0) && may_bind(None, first().max(1)));
        assert!(first() == 0 || !may_bind(None, first() - 1) || first() == 1);
        assert!(!has_right(u32::MAX), "a process that there is not");
    }
}
