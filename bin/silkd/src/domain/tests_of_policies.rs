//! What the configuration says of scheduling, as the paths of an engine are chosen: nothing here knows a clock.

use super::engine::Engine;
use super::rig;
use crate::classes::terms_of;
use silk_config::Config;
use silk_instant::Instant;
use silk_path::{Attr, Attrs, PathId};
use silk_sched::Member;
use std::time::Duration;

const RUN: Duration = Duration::from_micros(100);

/// A path of a class, as one is admitted when a connection comes.
fn path_of(engine: &mut Engine, class: usize) -> PathId {
    let top = engine.core.paths.graph().modules().of_kind("ip").unwrap();
    let attrs = Attrs::new().with(Attr::Class(class as u8));
    let now = Instant::from_millis(0);
    let id = engine.core.paths.create(top, attrs, None, now, &mut engine.core.port).unwrap();
    engine.admit(id, class);
    id
}

/// How many of a thousand runs each of these has, where all always have something to do.
fn runs_of(engine: &mut Engine, paths: &[PathId]) -> Vec<usize> {
    let mut now = Instant::from_millis(1000);
    for path in paths {
        engine.core.policy.ready(Member(path.index), now, None);
    }
    let mut runs = vec![0; paths.len()];
    for _ in 0..1000 {
        let member = engine.core.choose(now).unwrap();
        now += RUN;
        engine.core.policy.charge(member, RUN, now);
        engine.core.policy.ready(member, now, None);
        runs[paths.iter().position(|path| path.index == member.0).unwrap()] += 1;
    }
    runs
}

/// Classes with these keys, the last one the default.
fn classes(all: &[&str]) -> String {
    let class = |(n, keys): (usize, &&str)| {
        let whose =
            if n + 1 == all.len() { "default = true".into() } else { format!("local_port = {}", n + 1) };
        format!("[[class]]\nname = \"c{n}\"\n{whose}\n{keys}\n")
    };
    all.iter().enumerate().map(class).collect()
}

fn runs(scheduler: &str, all: &[&str]) -> Vec<usize> {
    let mut engine = rig::engine(&format!("{scheduler}\n{}", classes(all)));
    let paths: Vec<_> = (0..all.len()).map(|class| path_of(&mut engine, class)).collect();
    runs_of(&mut engine, &paths)
}

fn policy(name: &str) -> String {
    format!("[scheduler]\npolicy = \"{name}\"")
}

fn within(runs: usize, wanted: usize) -> bool {
    runs.abs_diff(wanted) <= 10
}

#[test]
fn paths_of_wfq_have_shares_by_the_weights_of_their_classes() {
    let runs = runs(&policy("wfq"), &["weight = 6", "weight = 3", ""]);
    assert!(within(runs[0], 600) && within(runs[1], 300) && within(runs[2], 100), "{runs:?}");
}

#[test]
fn a_path_of_bert_has_what_is_reserved_for_it_and_the_others_the_rest() {
    let reserve = "reserve = { budget = \"3ms\", period = \"10ms\" }";
    let runs = runs(&policy("bert"), &[reserve, "", ""]);
    // Linux has half of the processor, so it is so much more of what paths have.
    assert!(runs[0] >= 590 && runs[1] >= 190 && within(runs[1], runs[2]), "{runs:?}");
}

#[test]
fn of_fixed_priorities_the_higher_has_all() {
    // A device in memory has one domain.
    assert_eq!(runs(&policy("fixed-priority"), &["priority = 3", "priority = 1"]), [1000, 0]);
}

#[test]
fn paths_of_edf_and_of_deadline_workahead_run_in_the_order_of_their_delays() {
    for name in ["edf", "deadline-workahead"] {
        let reserve = "reserve = { budget = \"1ms\", period = \"10ms\" }";
        let delays = ["9ms", "1ms", "5ms"].map(|delay| format!("delay = \"{delay}\"\n{reserve}"));
        let text = format!("{}\n{}", policy(name), classes(&delays.each_ref().map(String::as_str)));
        let mut engine = rig::engine(&text);
        let paths = [0, 1, 2].map(|class| path_of(&mut engine, class).index);
        let now = Instant::from_millis(1000);
        paths.iter().for_each(|path| engine.core.policy.ready(Member(*path), now, None));
        let order = [0; 3].map(|_| {
            let member = engine.core.choose(now).unwrap();
            engine.core.policy.charge(member, RUN, now);
            member.0
        });
        assert_eq!(order, [paths[1], paths[2], paths[0]], "{name}");
    }
}

#[test]
fn a_path_for_whose_reservation_there_is_no_room_keeps_its_delay() {
    let most = "delay = \"5ms\"\nreserve = { budget = \"6ms\", period = \"10ms\" }";
    for name in ["edf", "deadline-workahead"] {
        let text = format!("{}\n{}", policy(name), classes(&[most, "delay = \"9ms\""]));
        let mut engine = rig::engine(&text);
        let [_, beyond, later] = [0, 0, 1].map(|class| path_of(&mut engine, class));
        let now = Instant::from_millis(1000);
        [later, beyond].iter().for_each(|path| engine.core.policy.ready(Member(path.index), now, None));
        assert_eq!(engine.core.choose(now), Some(Member(beyond.index)), "{name}");
    }
}

#[test]
fn what_a_class_may_reserve_its_policy_has_room_for() {
    let shared = |kind: &str| format!("[[policy]]\nname = \"p\"\nkind = \"{kind}\"\nshare = \"33.3333%\"");
    for (scheduler, most) in [
        (policy("bert"), 495_000),
        (policy("edf"), 1_000_000),
        (shared("bert"), 164_999),
        (shared("edf"), 166_666),
    ] {
        let reserving = |budget: u32| {
            let reserve = format!("reserve = {{ budget = \"{budget}us\", period = \"1s\" }}");
            format!(
                "[device]\nkind = \"link\"\naddress = \"10.0.0.1/24\"\n{scheduler}\n{}",
                classes(&[&reserve])
            )
        };
        let config = Config::parse("here", &reserving(most)).unwrap();
        let terms = terms_of(&config.classes[0]);
        let mut policy = crate::stack::policy(&config, 1).unwrap();
        assert_eq!(policy.admit(Member(0), terms), Ok(()), "{scheduler}");
        assert!(Config::parse("here", &reserving(most + 1)).is_err(), "{scheduler}");
    }
}

/// A paced sender works by its timers.
#[test]
fn what_a_path_does_by_its_timers_it_does_when_the_policy_has_chosen_it() {
    let mut engine = rig::engine(&classes(&["priority = 3", ""]));
    let preferred = path_of(&mut engine, 0);
    // ARP announces our address a few times.
    let announcing =
        |engine: &Engine| engine.core.paths.iter().map(|path| path.state.deadline()).min().unwrap();
    let now = announcing(&engine);
    assert_ne!(now, Instant::FAR);
    engine.expire(Instant::from_nanos(now.nanos() - 5_000_000));
    assert!(engine.is_idle(), "nothing is due");
    let now = now + Duration::from_millis(5);
    engine.expire(now);
    engine.core.wake(preferred, now);
    let mut order = Vec::new();
    while let Some(member) = engine.core.choose(now) {
        let (id, before) = (engine.core.path_at(member, now).unwrap(), announcing(&engine));
        engine.activity(id, now);
        order.push((id == preferred, announcing(&engine) > before));
        engine.core.charge(id, member, now, now + RUN);
        assert_eq!(engine.core.paths.path(id).unwrap().state.account.cpu_path, RUN.as_nanos() as u64);
    }
    // What stands from the start has the highest priority there is.
    assert_eq!(order, [(false, true), (true, false)]);
    assert_eq!(engine.core.used, RUN * 2);
    engine.expire(now);
    assert!(engine.is_idle(), "and once");
}

#[test]
fn policies_beside_each_other_have_their_shares_and_order_their_own() {
    let policies = "[[policy]]\nname = \"media\"\nkind = \"edf\"\nshare = \"30%\"\n\
                    [[policy]]\nname = \"web\"\nkind = \"fixed-priority\"\nshare = \"50%\"\n\
                    [[policy]]\nname = \"rest\"\nkind = \"wfq\"\nshare = \"20%\"\n";
    let all = [
        "policy = \"media\"\ndelay = \"5ms\"",
        "policy = \"web\"\npriority = 2",
        "policy = \"web\"",
        "policy = \"rest\"\nweight = 3",
        "policy = \"rest\"",
    ];
    let each = runs(policies, &all);
    assert!(within(each[0], 300) && within(each[1], 500) && each[2] == 0, "{each:?}");
    assert!(within(each[3], 150) && within(each[4], 50), "{each:?}");
    // What one does not need is the others'.
    let mut engine = rig::engine(&format!("{policies}\n{}", classes(&all)));
    let paths = [1, 4].map(|class| path_of(&mut engine, class));
    let two = runs_of(&mut engine, &paths);
    assert!(within(two[0], 714) && within(two[1], 286), "{two:?}");
}
