//! What is different between two configurations: what `silk reload` can apply to a running
//! daemon, and what needs a restart. Every field is taken apart by name, so that a new one
//! cannot be forgotten.

use crate::class::Class;
use crate::config::Config;
use crate::daemon::Control;
use crate::device::Device;
use crate::memory::Memory;
use crate::scheduler::{Listen, Scheduler};
use crate::tcp::{Keepalive, Tcp};

/// What differs, but for `[refuse]`: who is refused stands in its file, too, so those are compared where that is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reload {
    /// Which classes differ, in words: applied to a running daemon, all or nothing.
    pub classes: Vec<String>,
    /// Keys that differ and that a running daemon does not change, such as
    /// `device.interface`.
    pub restart: Vec<&'static str>,
}

impl Reload {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty() && self.restart.is_empty()
    }
}

/// Notes which of the named fields differ.
macro_rules! differences {
    ($into:expr, $section:literal, $old:expr, $new:expr, $type:ident { $($field:ident),* $(,)? } $(except { $($else:ident),* })?) => {{
        let $type { $($field,)* $($($else: _,)*)? } = $old;
        $(if *$field != $new.$field { $into.push(concat!($section, ".", stringify!($field))); })*
    }};
}

fn named<'c>(classes: &'c [Class], name: &str) -> Option<&'c Class> {
    classes.iter().find(|class| class.name == name)
}

/// What is different between classes, in words.
fn class_changes(old: &[Class], new: &[Class]) -> Vec<String> {
    let differ = new.iter().filter(|class| named(old, &class.name) != Some(class));
    let gone = old.iter().filter(|class| named(new, &class.name).is_none());
    let gone = gone.map(|class| format!("class {} is gone", class.name));
    let changes: Vec<_> = differ.map(|class| format!("class {}", class.name)).chain(gone).collect();
    if changes.is_empty() && old != new { vec!["the order of the classes".to_owned()] } else { changes }
}

impl Config {
    /// What differs in `new`.
    pub fn differences(&self, new: &Self) -> Reload {
        let mut keys = Vec::new();
        let Self {
            graph,
            device,
            further,
            scheduler,
            policies,
            listen,
            classes,
            refuse: _,
            memory,
            tcp,
            control,
        } = self;
        if *graph != new.graph {
            keys.push("graph");
        }
        differences!(
            keys,
            "device",
            device,
            new.device,
            Device {
                kind,
                interface,
                queues,
                ring,
                mtu,
                address,
                gateway,
                address6,
                gateway6,
                router_advertisements,
                redirects,
                vlan,
                mac,
                mode,
                napi,
                napi_cpu,
                receive,
                linux_packets
            }
            except { routes }
        );
        if device.routes != new.device.routes {
            keys.push("device.route");
        }
        if *further != new.further {
            keys.push("device");
        }
        differences!(
            keys,
            "scheduler",
            scheduler,
            new.scheduler,
            Scheduler { policy, extend, base_priority, realtime_cap, cpus, quantum, linux_share, watchdog }
        );
        if *policies != new.policies {
            keys.push("policy");
        }
        differences!(keys, "listen", listen, new.listen, Listen { priority, backlog, syn_backlog });
        differences!(
            keys,
            "memory",
            memory,
            new.memory,
            Memory { arena, receive_ring, send_ring, largest_ring, total, files }
        );
        differences!(keys, "tcp", tcp, new.tcp, Tcp {
            congestion, window_scaling, timestamps, sack, ecn, mtu_probing, initial_window, share_windows, min_rto,
            delayed_ack, syn_retries, syn_ack_retries, syn_cookies, retries, user_timeout_option, fin_wait, time_wait, time_wait_max,
        } except { keepalive });
        differences!(
            keys,
            "tcp.keepalive",
            &tcp.keepalive,
            new.tcp.keepalive,
            Keepalive { idle, interval, probes }
        );
        differences!(keys, "control", control, new.control, Control { socket, mode, group });
        Reload { classes: class_changes(classes, &new.classes), restart: keys }
    }
}
