//! Real programs, unmodified, over real daemons: each test builds two hosts in network namespaces, runs
//! silkd on one of them, and lets a program there talk to one over Linux's own stack on the other. What
//! arrives is compared byte for byte, and Linux's counters on silk's host must not have seen it.
//!
//! Needs root, and the daemon and the preload library beside the command (`cargo build` makes them); where
//! that is missing each test says SKIPPED aloud.

mod advertised;
mod anticipation;
mod apache;
mod arriving;
mod at_the_same_moment;
mod behaviour;
mod by_reference;
mod churn;
mod clients;
mod code_points;
mod conflicts;
mod connecting;
mod datagrams_here;
mod destinations;
mod devices;
mod edges;
mod errors;
mod far;
mod faults;
mod files;
mod go;
mod groups;
mod groups_here;
mod handlers;
mod host;
mod hostile;
mod interfaces;
mod iperf;
mod itself;
mod lanes;
mod last_holder;
mod listening;
mod many_paths;
mod modes;
mod moving;
mod named_paths;
mod names;
mod narrowing;
mod netem;
mod nginx;
mod nobody;
mod one_port;
mod only_six;
mod openings;
mod options;
mod overrun;
mod own_machine;
mod packet_filter;
mod policies;
mod priority;
mod programs;
mod python;
mod queues;
mod random_calls;
mod receive_buffers;
mod redis;
mod refusing;
mod reloading;
mod resetting;
mod reusing;
mod routes;
mod rules;
mod segments;
mod service;
mod several_processes;
mod sharing_datagrams;
mod six;
mod vlan;
mod waiting_threads;
mod wishing;
