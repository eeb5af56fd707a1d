//! SHELL between two hosts in memory: a controller that is a plain socket, and a player.

mod rig;

use core::net::Ipv6Addr;
use rig::{Host, Options, exchange, graph, graph6, ip, ip6};
use silk_modules::shell::{Command, Figures, Shell, Target, answer};
use silk_path::{Attr, Attrs, DropReason, Endpoint, Event, PathId, Value};

const PORT: u16 = 5540;

struct Pair {
    controller: Host,
    player: Host,
    socket: PathId,
    shell: PathId,
}

impl Pair {
    fn new(controllers: &[&str]) -> Self {
        let controllers = controllers.iter().map(|network| Value::Text((*network).into())).collect();
        let graph = graph().module("shell", "shell", &[("controllers", Value::List(controllers))]);
        let options = Options { graph: graph.link("shell.down", "udp.up"), ..Options::default() };
        let (mut controller, mut player) = (Host::new(1), Host::with(2, options));
        let socket = controller.create("socket", Attrs::new().with(Attr::Local(Endpoint::v4(ip(1), 4000))));
        let shell = player.create("shell", Attrs::new());
        Self { controller, player, socket, shell }
    }

    /// Says something, and what is said back.
    fn say(&mut self, text: &str) -> Vec<String> {
        self.controller.send(self.socket, Endpoint::v4(ip(2), PORT), text.as_bytes());
        self.heard()
    }

    fn heard(&mut self) -> Vec<String> {
        exchange(&mut self.controller, &mut self.player);
        let delivered = self.controller.world.delivered.drain(..);
        delivered.map(|(_, _, bytes)| String::from_utf8(bytes).unwrap()).collect()
    }

    /// Does every order, as whoever runs the paths does.
    fn answer(&mut self, text: &str) -> Vec<Command> {
        let orders = self.player.paths.module_mut::<Shell>().unwrap().orders();
        let now = self.player.world.now;
        for order in &orders {
            answer(&mut self.player.paths, now, &mut self.player.world, order, text);
        }
        self.player.settle();
        orders.into_iter().map(|order| order.command).collect()
    }

    fn figures(&mut self) -> Figures {
        self.player.paths.module_mut::<Shell>().unwrap().figures()
    }
}

#[test]
fn a_command_is_raised_and_answered() {
    let mut pair = Pair::new(&["10.0.0.0/24"]);
    assert_eq!(pair.say("7 stop canyon"), [""; 0]);
    assert_eq!(pair.player.world.events, [(pair.shell, Event::Readable)]);
    assert_eq!(pair.answer("ok"), [Command::Stop(Target::Name("canyon".into()))]);
    assert_eq!(pair.heard(), ["7 ok"]);
}

#[test]
fn a_command_that_comes_twice_is_done_once() {
    let mut pair = Pair::new(&["10.0.0.1/32"]);
    assert_eq!(pair.say("7 stop canyon"), [""; 0]);
    assert_eq!(pair.say("7 stop canyon"), [""; 0], "it is being done");
    assert_eq!(pair.answer("ok").len(), 1);
    assert_eq!(pair.heard(), ["7 ok"]);
    assert_eq!(pair.say("7 stop canyon"), ["7 ok"]);
    assert_eq!(pair.answer("not again"), []);
    let figures = pair.figures();
    assert_eq!((figures.taken, figures.repeated), (1, 2));
}

#[test]
fn a_list_that_comes_twice_is_made_twice() {
    let mut pair = Pair::new(&["10.0.0.1/32"]);
    for streams in ["one stream", "none"] {
        pair.say("7 list              ");
        assert_eq!(pair.answer(streams), [Command::List]);
        assert_eq!(pair.heard(), [format!("7 {streams}")]);
    }
}

#[test]
fn nobody_else_is_obeyed_or_answered() {
    for controllers in [&["10.0.0.2/32", "fd00::/64"][..], &[]] {
        let mut pair = Pair::new(controllers);
        assert_eq!((pair.say("7 list"), pair.say("nonsense")), (vec![], vec![]));
        assert_eq!(pair.answer("ok"), []);
        assert_eq!(pair.figures(), Figures { unauthorised: 2, ..Figures::default() });
        assert_eq!(pair.player.drops(pair.shell, DropReason::ShellUnauthorised), 2);
    }
}

#[test]
fn what_is_malformed_is_told_in_one_line_that_is_no_longer() {
    let mut pair = Pair::new(&["10.0.0.0/24"]);
    assert_eq!(pair.say("7 stop canyon now, please"), ["7 error: too many words"]);
    assert_eq!(pair.say("7 reboot"), ["7 error+"]);
    assert_eq!(pair.say("list             "), ["error: no number+"]);
    assert_eq!(pair.say(""), [""]);
    assert_eq!(pair.figures().malformed, 4);
}

#[test]
fn a_reply_has_the_room_that_the_command_brought() {
    let mut pair = Pair::new(&["10.0.0.0/24"]);
    let (plain, padded) = ("7 list".to_owned(), format!("{:100}", "8 list"));
    for (command, reply) in [(plain, "7 3.1+"), (padded, "8 3.1 canyon 30 fps")] {
        pair.say(&command);
        pair.answer("3.1 canyon 30 fps");
        assert_eq!(pair.heard(), [reply]);
    }
}

#[test]
fn orders_that_nobody_takes_are_bounded() {
    let mut pair = Pair::new(&["10.0.0.0/24"]);
    (0..100).for_each(|number| _ = pair.say(&format!("{number} list")));
    assert_eq!(pair.answer("").len(), 32);
    assert_eq!(pair.figures().busy, 68);
}

#[test]
fn a_shell_is_reached_over_ipv6_too() {
    let graph = || {
        let controllers = Value::List(vec![Value::Text("fd00::/64".into())]);
        graph6().module("shell", "shell", &[("controllers", controllers)]).link("shell.down", "udp.up")
    };
    let options = || Options { graph: graph(), six: true, ..Options::default() };
    let (mut controller, mut player) = (Host::with(1, options()), Host::with(2, options()));
    let socket = controller.create("socket", Attrs::new().with(Attr::Local(Endpoint::v6(ip6(1), 4000))));
    player.create("shell", Attrs::new().with(Attr::Local(Endpoint::v6(Ipv6Addr::UNSPECIFIED, PORT))));
    controller.send(socket, Endpoint::v6(ip6(2), PORT), b"9 list now");
    exchange(&mut controller, &mut player);
    let replies: Vec<&[u8]> = controller.world.delivered.iter().map(|(_, _, bytes)| &bytes[..]).collect();
    assert_eq!(replies, [b"9 error: +"]);
}
