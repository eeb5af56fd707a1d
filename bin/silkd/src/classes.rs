//! Which domain serves what: the classes of the configuration, ordered into domains by
//! priority (design §6, SILK §4.2).
//!
//! One priority is one domain; domain 0 has the lowest. With a policy that divides the CPU,
//! or a device with a single receive ring, all classes live in domain 0 and its policy tells
//! them apart.

use silk_config::{Class, Config, DeviceKind, Policy, Rule};
use std::net::Ipv4Addr;

/// The classes in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    /// In the order of the configuration, each with the domain that serves it.
    pub classes: Vec<(Class, usize)>,
    /// What is looked at, the first match wins; with the class it leads to.
    pub rules: Vec<(usize, Rule)>,
    /// The class of what matches no rule.
    pub default: usize,
    /// The priority of each domain, rising.
    pub priorities: Vec<u32>,
}

impl Classes {
    /// The classes of a configuration.
    pub fn new(config: &Config) -> Self {
        let mut priorities: Vec<u32> = config.classes.iter().map(|class| class.priority.into()).collect();
        priorities.sort_unstable();
        priorities.dedup();
        if config.scheduler.policy != Policy::FixedPriority || config.device.kind != DeviceKind::Xdp {
            priorities.truncate(1);
        }
        let domain =
            |class: &Class| priorities.iter().position(|p| *p == u32::from(class.priority)).unwrap_or(0);
        Self {
            classes: config.classes.iter().map(|class| (class.clone(), domain(class))).collect(),
            rules: config.rules().collect(),
            default: config.default_class(),
            priorities,
        }
    }

    /// The class of a packet.
    pub fn class_of(&self, remote: Ipv4Addr, dscp: u8, port: u16) -> usize {
        let rule = self.rules.iter().find(|(_, rule)| rule.matches(remote, dscp, port));
        rule.map_or(self.default, |(class, _)| *class)
    }

    /// The domain that serves a class.
    pub fn domain(&self, class: usize) -> usize {
        self.classes.get(class).map_or(0, |(_, domain)| *domain)
    }

    /// The domain of a packet.
    pub fn domain_of(&self, remote: Ipv4Addr, dscp: u8, port: u16) -> usize {
        self.domain(self.class_of(remote, dscp, port))
    }

    /// How many domains there are.
    pub fn domains(&self) -> usize {
        self.priorities.len()
    }

    /// The name of a class.
    pub fn name(&self, class: usize) -> &str {
        self.classes.get(class).map_or("?", |(class, _)| &class.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(device: &str) -> Classes {
        let text = format!(
            "[device]\nkind = \"{device}\"\ninterface = \"eth0\"\naddress = \"10.0.0.1/24\"\n\
             [[class]]\nname = \"preferred\"\npriority = 2\nsource = [\"10.99.0.3/32\"]\n\
             [[class]]\nname = \"standard\"\npriority = 0\ndefault = true\n"
        );
        let text = if device == "xdp" { text.replace("address = \"10.0.0.1/24\"\n", "") } else { text };
        Classes::new(&Config::parse("test", &text).unwrap_or_else(|faults| panic!("{faults}")))
    }

    #[test]
    fn the_lowest_priority_is_domain_zero() {
        let classes = classes("xdp");
        assert_eq!(classes.priorities, [0, 2]);
        assert_eq!(classes.domain_of(Ipv4Addr::new(10, 99, 0, 3), 0, 80), 1);
        assert_eq!(classes.domain_of(Ipv4Addr::new(10, 99, 0, 2), 0, 80), 0);
    }

    #[test]
    fn a_single_receive_ring_is_a_single_domain() {
        let classes = classes("packet");
        assert_eq!(classes.domains(), 1);
        assert_eq!(classes.class_of(Ipv4Addr::new(10, 99, 0, 3), 0, 80), 0);
        assert_eq!(classes.domain_of(Ipv4Addr::new(10, 99, 0, 3), 0, 80), 0);
    }
}
