//! A path's life: four phases of creation, messages both ways, turned around, timers, bells,
//! events and reports, limits, and an end that leaves nothing.

mod layers;

use core::time::Duration;
use silk_instant::Instant;
use silk_path::transform::{Rewrite, Rule};
use silk_path::*;

use layers::Habit::{self, *};
use layers::{LayerStage, Layers, Log};

#[derive(Default)]
struct World {
    sent: Vec<Vec<u8>>,
    delivered: Vec<Vec<u8>>,
    events: Vec<Event>,
    armed: Vec<Instant>,
    ticks: u64,
}

impl Port for World {
    fn transmit(&mut self, _: PathId, msg: &Message<'_>) -> Result<(), DropReason> {
        self.sent.push(msg.bytes().to_vec());
        Ok(())
    }
    fn deliver(&mut self, _: PathId, msg: &Message<'_>) -> Result<(), DropReason> {
        self.delivered.push(msg.bytes().to_vec());
        Ok(())
    }
    fn arm(&mut self, _: PathId, at: Instant) {
        self.armed.push(at);
    }
    fn event(&mut self, _: PathId, event: Event) {
        self.events.push(event);
    }
    fn request(&mut self, _: Request) {}
    fn random(&mut self) -> u64 {
        0
    }
    fn clock(&mut self) -> Option<Instant> {
        self.ticks += 1;
        Some(Instant::from_nanos(self.ticks * 500))
    }
}

/// Paths through a (top), b, c … and what their stages log.
struct Rig {
    paths: Paths,
    world: World,
    log: Log,
}

impl Rig {
    fn new(habits: &[Habit]) -> Self {
        Self::with_rules(habits, Vec::new())
    }

    fn with_rules(habits: &[Habit], rules: Vec<Box<dyn Rule>>) -> Self {
        let log = Log::default();
        let names = ["a", "b", "c", "d"];
        let layers: Vec<_> = names.into_iter().zip(habits.iter().copied()).collect();
        let mut spec = GraphSpec::default();
        for (n, (name, _)) in layers.iter().enumerate() {
            spec = spec.module(name, name, &[]);
            if n > 0 {
                spec = spec.link(&format!("{}.down", names[n - 1]), &format!("{name}.up"));
            }
            if layers[n].1 == Round {
                spec = spec.link(&format!("{name}.up"), &format!("{name}.up"));
            }
        }
        let graph =
            Graph::build(&spec, &Layers(layers, log.clone())).unwrap_or_else(|faults| panic!("{faults:?}"));
        Self { paths: Paths::new(graph, rules), world: World::default(), log }
    }

    fn try_create(&mut self, attrs: Attrs) -> Result<PathId, CreateError> {
        self.paths.create(ModuleId(0), attrs, None, Instant::ZERO, &mut self.world)
    }

    fn create(&mut self) -> PathId {
        let path = self.try_create(Attrs::new()).expect("nothing in its way");
        self.take_log();
        path
    }

    fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }

    fn up(&mut self, path: PathId, bytes: &[u8]) -> Outcome {
        let mut buffer = [&[0; 8], bytes].concat();
        let end = buffer.len();
        let mut msg = Message::new(&mut buffer, 8, end, Meta::default());
        self.paths.up(path, Instant::ZERO, &mut self.world, &mut msg)
    }

    fn down(&mut self, path: PathId, bytes: &[u8]) -> Outcome {
        let mut buffer = [&[0; 8], bytes].concat();
        let end = buffer.len();
        let mut msg = Message::new(&mut buffer, 8, end, Meta::default());
        self.paths.down(path, Instant::ZERO, &mut self.world, &mut msg)
    }

    fn destroy(&mut self, path: PathId) -> Statement {
        self.paths.destroy(path, Instant::ZERO, &mut self.world).expect("a live path")
    }
}

#[test]
fn creation_goes_through_its_phases_from_the_top() {
    let mut rig = Rig::new(&[Pass, Absent, Pass]);
    let path = rig.try_create(Attrs::new()).unwrap();
    let expected = ["create a", "create b", "create c", "establish a", "establish c", "start a", "start c"];
    assert_eq!(rig.take_log(), expected);
    let slots = rig.paths.path(path).unwrap().slots();
    let names: Vec<_> = slots.iter().map(|slot| rig.paths.graph().modules().name(slot.module)).collect();
    assert_eq!(names, ["c", "a"], "from the bottom; b decided and left no stage");
    let path = rig.paths.path(path).unwrap();
    let names: Vec<_> = path.modules().map(|module| rig.paths.graph().modules().name(module)).collect();
    assert_eq!(names, ["c", "b", "a"], "but the path leads through it");
}

#[test]
fn messages_run_to_both_ends() {
    let mut rig = Rig::new(&[Pass, Pass, Pass]);
    let path = rig.create();
    assert_eq!((rig.up(path, b"hello"), rig.down(path, b"there")), (Outcome::Done, Outcome::Done));
    assert_eq!(rig.take_log(), ["up c", "up b", "up a", "down a", "down b", "down c"]);
    assert_eq!(
        (&rig.world.delivered[..], &rig.world.sent[..]),
        (&[b"hello".to_vec()][..], &[b"cbathere".to_vec()][..])
    );
    let account = rig.paths.path(path).unwrap().state.account;
    assert_eq!((account.packets_in, account.bytes_in), (1, 5));
    assert_eq!((account.packets_out, account.bytes_out), (1, 8));
}

#[test]
fn the_back_link_turns_a_message_around() {
    let mut rig = Rig::new(&[Turn, Pass, Pass]);
    let path = rig.create();
    assert_eq!(rig.up(path, b"echo"), Outcome::Done);
    assert_eq!(rig.take_log(), ["up c", "up b", "up a", "down b", "down c"]);
    assert_eq!(rig.world.sent, [b"cbecho".to_vec()]);
}

#[test]
fn a_message_is_never_turned_into_a_running_stage() {
    let mut rig = Rig::new(&[Turn, Carry, Pass]);
    let path = rig.create();
    assert_eq!(rig.up(path, b"echo"), Outcome::Done);
    assert_eq!(rig.take_log(), ["up c", "up b", "up a", "carried Ok(()) b"]);
    assert!(rig.world.sent.is_empty());
    assert_eq!(rig.paths.path(path).unwrap().state.drops.of(DropReason::Reentrant), 1);
}

#[test]
fn a_drop_is_counted_once_wherever_it_happens() {
    let mut rig = Rig::new(&[Drop, Carry, Pass]);
    let path = rig.create();
    assert_eq!(rig.up(path, b"lost"), Outcome::Done, "the stage that carried it on consumed it");
    assert_eq!(rig.take_log().last().unwrap(), "carried Err(Unexpected) b");
    let drops = &rig.paths.path(path).unwrap().state.drops;
    assert_eq!((drops.of(DropReason::Unexpected), drops.total()), (1, 1));
}

#[test]
fn a_header_without_room_is_a_drop() {
    let mut rig = Rig::new(&[Pass, Pass]);
    let path = rig.create();
    let mut buffer = *b".data";
    let mut msg = Message::new(&mut buffer, 1, 5, Meta::default());
    let outcome = rig.paths.down(path, Instant::ZERO, &mut rig.world, &mut msg);
    assert_eq!(outcome, Outcome::Dropped(DropReason::NoHeadroom));
}

#[test]
fn a_failed_creation_leaves_nothing() {
    let mut rig = Rig::new(&[Hold, Pass, Refuse]);
    assert_eq!(rig.try_create(Attrs::new()), Err(CreateError::Gone));
    assert!(rig.take_log().ends_with(&["destroy a".into(), "destroy b".into(), "destroy c".into()]));
    let class = rig.paths.classes.of(0);
    assert_eq!((rig.paths.len(), class.paths(), class.memory()), (0, 0, 0));
    let mut rig = Rig::new(&[Hold, Pass, Pass]);
    assert_eq!(rig.try_create(Attrs::new().with(Attr::User(1, 99))), Err(CreateError::Missing("sense")));
    assert_eq!(rig.take_log(), ["create a", "create b", "create c", "destroy a", "destroy b"]);
    assert!(rig.paths.is_empty());
}

#[test]
fn destruction_returns_every_byte() {
    let mut rig = Rig::new(&[Hold, Pass]);
    let path = rig.create();
    let memory = rig.paths.path(path).unwrap().state.account.memory();
    assert_eq!(rig.paths.classes.of(0).memory(), memory);
    assert!(memory > 100);
    rig.up(path, b"x");
    let statement = rig.destroy(path);
    assert_eq!((statement.account.memory(), statement.account.packets_in), (0, 1));
    assert_eq!(rig.paths.classes.of(0).memory(), 0);
    assert_eq!(rig.paths.classes.of(0).past.packets_in, 1);
    assert_eq!(rig.up(path, b"x"), Outcome::Dropped(DropReason::NoPath));
}

#[test]
#[should_panic(expected = "ended with memory charged to it")]
fn a_stage_that_keeps_what_it_charged_is_found_out() {
    let mut rig = Rig::new(&[Hold]);
    let path = rig.create();
    let charged = rig.paths.path_mut(path).unwrap();
    // A stage that forgets: it takes its habit off before it is destroyed.
    charged.stage_mut::<LayerStage>().unwrap().habit = Pass;
    rig.destroy(path);
}

#[test]
fn a_name_is_never_taken_for_its_successors() {
    let mut rig = Rig::new(&[Pass]);
    let first = rig.create();
    rig.destroy(first);
    let second = rig.create();
    assert_eq!((first.index, rig.paths.at(first.index)), (second.index, Some(second)));
    assert!(rig.paths.path(first).is_none() && rig.paths.path(second).is_some());
    assert!(rig.paths.destroy(first, Instant::ZERO, &mut rig.world).is_none());
}

#[test]
fn a_class_at_its_limit_takes_no_more() {
    let mut rig = Rig::new(&[Pass]);
    rig.paths.classes.set_limits(1, Limits { paths: 1, ..Limits::NONE });
    let attrs = Attrs::new().with(Attr::Class(1));
    let first = rig.try_create(attrs).unwrap();
    assert_eq!(rig.try_create(attrs), Err(CreateError::Refused(Refused::ClassPaths)));
    rig.create();
    rig.destroy(first);
    assert!(rig.try_create(attrs).is_ok());
    assert_eq!((rig.paths.classes.of(1).paths(), rig.paths.classes.of(1).refused.paths), (1, 1));
}

#[test]
fn a_path_over_its_memory_is_refused_or_drops() {
    let mut rig = Rig::new(&[Greedy]);
    let path = rig.create();
    let base = rig.destroy(path).account.memory_peak;
    rig.paths.classes.set_limits(0, Limits { path_memory: base - 1, ..Limits::NONE });
    assert_eq!(rig.try_create(Attrs::new()), Err(CreateError::Refused(Refused::PathMemory)));
    rig.paths.classes.set_limits(0, Limits { path_memory: base + 1500, ..Limits::NONE });
    let path = rig.create();
    assert_eq!(rig.up(path, b"x"), Outcome::Done);
    assert_eq!(rig.up(path, b"x"), Outcome::Dropped(DropReason::NoMemory));
    rig.destroy(path);
}

#[test]
fn a_path_has_the_memory_that_it_was_granted_and_others_are_none_the_worse() {
    let mut rig = Rig::new(&[Greedy]);
    let other = rig.create();
    let base = rig.paths.path(other).unwrap().state.account.memory();
    let granted = |bytes| Attrs::new().with(Attr::Memory(bytes));
    assert_eq!(rig.try_create(granted(base - 1)), Err(CreateError::Refused(Refused::PathMemory)));
    let path = rig.try_create(granted(base + 1500)).unwrap();
    assert_eq!(
        (rig.up(path, b"x"), rig.up(path, b"x")),
        (Outcome::Done, Outcome::Dropped(DropReason::NoMemory))
    );
    assert_eq!((rig.up(other, b"x"), rig.up(other, b"x")), (Outcome::Done, Outcome::Done));
    rig.paths.path_mut(path).unwrap().state.account.set_memory_limit(base + 3000);
    assert_eq!(rig.up(path, b"x"), Outcome::Done);
    // A class's own limit holds for what was granted too.
    rig.paths.classes.set_limits(0, Limits { path_memory: base - 1, ..Limits::NONE });
    assert_eq!(rig.try_create(granted(u64::MAX)), Err(CreateError::Refused(Refused::PathMemory)));
}

#[test]
fn bells_and_reports_go_down_and_events_go_up_until_someone_is_deaf() {
    let mut rig = Rig::new(&[Pass, Deaf, Pass]);
    let path = rig.create();
    assert!(rig.paths.bell(path, Instant::ZERO, &mut rig.world, Bell::Sent));
    assert!(rig.paths.report(path, Instant::ZERO, &mut rig.world, Report::Resolved));
    assert_eq!(rig.take_log(), ["bell a", "bell b", "report a", "report b"]);
}

#[test]
fn a_timer_runs_once_when_due_and_its_event_reaches_the_port() {
    let mut rig = Rig::new(&[Pass, Pass]);
    let path = rig.create();
    rig.paths.bell(path, Instant::ZERO, &mut rig.world, Bell::Urgent(10));
    let due = Instant::from_millis(10);
    assert_eq!(rig.world.armed, [due], "one call for both stages' timers");
    rig.take_log();
    rig.paths.expire(path, Instant::from_millis(9), &mut rig.world);
    assert_eq!((rig.take_log().len(), rig.world.armed.last()), (0, Some(&due)), "too early: armed again");
    rig.paths.expire(path, due, &mut rig.world);
    assert_eq!(rig.take_log(), ["timer b", "event a", "timer a"]);
    assert_eq!(rig.world.events, [Event::TimedOut, Event::TimedOut]);
    rig.paths.expire(path, due, &mut rig.world);
    assert!(rig.take_log().is_empty());
}

#[test]
fn a_full_queue_drops_at_once_and_its_tickets_are_given_back() {
    let mut rig = Rig::new(&[Pass]);
    let path = rig.try_create(Attrs::new().with(Attr::InputQueue(2))).unwrap();
    let ticket = |frame| Ticket {
        frame,
        offset: 0,
        len: 0,
        device: 0,
        checksum: Checksum::Unknown,
        arrival: Instant::ZERO,
    };
    assert_eq!(rig.paths.enqueue(path, ticket(1)), Ok(true));
    assert_eq!(rig.paths.enqueue(path, ticket(2)), Ok(false));
    assert_eq!(rig.paths.enqueue(path, ticket(3)), Err(DropReason::QueueFull));
    assert_eq!(rig.paths.path(path).unwrap().state.drops.of(DropReason::QueueFull), 1);
    assert_eq!(rig.paths.dequeue(path), Some(ticket(1)));
    let mut returned = Vec::new();
    rig.paths.destroy_with(path, Instant::ZERO, &mut rig.world, |ticket| returned.push(ticket.frame));
    assert_eq!((returned, rig.paths.tickets.waiting()), (vec![2], 0));
}

#[test]
fn the_wake_up_callback_says_how_urgent_the_path_is() {
    let mut rig = Rig::new(&[Pass]);
    let path = rig.try_create(Attrs::new().with(Attr::Priority(2))).unwrap();
    let now = Instant::from_millis(5);
    assert_eq!(rig.paths.urgency(path, now), Some(Urgency::default()));
    rig.paths.path_mut(path).unwrap().wakeup = |path, now| Urgency {
        deadline: Some(now + Duration::from_millis(path.input.len() as u64)),
        hold: false,
    };
    assert_eq!(rig.paths.urgency(path, now), Some(Urgency { deadline: Some(now), ..Urgency::default() }));
}

#[test]
fn measuring_is_a_transformation() {
    let rules: Vec<Box<dyn Rule>> = vec![Box::new(transform::Measure { class: Some(0), one_of: 0 })];
    let mut rig = Rig::with_rules(&[Pass], rules);
    let path = rig.create();
    rig.up(path, b"x");
    assert_eq!(rig.paths.path(path).unwrap().state.attrs.process_time(), Some(500));
}

#[test]
fn one_message_of_so_many_is_measured_whatever_their_rhythm() {
    for (one_of, rhythm) in [(8, 8), (8, 5), (4, 16), (1, 3)] {
        let rules: Vec<Box<dyn Rule>> = vec![Box::new(transform::Measure { class: None, one_of })];
        let mut rig = Rig::with_rules(&[Pass], rules);
        let path = rig.create();
        let mut measured = vec![0usize; rhythm];
        for n in 0..4096 {
            let before = rig.world.ticks;
            rig.up(path, b"x");
            measured[n % rhythm] += ((rig.world.ticks - before) / 2) as usize;
            assert!(n > 0 || measured[0] == 1, "the first always is");
        }
        let expected = 4096 / rhythm / usize::from(one_of);
        let near = |&count: &usize| count.abs_diff(expected) <= expected / 4;
        assert!(measured.iter().all(near), "one of {one_of}: {measured:?}, {expected} of each expected");
    }
}

/// A rule that puts the two lowest stages into one.
struct Together;

struct Both(Vec<Slot>);

impl Rule for Together {
    fn name(&self) -> &'static str {
        "together"
    }
    fn matches(&self, path: &Rewrite<'_>) -> bool {
        path.begins_with(&["c", "b"])
    }
    fn apply(&self, path: &mut Rewrite<'_>) {
        path.collapse(2, |inner| Box::new(Both(inner)));
    }
}

impl Stage for Both {
    fn up(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        cx.inner_up(&mut self.0, msg)
    }
    fn down(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        let _ = cx.inner_down(&mut self.0, msg);
        Verdict::Consumed
    }
    fn destroy(&mut self, cx: &mut Cx<'_, '_>) {
        cx.inner_each(&mut self.0, |stage, cx| {
            stage.destroy(cx);
            true
        });
    }
}

#[test]
fn a_collapsed_path_means_the_same() {
    let mut plain = Rig::new(&[Turn, Hold, Pass]);
    let mut together = Rig::with_rules(&[Turn, Hold, Pass], vec![Box::new(Together)]);
    let (a, b) = (plain.create(), together.create());
    assert_eq!(
        (plain.paths.path(a).unwrap().slots().len(), together.paths.path(b).unwrap().slots().len()),
        (3, 2)
    );
    for rig in [&mut plain, &mut together] {
        let path = rig.paths.at(0).unwrap();
        rig.up(path, b"echo");
        rig.down(path, b"down");
        rig.destroy(path);
        assert_eq!(rig.paths.classes.of(0).memory(), 0);
    }
    assert_eq!(plain.take_log(), together.take_log());
    assert_eq!(plain.world.sent, together.world.sent);
}

#[test]
fn a_route_that_runs_in_a_circle_is_refused() {
    let layers = Layers(vec![("a", Pass), ("b", Pass)], Log::default());
    // Linked up to itself, so that nothing needs anything, and going round by its own choice.
    let spec = GraphSpec::default()
        .module("a", "a", &[])
        .module("b", "b", &[])
        .link("a.down", "b.up")
        .link("b.down", "b.up");
    let faults = Graph::build(&spec, &layers).err().expect("refused");
    assert!(matches!(faults[0].what, What::NoOrder(_)), "needs in a circle cannot even be built");
    let mut rig = Rig::new(&[Round]);
    assert_eq!(rig.try_create(Attrs::new()), Err(CreateError::TooLong));
    assert_eq!((rig.paths.len(), rig.paths.classes.of(0).memory()), (0, 0));
}

#[test]
fn creating_and_destroying_in_any_order_keeps_the_books() {
    let mut rig = Rig::new(&[Hold, Pass]);
    let mut live = Vec::new();
    let mut seed = 1u64;
    for _ in 0..20_000 {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        if live.is_empty() || (!(seed >> 40).is_multiple_of(3) && live.len() < 500) {
            live.push(rig.create());
        } else {
            let path = live.swap_remove((seed >> 33) as usize % live.len());
            rig.destroy(path);
        }
        rig.take_log();
        assert_eq!(rig.paths.len(), live.len());
    }
    assert!(rig.paths.iter().all(|path| live.contains(&path.id()) && path.shown_state() == "HOLDING"));
    live.drain(..).for_each(|path| _ = rig.destroy(path));
    assert_eq!(rig.paths.classes.of(0).memory(), 0);
}

#[test]
fn a_timer_that_comes_too_early_is_armed_again_and_one_of_a_path_that_ends_is_taken_off() {
    let mut rig = Rig::new(&[Pass, Pass]);
    let path = rig.create();
    let due = Instant::from_millis(10);
    rig.paths.bell(path, Instant::ZERO, &mut rig.world, Bell::Urgent(10));
    rig.paths.expire(path, Instant::from_millis(9), &mut rig.world);
    assert_eq!(rig.world.armed, [due, due]);
    rig.destroy(path);
    assert_eq!(rig.world.armed, [due, due, Instant::FAR]);
}
