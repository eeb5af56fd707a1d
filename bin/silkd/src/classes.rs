//! Which domain serves what: the classes of the configuration, ordered into domains by
//! priority (SILK §4.2).
//!
//! One priority is one domain; domain 0 has the lowest. With a policy that divides the CPU,
//! or a device with a single receive ring, all classes live in domain 0 and its policy tells
//! them apart.

use silk_config::{Class, Config, Congestion, DeviceKind, Policy, Rule};
use silk_sched::{Reservation, Terms};
use std::net::IpAddr;

/// The classes in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    /// By their numbers, which they keep while the daemon runs, each with the domain that serves it.
    pub classes: Vec<(Class, usize)>,
    /// The numbers of those in force, in the order of the configuration. The others have been in force, and may have paths yet.
    pub in_force: Vec<usize>,
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
        let together = config.scheduler.policy != Policy::FixedPriority || !config.policies.is_empty();
        if together || config.device.kind == DeviceKind::Link {
            priorities.truncate(1);
        }
        let domain =
            |class: &Class| priorities.iter().position(|p| *p == u32::from(class.priority)).unwrap_or(0);
        Self {
            classes: config.classes.iter().map(|class| (class.clone(), domain(class))).collect(),
            in_force: (0..config.classes.len()).collect(),
            rules: config.rules().collect(),
            default: config.default_class(),
            priorities,
        }
    }

    /// The same classes with the numbers that those of their names had `before`, so that paths keep their class. `None`: in all
    /// there have been more of them than there are numbers.
    pub fn after(self, before: &Self) -> Option<Self> {
        let mut classes = before.classes.clone();
        let number_of = |(class, domain): (Class, usize)| {
            let known = classes.iter().position(|(known, _)| known.name == class.name);
            let number = known.unwrap_or(classes.len());
            match classes.get_mut(number) {
                Some(place) => *place = (class, domain),
                None => classes.push((class, domain)),
            }
            number
        };
        let in_force: Vec<usize> = self.classes.into_iter().map(number_of).collect();
        let number = |place: usize| in_force.get(place).copied().unwrap_or(0);
        let rules = self.rules.into_iter().map(|(place, rule)| (number(place), rule)).collect();
        let default = number(self.default);
        let fits = u8::try_from(classes.len().saturating_sub(1)).is_ok();
        fits.then_some(Self { classes, rules, default, in_force, priorities: self.priorities })
    }

    /// Those in force.
    fn current(&self) -> impl Iterator<Item = &(Class, usize)> {
        self.in_force.iter().filter_map(|number| self.classes.get(*number))
    }

    /// The number of the first class in force that a domain serves.
    pub fn first_of(&self, domain: usize) -> Option<usize> {
        let is_its = |number: &&usize| self.classes.get(**number).is_some_and(|(_, own)| *own == domain);
        self.in_force.iter().find(is_its).copied()
    }

    /// Puts all classes into one domain: the device has one receive ring after all.
    pub fn join(&mut self) {
        self.priorities.truncate(1);
        self.classes.iter_mut().for_each(|(_, domain)| *domain = 0);
    }

    /// The class of a packet.
    pub fn class_of(&self, remote: IpAddr, dscp: u8, port: u16) -> usize {
        let rule = self.rules.iter().find(|(_, rule)| rule.matches(remote, dscp, port));
        rule.map_or(self.default, |(class, _)| *class)
    }

    /// The domain that serves a class.
    pub fn domain(&self, class: usize) -> usize {
        self.classes.get(class).map_or(0, |(_, domain)| *domain)
    }

    /// The domain of a packet.
    pub fn domain_of(&self, remote: IpAddr, dscp: u8, port: u16) -> usize {
        self.domain(self.class_of(remote, dscp, port))
    }

    /// The domain of threads that run at `priority`: the most important one up to it.
    pub fn domain_at(&self, priority: u32) -> usize {
        self.priorities.partition_point(|own| *own <= priority).saturating_sub(1)
    }

    /// How many domains there are.
    pub fn domains(&self) -> usize {
        self.priorities.len()
    }

    /// The priority of a class.
    pub fn priority(&self, class: usize) -> u32 {
        self.classes.get(class).map_or(0, |(class, _)| class.priority.into())
    }

    /// Up to which priority a program may raise its paths of a class.
    pub fn max_priority(&self, class: usize) -> u8 {
        self.classes.get(class).map_or(0, |(class, _)| class.max_priority)
    }

    /// The congestion control of a class's connections, where it has one of its own.
    pub fn congestion(&self, class: usize) -> Option<silk_tcp::Algorithm> {
        self.classes.get(class).and_then(|(class, _)| class.congestion).map(algorithm)
    }

    /// Whether every priority has a domain to itself.
    pub fn are_apart(&self) -> bool {
        self.current().all(|(class, domain)| {
            self.priorities.get(*domain).is_some_and(|priority| *priority == class.priority.into())
        })
    }

    /// The terms on which a path of `own` runs that has been given `priority`: its class's for
    /// its class's priority; else those of the most important class up to that priority, or of
    /// the least important one if all are above.
    pub fn terms(&self, own: usize, priority: u8) -> Terms {
        let all = || self.current().map(|(class, _)| class);
        let own = self.classes.get(own).map(|(class, _)| class).filter(|class| class.priority == priority);
        let below = || all().filter(|class| class.priority <= priority).max_by_key(|class| class.priority);
        let least = || all().min_by_key(|class| class.priority);
        let terms = own.or_else(below).or_else(least).map_or_else(Terms::default, terms_of);
        Terms { priority: priority.min(Terms::PRIORITIES - 1), ..terms }
    }

    /// The terms of paths that wait for whoever comes, at this priority: by the policy of the default class, whose most
    /// important class they are no worse off than. They have little to do each time.
    pub fn waiting_terms(&self, priority: u8) -> Terms {
        let policy = self.classes.get(self.default).map_or(0, |(class, _)| class.policy);
        let beside =
            || self.current().map(|(class, _)| terms_of(class)).filter(|terms| terms.policy == policy);
        let usual = Terms::with_priority(priority.min(Terms::PRIORITIES - 1));
        Terms {
            policy,
            delay: beside().filter_map(|terms| terms.delay).min(),
            weight: beside().map(|terms| terms.weight).fold(usual.weight, u32::max),
            ..usual
        }
    }

    /// How many openings a second its classes allow together; `None`: one of them has no limit.
    pub fn openings(&self, domain: usize) -> Option<u64> {
        let own = self.current().filter(|(_, own)| *own == domain);
        own.map(|(class, _)| class.limits.openings.map(u64::from)).sum()
    }

    /// The name of a class.
    pub fn name(&self, class: usize) -> &str {
        self.classes.get(class).map_or("?", |(class, _)| &class.name)
    }
}

/// What a class asks of the scheduler.
pub fn terms_of(class: &Class) -> Terms {
    Terms {
        priority: class.priority.min(Terms::PRIORITIES - 1),
        weight: class.weight,
        reserved: class.reserve.map(|r| Reservation { budget: r.budget, period: r.period }),
        delay: class.delay,
        important: class.important,
        policy: class.policy,
        ..Terms::default()
    }
}

/// The algorithm of that name.
pub fn algorithm(name: Congestion) -> silk_tcp::Algorithm {
    match name {
        Congestion::Cubic => silk_tcp::Algorithm::Cubic,
        Congestion::Reno => silk_tcp::Algorithm::Reno,
        Congestion::Bbr => silk_tcp::Algorithm::Bbr,
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
        assert_eq!(classes.domain_of(IpAddr::from([10, 99, 0, 3]), 0, 80), 1);
        assert_eq!(classes.domain_of(IpAddr::from([10, 99, 0, 2]), 0, 80), 0);
    }

    #[test]
    fn who_waits_for_anybody_is_no_worse_off_than_the_best_of_its_policy() {
        let text = "[device]\ninterface = \"eth0\"\n[scheduler]\npolicy = \"edf\"\n\
                    [[class]]\nname = \"a\"\ndelay = \"5ms\"\nweight = 7\nsource = \"10.0.0.1\"\n\
                    [[class]]\nname = \"b\"\ndelay = \"9ms\"\ndefault = true\n";
        let classes = Classes::new(&Config::parse("test", text).unwrap_or_else(|faults| panic!("{faults}")));
        let terms = classes.waiting_terms(3);
        assert_eq!(
            (terms.priority, terms.weight, terms.delay),
            (3, 7, Some(std::time::Duration::from_millis(5)))
        );
    }

    #[test]
    fn a_single_receive_ring_is_a_single_domain() {
        let mut classes = classes("packet");
        assert_eq!(classes.domains(), 2);
        classes.join();
        assert_eq!((classes.domains(), classes.are_apart()), (1, false));
        assert_eq!(classes.class_of(IpAddr::from([10, 99, 0, 3]), 0, 80), 0);
        assert_eq!(classes.domain_of(IpAddr::from([10, 99, 0, 3]), 0, 80), 0);
    }

    #[test]
    fn a_priority_brings_the_terms_of_the_class_that_has_it() {
        let text = "[device]\ninterface = \"eth0\"\n[scheduler]\npolicy = \"wfq\"\n\
                    [[class]]\nname = \"heavy\"\npriority = 4\nweight = 8\nlocal_port = 80\n\
                    [[class]]\nname = \"twin\"\npriority = 2\nweight = 5\nlocal_port = 81\n\
                    [[class]]\nname = \"rest\"\npriority = 2\nweight = 3\ndefault = true\n";
        let classes = Classes::new(&Config::parse("test", text).unwrap_or_else(|faults| panic!("{faults}")));
        let terms =
            |own, priority| (classes.terms(own, priority).weight, classes.terms(own, priority).priority);
        assert_eq!([terms(2, 2), terms(1, 2)], [(3, 2), (5, 2)], "its own class's, where that has it");
        assert_eq!([terms(2, 4), terms(2, 9)], [(8, 4), (8, 9)]);
        assert_eq!([terms(0, 3).1, terms(0, 0).1], [3, 0]);
        assert!(!classes.are_apart());
        assert_eq!((classes.max_priority(0), classes.max_priority(2)), (4, 2));
    }

    /// Classes of one priority in this order, of which `b` is the default, each told by the port of its name.
    fn named(names: &[&str]) -> Classes {
        let class = |name: &&str| {
            let which = if *name == "b" {
                "default = true".into()
            } else {
                format!("local_port = {}", name.as_bytes()[0])
            };
            format!("[[class]]\nname = \"{name}\"\n{which}\n")
        };
        let text: String = names.iter().map(class).collect();
        let text = format!("[device]\ninterface = \"eth0\"\n{text}");
        Classes::new(&Config::parse("test", &text).unwrap_or_else(|faults| panic!("{faults}")))
    }

    #[test]
    fn classes_keep_their_numbers_whatever_comes_before_them() {
        let here = IpAddr::from([10, 99, 0, 3]);
        let of_port = |classes: &Classes, name: u8| classes.class_of(here, 0, name.into());
        let first = named(&["a", "b"]);
        let second = named(&["c", "b"]).after(&first).unwrap();
        assert_eq!(
            [b'a', b'b', b'c'].map(|port| of_port(&second, port)),
            [1, 1, 2],
            "`a` has no packets any more"
        );
        assert_eq!([0, 1, 2].map(|number| second.name(number)), ["a", "b", "c"]);
        assert_eq!((second.default, &second.in_force[..], second.first_of(0)), (1, &[2, 1][..], Some(2)));
        let third = named(&["b", "a"]).after(&second).unwrap();
        assert_eq!([b'a', b'b', b'c'].map(|port| of_port(&third, port)), [0, 1, 1]);
        let many = (0..300).try_fold(third, |classes, n| named(&["b", &format!("x{n}")]).after(&classes));
        assert_eq!(many, None, "a number is eight bits");
    }

    #[test]
    fn threads_are_told_of_by_the_domain_below_their_priority() {
        let classes = classes("xdp");
        assert!(classes.are_apart());
        assert_eq!([0, 1, 2, 9].map(|priority| classes.domain_at(priority)), [0, 0, 1, 1]);
    }
}
