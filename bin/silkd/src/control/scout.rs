//! Sockets of `PF_SCOUT`, which build named paths of the graph (SILK §3.1).

use crate::between::answer::Answer;
use crate::between::command::Command;
use crate::between::names::SocketName;
use crate::binding::{Share, Sides};
use crate::control::family::State;
use crate::control::server::Server;
use crate::first_wishes::First;
use crate::recipes::Recipe;
use silk_control::{Kind, Refusal, Reply};
use silk_path::{Attr, Endpoint};
use silk_stream::status;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

impl Server {
    /// A socket of `PF_SCOUT`: the path of this name, in the domain of its addresses' class.
    pub(crate) fn scout(
        &mut self,
        family: u32,
        process: u32,
        (kind, name): (Kind, &str),
        answer: &Arc<Answer>,
    ) -> Result<Reply, Refusal> {
        let Some(recipe) = self.settings.recipes.iter().find(|recipe| recipe.name == name).cloned() else {
            let why =
                format!("the graph has no path named `{name}`: its [[path]] sections name those it has");
            return Err(Refusal { errno: libc::EADDRNOTAVAIL, why });
        };
        match (recipe.kind, kind) {
            (Kind::Stream, Kind::Stream) => self.scout_stream(family, process, &recipe, answer),
            (Kind::Datagram, Kind::Datagram) => self.scout_messages(family, process, recipe, answer),
            (Kind::Stream, _) => Err(other_kind(name, "bytes", "SOCK_STREAM")),
            (Kind::Datagram, _) => Err(other_kind(name, "messages", "SOCK_DGRAM")),
        }
    }

    fn scout_messages(
        &mut self,
        family: u32,
        process: u32,
        mut recipe: Recipe,
        answer: &Arc<Answer>,
    ) -> Result<Reply, Refusal> {
        let mut named = None;
        if let Some(local) = recipe.attrs.local() {
            self.may_have((family, process), local.port())?;
            let sides = Sides::of(local.ip());
            let places = self.settings.reserve_at(local.ip(), sides);
            let held = self.ports.take(Kind::Datagram, (local, sides), &places, false)?;
            let local = Endpoint::new(local.ip(), held.port);
            // A path that names port 0 has the one that was free.
            let _ = recipe.attrs.set(Attr::Local(local));
            named = Some((local, held));
        }
        let (slot, generation) = self.new_slot(family, process, Kind::Datagram, named).inspect_err(|_| {
            named.iter().for_each(|(_, held)| self.ports.give_back(held));
        })?;
        let rings = self.rings(family, slot).inspect_err(|_| self.unmake(family, slot))?;
        let remote = recipe.attrs.remote().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |remote| remote.ip());
        let domain = self.settings.classes.domain_of(remote, 0, named.map_or(0, |(local, _)| local.port()));
        if let Some(known) = self.families.get_mut(&family) {
            if let Some(entry) = known.sockets.get_mut(&slot) {
                entry.state = State::Served { domain };
                entry.is_of_graph = true;
            }
            if let Some(record) = known.arena.slot(slot) {
                record.domain.store(domain as u32, SeqCst);
                record.status.store(status::CONNECTED, SeqCst);
            }
        }
        let socket = SocketName { family, slot };
        if let Some((local, _)) = named.filter(|_| recipe.attrs.remote().is_none()) {
            // What comes to another domain for it is passed on.
            self.tell_all(|| Command::Home { local, domain });
        }
        if let Some(orders) = self.orders.get(domain) {
            // An executor that has ended says so at the daemon's end.
            let _ = orders.give(Command::Scout {
                socket,
                rings,
                recipe: Box::new(recipe),
                answer: answer.clone(),
            });
        }
        Ok(Reply::Socket { slot, generation })
    }

    fn scout_stream(
        &mut self,
        family: u32,
        process: u32,
        recipe: &Recipe,
        answer: &Arc<Answer>,
    ) -> Result<Reply, Refusal> {
        let attrs = &recipe.attrs;
        let bound = match attrs.local() {
            Some(local) => {
                match self.bind(
                    family,
                    process,
                    Kind::Stream,
                    (address(local), false),
                    Share::default(),
                    answer,
                )? {
                    Reply::Socket { slot, generation } => Some((slot, generation)),
                    _ => return Err(elsewhere(&recipe.name, "local")),
                }
            }
            None => None,
        };
        let Some(remote) = attrs.remote() else {
            let bound = bound.map(|(slot, generation)| Reply::Socket { slot, generation });
            return bound.ok_or_else(|| elsewhere(&recipe.name, "remote"));
        };
        let first = First::of_path(attrs.tos().unwrap_or(0), attrs.priority());
        let holder = (family, process);
        let connected = self.connect_one(holder, Kind::Stream, bound, address(remote), first, answer);
        match connected {
            Ok(reply @ Reply::Socket { .. }) => return Ok(reply),
            Ok(_) => {}
            Err(refusal) => {
                bound.into_iter().for_each(|(slot, _)| self.unmake(family, slot));
                return Err(refusal);
            }
        }
        bound.into_iter().for_each(|(slot, _)| self.unmake(family, slot));
        Err(elsewhere(&recipe.name, "remote"))
    }
}

fn address(end: Endpoint) -> std::net::SocketAddr {
    std::net::SocketAddr::new(end.ip(), end.port())
}

fn other_kind(name: &str, what: &str, wanted: &str) -> Refusal {
    let why = format!("the path `{name}` carries {what}: it takes a socket of {wanted}");
    Refusal { errno: libc::EPROTOTYPE, why }
}

fn elsewhere(name: &str, end: &str) -> Refusal {
    let why = format!("the {end} end of the path `{name}` is none that silk serves");
    Refusal { errno: libc::EADDRNOTAVAIL, why }
}
