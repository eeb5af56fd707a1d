//! What a path's life costs: creation and destruction, apart and together, of TCP and UDP paths; and of a
//! connection that a listening path accepts. And the memory a path takes, stage by stage.

use super::case::{Case, repeated, timed};
use super::connection::Handshake;
use super::host::{Host, Program, Rules, between};
use super::row::{Peers, Row};
use silk_path::{Attr, Attrs, ByteStream, Path, PathId, Slot};
use std::fs;
use std::time::Duration;

/// Paths that live at once while creation and destruction are timed apart.
const BATCH: u64 = 64;
/// Paths that are created to see how much the process grows.
const MANY: u16 = 20_000;

/// A protocol whose paths are created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Tcp,
    Udp,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP path",
            Self::Udp => "UDP path",
        }
    }

    fn attrs(self, port: u16) -> Attrs {
        match self {
            Self::Tcp => between(port).with(Attr::ProtId(6)),
            Self::Udp => between(port),
        }
    }

    fn stream(self) -> Option<Box<dyn ByteStream>> {
        (self == Self::Tcp).then(Program::silent)
    }

    /// Creates a path; TCP's opens a connection and sends its SYN.
    fn create(self, host: &mut Host, port: u16) -> PathId {
        host.create(host.module("socket"), self.attrs(port), self.stream())
    }
}

/// Every case of creation and destruction.
pub fn cases() -> Vec<Case> {
    let tcp = Peers::silk(41.5 + 12.3).goal(3000.0, 500.0);
    let both = |kind: Kind, rules: Rules, peers| {
        Case::new(format!("create + destroy, {}, {}", kind.name(), rules.name()), peers, whole(kind, rules))
    };
    vec![
        Case::new("create, TCP path (its SYN is sent)", Peers::silk(41.5), creation(Kind::Tcp)),
        Case::new("destroy, TCP path", Peers::silk(12.3), destruction(Kind::Tcp)),
        both(Kind::Tcp, Rules::None, tcp),
        both(Kind::Tcp, Rules::Template, tcp),
        Case::new("handshake accepted, create + destroy, TCP path", Peers::NONE, acceptance()),
        Case::new("create, UDP path", Peers::NONE, creation(Kind::Udp)),
        Case::new("destroy, UDP path", Peers::NONE, destruction(Kind::Udp)),
        both(Kind::Udp, Rules::None, Peers::NONE),
        both(Kind::Udp, Rules::Template, Peers::NONE),
    ]
}

/// A path is created and destroyed at once.
fn whole(kind: Kind, rules: Rules) -> impl FnMut(u64) -> Duration {
    let mut host = Host::new(rules);
    let socket = host.module("socket");
    move |operations| {
        repeated(operations, |_| {
            let path = host.create(socket, kind.attrs(5000), kind.stream());
            host.destroy(path);
        })
    }
}

fn creation(kind: Kind) -> impl FnMut(u64) -> Duration {
    batches(kind, |created, _| created)
}

fn destruction(kind: Kind) -> impl FnMut(u64) -> Duration {
    batches(kind, |_, destroyed| destroyed)
}

/// Paths are created and destroyed in batches; `which` of the two times counts.
fn batches(kind: Kind, which: fn(Duration, Duration) -> Duration) -> impl FnMut(u64) -> Duration {
    let mut host = Host::new(Rules::None);
    let mut live = Vec::new();
    move |operations| {
        let mut whole = Duration::ZERO;
        for first in (0..operations).step_by(BATCH as usize) {
            let count = BATCH.min(operations - first) as u16;
            let socket = host.module("socket");
            let created = timed(|| {
                live.extend((0..count).map(|n| host.create(socket, kind.attrs(5000 + n), kind.stream())));
            });
            let destroyed = timed(|| live.drain(..).for_each(|path| host.destroy(path)));
            whole += which(created, destroyed);
        }
        whole
    }
}

/// A listening path gets a SYN and the ACK, the connection's path is created, takes the ACK, and is
/// destroyed. The peer's two segments are the same every time: time and secrets stand still.
fn acceptance() -> impl FnMut(u64) -> Duration {
    let mut handshake = Handshake::new(Rules::None);
    move |operations| {
        repeated(operations, |_| {
            let path = handshake.accept(Program::silent());
            handshake.server.destroy(path);
        })
    }
}

/// The memory of paths, in bytes: what their accounts are charged, stage by stage, and what the process
/// grows by. To be asked before anything else has grown and shrunk.
pub fn memory() -> Vec<Row> {
    let mut rows: Vec<Row> = resident().into_iter().collect();
    for kind in [Kind::Tcp, Kind::Udp] {
        rows.extend(charged(kind));
    }
    rows
}

/// What the accounts of one path say.
fn charged(kind: Kind) -> Vec<Row> {
    let name = kind.name();
    let whole = |rules: Rules| {
        let mut host = Host::new(rules);
        let path = kind.create(&mut host, 5000);
        let bytes = host.paths.path(path).map_or(0, |path| path.state.account.memory());
        (host, path, bytes)
    };
    let (host, path, bytes) = whole(Rules::None);
    let mut rows = vec![
        Row::counted(format!("{name} with its stages, charged"), bytes),
        Row::counted(format!("{name}: the path itself"), size_of::<Path>() as u64),
    ];
    for slot in host.paths.path(path).map_or(&[][..], Path::slots) {
        let module = host.paths.graph().modules().module(slot.module).map_or("?", |module| module.kind());
        let bytes = size_of::<Slot>() + size_of_val(&*slot.stage);
        rows.push(Row::counted(format!("{name}: stage {module}"), bytes as u64));
    }
    let (_, _, bytes) = whole(Rules::Template);
    rows.push(Row::counted(format!("{name} with its stages, charged, header template"), bytes));
    rows
}

/// What the process grows by for each of many TCP paths, its pages counted by Linux.
fn resident() -> Option<Row> {
    let mut host = Host::new(Rules::None);
    let before = resident_bytes()?;
    let paths: Vec<PathId> = (0..MANY).map(|n| Kind::Tcp.create(&mut host, 10_000 + n)).collect();
    let grown = resident_bytes()?.saturating_sub(before);
    let what = format!("TCP path, what the process grows by ({MANY} of them)");
    Some(Row::counted(what, grown / paths.len() as u64))
}

fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_path_are_what_it_is_charged() {
        for kind in [Kind::Tcp, Kind::Udp] {
            let rows = charged(kind);
            let (whole, parts) = (&rows[0], &rows[1..rows.len() - 1]);
            assert_eq!(whole.median, parts.iter().map(|row| row.median).sum::<f64>(), "{rows:?}");
        }
    }

    #[test]
    fn whatever_was_created_is_destroyed() {
        for mut case in cases() {
            case.round(Duration::ZERO);
            assert!(case.row().is_some_and(|row| row.operations > 0));
        }
    }
}
