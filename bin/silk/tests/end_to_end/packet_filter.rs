//! Linux's packet filter (nft(8)) and IPsec (ip-xfrm(8)) beside silk: programs on silk are not behind them, which the daemon says, but for what stands
//! at the ingress of the interface.

use crate::files::{fetch_each, site};
use crate::host::Silk;
use crate::programs::{said, text, within};
use silk_testkit::netns::{CLIENT, INTERFACE, PREFERRED, SERVER};
use std::net::Ipv4Addr;
use std::time::Duration;

const CLASSES: &str = "[[class]]\nname = \"all\"\ndefault = true\n";

/// A daemon on a host whose filter has these rules.
fn behind(rules: &str, mode: &str) -> Option<Silk> {
    let device = format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\nmode = \"{mode}\"\n");
    let mut silk = Silk::without_daemon(&device, CLASSES)?;
    silk.write("rules.nft", rules);
    text(silk.on_linux("nft").args(["-f", "rules.nft"]));
    silk.start_daemon();
    Some(silk)
}

fn warns(silk: &Silk) -> bool {
    silk.log("silkd").contains("not behind Linux's packet filter")
}

#[test]
fn that_programs_are_not_behind_it_is_said() {
    let rules = "table inet guard {
            chain in { type filter hook input priority 0; tcp dport 80 drop; }
        }
        table ip6 shut {
            chain out { type filter hook output priority 0; policy drop; }
        }";
    let Some(silk) = behind(rules, "auto") else { return };
    let told = within(Duration::from_secs(5), || {
        silk.log("silkd")
            .contains("not behind Linux's packet filter (inet guard, ip6 shut): whoever it keeps")
    });
    assert!(told, "{}", silk.log("silkd"));
}

#[test]
fn that_programs_are_not_behind_ipsec_is_said() {
    let Some(mut silk) = Silk::start() else { return };
    let says = |silk: &Silk| silk.log("silkd").contains("not behind Linux's IPsec");
    assert!(!says(&silk), "{}", silk.log("silkd"));
    let policy =
        "xfrm policy add dst 10.1.0.0/24 dir out tmpl src 10.0.0.1 dst 10.1.0.1 proto esp mode tunnel";
    text(silk.on_linux("ip").args(policy.split(' ')));
    silk.restart_daemon(Duration::from_secs(10));
    assert!(says(&silk), "{}", silk.log("silkd"));
}

#[test]
fn a_filter_that_keeps_nobody_from_a_program_is_no_matter() {
    let rules = "table inet filter {
            chain input { type filter hook input priority 0; policy accept; }
            chain forward { type filter hook forward priority 0; policy drop; }
            chain none { tcp dport 80 drop; }
        }
        table ip nat {
            chain pre { type nat hook prerouting priority -100; tcp dport 81 redirect to :82; }
        }
        table arp some {
            chain in { type filter hook input priority 0; counter; }
        }";
    let Some(silk) = behind(rules, "auto") else { return };
    assert!(!warns(&silk), "{}", silk.log("silkd"));
}

#[test]
fn a_chain_at_the_ingress_holds_where_packets_are_told_apart_there() {
    let guard = format!(
        "table netdev guard {{
            chain in {{ type filter hook ingress device {INTERFACE} priority 0; ip saddr {PREFERRED} tcp dport 80 drop; }}
        }}"
    );
    let Some(silk) = behind(&guard, "ingress") else { return };
    assert!(!warns(&silk), "{}", silk.log("silkd"));
    site(&silk);
    let _server = silk.serve("python3", &["-u", "-m", "http.server", "--directory", "site", "80"], 80);
    let from = |source: Ipv4Addr| {
        let mut curl = silk.on_peer("curl");
        curl.args(["--interface", &source.to_string()]);
        curl
    };
    fetch_each(|| from(CLIENT), SERVER, 80);
    let url = format!("http://{SERVER}/1449");
    assert!(!said(from(PREFERRED).args(["-sf", "--max-time", "3", &url])).ok, "it is kept out");
    silk.linux_saw_nothing();
}
