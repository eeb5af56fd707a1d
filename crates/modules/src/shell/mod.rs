//! SHELL: takes commands from the network and has paths made (Scout §4.1). It must never do what
//! somebody else than a configured controller says, do a command twice because its datagram came
//! twice, or send more than it was sent, so that nobody can amplify traffic through it.
//!
//! A command is one datagram of text, a number of the controller's choice first, and so is its
//! reply, which begins with the same number:
//! ```text
//! 17 mpeg_decode 10.0.0.1:6000 fps=30 name=canyon      ->  17 ok 3.1
//! 18 list                                              ->  18 3.1 canyon…
//! ```
//! The commands are those of [`Command`]. A reply is never longer than its command: it is cut,
//! and `+` stands at its end then; who wants a long one puts blanks behind the command. A command
//! whose number was done already gets its reply again and is not done again, but for `list`, which
//! changes nothing; numbers are remembered for each controller's port, the last 64 in all.
//!
//! What is to be done is kept as an [`Order`] for whoever runs the paths, who is told by
//! [`Event::Readable`] of the path, takes it ([`Shell::orders`]) and
//! answers it ([`answer`]).
//!
//! # Configuration
//! `controllers`: the networks whose hosts may command, `["10.0.0.0/24"]`; none where it is
//! absent. `port`: the UDP port of paths that name none (5540).
//!
//! # Services
//! `down` (net, needed): a datagram protocol, UDP.
//!
//! # Attributes
//! Sets `Local`: any of our addresses of IPv4 where there is none, `port` where it names none.
//!
//! # Example
//! ```toml
//! [[module]]
//! name = "shell"
//! kind = "shell"
//! controllers = ["10.0.0.0/24", "fd00::7/128"]
//!
//! [[link]]
//! from = "shell.down"
//! to = "udp.up"
//! ```
//!
//! # See also
//! [`udp`](crate::udp) below.

mod command;
mod memory;
mod parse;

pub use command::{Bits, Command, Fps, Pictures, Target};
pub use parse::{Fault, MAX_REQUEST, Malformed, Request, parse};

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
use memory::{Known, Memory};
use silk_instant::Instant;
use silk_path::service::{NET, Service};
use silk_path::{
    Attr, Create, CreateError, Cx, DropReason, Endpoint, Event, Message, Meta, Module, Next, Parameter,
    ParameterKind, PathId, Paths, Port, Stage, Step, Verdict,
};

/// Its services.
pub const SERVICES: &[Service] = &[Service::needed("down", NET)];
/// Its parameters.
pub const PARAMETERS: &[Parameter] = &[
    Parameter { name: "controllers", kind: ParameterKind::List(&ParameterKind::Network), required: false },
    Parameter { name: "port", kind: ParameterKind::Number(1, 65535), required: false },
];

/// The UDP port of a shell where nothing else is said.
pub const PORT: u16 = 5540;

/// Orders that may wait to be taken.
const WAITING: usize = 32;
/// Room for the headers below.
const HEADROOM: usize = 128;

/// What a controller wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// What.
    pub command: Command,
    /// Who wants it.
    pub from: Endpoint,
    /// The path of SHELL it came by.
    pub path: PathId,
    // Where it was sent to, and what its reply begins with and is bounded by.
    local: Endpoint,
    number: u32,
    room: usize,
}

/// What became of what was sent to the shell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Commands taken.
    pub taken: u64,
    /// Commands that were done before, and got their reply again.
    pub repeated: u64,
    /// Datagrams that are no command.
    pub malformed: u64,
    /// Datagrams of others than controllers, not answered.
    pub unauthorised: u64,
    /// Commands that found too many waiting.
    pub busy: u64,
}

/// The module.
pub struct Shell {
    controllers: Vec<(IpAddr, u8)>,
    port: u16,
    orders: Vec<Order>,
    memory: Memory,
    figures: Figures,
}

impl Shell {
    /// A shell that obeys these networks, its paths at UDP port `port`.
    pub fn new(controllers: Vec<(IpAddr, u8)>, port: u16) -> Self {
        Self { controllers, port, orders: Vec::new(), memory: Memory::default(), figures: Figures::default() }
    }

    /// Takes what is to be done, in the order it came.
    pub fn orders(&mut self) -> Vec<Order> {
        core::mem::take(&mut self.orders)
    }

    /// What became of what was sent to it.
    pub fn figures(&self) -> Figures {
        self.figures
    }

    fn obeys(&self, address: IpAddr) -> bool {
        self.controllers.iter().any(|(network, prefix)| is_in(address, *network, *prefix))
    }

    /// The reply to a datagram that needs nobody else for it; the reason why there is none, else.
    /// `Ok(None)`: an order waits.
    fn hear(&mut self, path: PathId, meta: &Meta, bytes: &[u8]) -> Result<Option<Vec<u8>>, DropReason> {
        if !self.obeys(meta.remote.ip()) {
            self.figures.unauthorised += 1;
            return Err(DropReason::ShellUnauthorised);
        }
        let room = bytes.len();
        let Request { number, command } = match parse(bytes) {
            Ok(request) => request,
            Err(Malformed { number, fault }) => {
                self.figures.malformed += 1;
                return Ok(Some(reply(number, &alloc::format!("error: {fault}"), room)));
            }
        };
        match self.memory.recall(meta.remote, number) {
            Some(Known::Done(said)) => {
                self.figures.repeated += 1;
                return Ok(Some(reply(Some(number), said, room)));
            }
            // Its reply is on its way.
            Some(Known::Waits) => {
                self.figures.repeated += 1;
                return Err(DropReason::ShellRepeated);
            }
            None if self.orders.len() >= WAITING => {
                self.figures.busy += 1;
                return Err(DropReason::ShellBusy);
            }
            None => {}
        }
        self.figures.taken += 1;
        if command != Command::List {
            self.memory.begin(meta.remote, number);
        }
        let (from, local) = (meta.remote, meta.local);
        self.orders.push(Order { command, from, path, local, number, room });
        Ok(None)
    }
}

/// Whether an address belongs to a network.
fn is_in(address: IpAddr, network: IpAddr, prefix: u8) -> bool {
    let (differ, width) = match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(a.to_bits() ^ b.to_bits()), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits(), 128),
        _ => return false,
    };
    differ.checked_shr(width - u32::from(prefix).min(width)).unwrap_or(0) == 0
}

/// The bytes of a reply in at most `room` bytes; cut short it ends in `+`.
fn reply(number: Option<u32>, text: &str, room: usize) -> Vec<u8> {
    let mut line = String::new();
    if let Some(number) = number {
        line = alloc::format!("{number} ");
    }
    line.push_str(text);
    let mut bytes = line.into_bytes();
    if bytes.len() > room {
        bytes.truncate(room);
        bytes.pop();
        bytes.extend((room > 0).then_some(b'+'));
    }
    bytes
}

/// Answers an order: sends the reply on its way, as much of it as there is room for, and remembers
/// it for a command that comes again.
pub fn answer(paths: &mut Paths, now: Instant, port: &mut dyn Port, order: &Order, text: &str) {
    let bytes = reply(Some(order.number), text, order.room);
    if let Some(shell) = paths.module_mut::<Shell>() {
        shell.memory.finish(order.from, order.number, text);
    }
    let meta = Meta { remote: order.from, local: order.local, ..Meta::default() };
    let mut headroom = [0; HEADROOM];
    // A reply that is lost is asked for again.
    let _ = paths.down(order.path, now, port, &mut Message::outgoing(&mut headroom, [&bytes, &[]], meta));
}

impl Module for Shell {
    fn kind(&self) -> &'static str {
        "shell"
    }

    fn services(&self) -> &'static [Service] {
        SERVICES
    }

    fn create_stage(&mut self, create: &mut Create<'_>) -> Result<Step, CreateError> {
        let local = create.attrs.local().unwrap_or(Endpoint::v4(Ipv4Addr::UNSPECIFIED, 0));
        if local.port() == 0 {
            create.set(Attr::Local(Endpoint::new(local.ip(), self.port)))?;
        }
        Ok(Step { stage: Some(Box::new(ShellStage)), next: Next::Service(0) })
    }
}

struct ShellStage;

impl Stage for ShellStage {
    fn up(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        let path = cx.path();
        match cx.module::<Shell>().hear(path, &msg.meta, msg.bytes()) {
            Ok(Some(bytes)) => {
                let meta = Meta { remote: msg.meta.remote, local: msg.meta.local, ..Meta::default() };
                let mut headroom = [0; HEADROOM];
                // A drop on the way down has been counted there.
                let _ = cx.down(&mut Message::outgoing(&mut headroom, [&bytes, &[]], meta));
            }
            Ok(None) => cx.raise(Event::Readable),
            Err(reason) => return Verdict::Drop(reason),
        }
        Verdict::Consumed
    }

    fn down(&mut self, _: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        Verdict::Forward
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use proptest::prelude::*;

    #[test]
    fn a_network_has_its_hosts_and_no_others() {
        let has = |address: &str, network: &str, prefix| {
            is_in(address.parse().unwrap(), network.parse().unwrap(), prefix)
        };
        assert!(has("10.0.0.9", "10.0.0.1", 24) && !has("10.0.1.9", "10.0.0.1", 24));
        assert!(has("10.0.0.9", "10.0.0.9", 32) && !has("10.0.0.8", "10.0.0.9", 32));
        assert!(has("192.0.2.1", "0.0.0.0", 0) && !has("fd00::1", "0.0.0.0", 0));
        assert!(has("fd00::1", "::", 0) && has("fd00::1", "fd00::1", 128) && !has("fd01::1", "fd00::", 16));
    }

    #[test]
    fn a_reply_that_is_cut_says_so() {
        assert_eq!(reply(Some(7), "ok 3.1", 8), b"7 ok 3.1");
        assert_eq!(reply(Some(7), "ok 3.1", 7), b"7 ok 3+");
        assert_eq!(reply(None, "error", 0), b"");
    }

    proptest! {
        /// Whatever is said to it, the shell never says more.
        #[test]
        fn a_reply_is_never_longer_than_what_was_sent(words in proptest::collection::vec("[ -~]{0,40}", 1..4), numbered: bool) {
            let mut shell = Shell::new(std::vec![(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0)], PORT);
            let text = words.join(" ");
            let text = if numbered { std::format!("5 {text}") } else { text };
            let meta = Meta { remote: Endpoint::v4(Ipv4Addr::LOCALHOST, 1), ..Meta::default() };
            let path = PathId { index: 0, generation: 0 };
            if let Ok(Some(reply)) = shell.hear(path, &meta, text.as_bytes()) {
                prop_assert!(reply.len() <= text.len());
                prop_assert!(!reply.contains(&b'\n'));
            }
        }
    }
}
