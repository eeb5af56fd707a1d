//! The paths of a domain that stand from the start, and its classes.

use crate::classes::Classes;
use crate::domain::engine::Engine;
use crate::stack::set_limits;
use silk_path::{Attr, Attrs, Endpoint};
use silk_sched::{Member, Terms};
use std::net::Ipv6Addr;
use std::sync::Arc;

impl Engine {
    /// Takes new classes and limits over. Paths keep the class they were made in.
    pub fn set_classes(&mut self, classes: Arc<Classes>) {
        set_limits(&mut self.core.paths, &classes);
        self.classes = classes;
    }

    /// Makes the paths that stand from the start, of either IP: ARP and neighbour discovery where
    /// the link is ours, ICMP, the path for fragments, and the one for TCP segments of nobody.
    ///
    /// # Errors
    /// Which path could not be made, and why.
    pub fn stand(&mut self, owns_link: bool) -> Result<(), String> {
        let now = silk_executor::clock::now();
        // They wait for whoever comes.
        let listen = Attrs::new().with(Attr::Listen(true));
        let listen6 = listen.with(Attr::Local(Endpoint::v6(Ipv6Addr::UNSPECIFIED, 0)));
        let six = self.core.paths.graph().modules().of_kind("ip6").is_some();
        for (kind, attrs, wanted) in [
            ("arp", listen, owns_link),
            ("ip", listen, true),
            ("icmp", listen, true),
            ("tcp", listen, true),
            ("nd", listen, owns_link),
            ("igmp", listen, owns_link),
            ("mld", listen, owns_link && six),
            ("ip6", listen, true),
            ("icmp6", listen, true),
            ("tcp", listen6, six),
        ] {
            let Some(top) = self.core.paths.graph().modules().of_kind(kind).filter(|_| wanted) else {
                continue;
            };
            let attrs = attrs.with(Attr::InputQueue(256)).with(Attr::Class(self.classes.default as u8));
            let id = self
                .core
                .paths
                .create(top, attrs, None, now, &mut self.core.port)
                .map_err(|error| format!("no {kind} path: {error}"))?;
            if matches!(kind, "arp" | "nd") && self.siblings.len() > 1 {
                self.answers.push(id);
            }
            let highest = self.classes.waiting_terms(Terms::PRIORITIES - 1);
            self.core
                .policy
                .admit(Member(id.index), highest)
                .or_else(|_| self.core.policy.admit(Member(id.index), self.classes.waiting_terms(0)))
                .map_err(|refused| format!("the policy refuses the {kind} path: {refused}"))?;
        }
        Ok(())
    }
}
