//! What the classifier's tables hold of the configuration.

use crate::classes::Classes;
use crate::settings::{Settings, owns_link};
use silk_path::classify::{ClassRule, Domains, Owned, Tables};

/// Writes addresses, rules and domains into the classifier's tables, all at once.
///
/// # Errors
/// There are more addresses or rules than the tables hold.
pub fn configure(tables: &Tables, settings: &Settings, classes: &Classes) -> Result<(), String> {
    let own = owns_link(&settings.config);
    let rules: Vec<ClassRule> = classes
        .rules
        .iter()
        .map(|(class, rule)| ClassRule {
            source: rule.source.map(|source| (source.address(), source.length())),
            dscp: rule.dscp.map(|dscp| dscp.get()),
            local_port: rule.local_port,
            domain: classes.domain(*class) as u8,
        })
        .collect();
    let default = classes.domain(classes.default) as u8;
    let domains = Domains { default, fragment: default, control: default };
    // On a shared interface ARP, echo and fragments stay Linux's; errors about our own
    // packets come to us all the same.
    let owned = Owned { arp: own, icmp: own, fragments: own };
    tables.configure(owned, domains, &rules, &settings.addresses).map_err(|_| {
        "the interface has more addresses, or the classes more rules, than the classifier holds".into()
    })
}
