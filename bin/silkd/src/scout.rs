//! Named paths of the graph file, which sockets of `PF_SCOUT` build (SILK §3.1): the module
//! that comes first, and the attributes creation begins with (Scout §3.2). A path of TCP is a byte
//! stream: it connects where it names its remote end, and is bound, to listen, where it does not. Any
//! other carries messages.

use crate::answer::Answer;
use crate::command::{Command, SocketName};
use crate::family::State;
use crate::ports::{Share, Sides};
use crate::server::Server;
use crate::wishes::First;
use silk_config::{Graph, NamedPath, Param};
use silk_control::{Kind, Refusal, Reply};
use silk_path::{Attr, Attrs, Endpoint, Value};
use silk_stream::status;
use silk_wire::ipv4;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

/// A path that programs can ask for by name.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Its name.
    pub name: String,
    /// The module at its top.
    pub module: String,
    /// The attributes it begins with.
    pub attrs: Attrs,
}

impl Recipe {
    /// What programs exchange over it.
    pub fn kind(&self) -> Kind {
        if self.attrs.prot_id() == Some(ipv4::TCP.into()) { Kind::Stream } else { Kind::Datagram }
    }
}

/// The named paths of a graph.
///
/// # Errors
/// The first attribute that means nothing to path creation, in a sentence.
pub fn recipes(graph: &Graph) -> Result<Vec<Recipe>, String> {
    graph.paths.iter().map(|path| recipe(graph, path)).collect()
}

fn recipe(graph: &Graph, path: &NamedPath) -> Result<Recipe, String> {
    let mut attrs = Attrs::new();
    for param in &path.attributes {
        let attr = attribute(param).ok_or_else(|| {
            format!(
                "path `{}`: `{}` is no attribute with such a value: there are local = \"ADDRESS:PORT\", \
                 local_port, remote = \"ADDRESS:PORT\", protocol, tos and priority",
                path.name, param.key
            )
        })?;
        attrs.set(attr).map_err(|_| format!("path `{}` has too many attributes", path.name))?;
    }
    let recipe = Recipe { name: path.name.clone(), module: path.module.clone(), attrs };
    match stream_fault(graph, &recipe) {
        Some(fault) => Err(format!("path `{}`: {fault}", path.name)),
        None => Ok(recipe),
    }
}

/// What a byte stream lacks.
fn stream_fault(graph: &Graph, recipe: &Recipe) -> Option<&'static str> {
    if recipe.kind() != Kind::Stream {
        return None;
    }
    let attrs = &recipe.attrs;
    let first = graph.modules.iter().find(|module| module.name == recipe.module);
    if first.is_none_or(|module| module.kind != "socket") {
        return Some("a byte stream (protocol = 6) begins at the module of kind `socket`");
    }
    match (attrs.local(), attrs.remote(), attrs.priority()) {
        (None, None, _) => {
            Some("a byte stream needs a local end to listen at, or a remote one to connect to")
        }
        (_, None, Some(_)) => {
            Some("what listens has the priority of [listen]: only a path with `remote` has one")
        }
        _ => None,
    }
}

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
        match (recipe.kind(), kind) {
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
        recipe: Recipe,
        answer: &Arc<Answer>,
    ) -> Result<Reply, Refusal> {
        let local = recipe.attrs.local();
        let mut named = None;
        if let Some(local) = local {
            let sides = Sides::of(local.ip());
            let places = self.settings.reserve_at(local.ip(), sides);
            named = Some((local, self.ports.take(Kind::Datagram, (local, sides), &places, false)?));
        }
        let (slot, generation) = self.new_slot(family, process, Kind::Datagram, named).inspect_err(|_| {
            named.iter().for_each(|(_, held)| self.ports.give_back(held));
        })?;
        let rings = self.rings(family, slot).inspect_err(|_| self.unmake(family, slot))?;
        let remote = recipe.attrs.remote().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |remote| remote.ip());
        let domain = self.settings.classes.domain_of(remote, 0, local.map_or(0, |local| local.port()));
        if let Some(known) = self.families.get_mut(&family) {
            if let Some(entry) = known.sockets.get_mut(&slot) {
                entry.state = State::Served { domain };
            }
            if let Some(record) = known.arena.slot(slot) {
                record.domain.store(domain as u32, SeqCst);
                record.status.store(status::CONNECTED, SeqCst);
            }
        }
        let socket = SocketName { family, slot };
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

fn attribute(param: &Param) -> Option<Attr> {
    let address = || match &param.value {
        Value::Text(text) => text.parse::<Endpoint>().ok(),
        _ => None,
    };
    let number = || match param.value {
        Value::Number(number) => Some(number),
        _ => None,
    };
    Some(match param.key.as_str() {
        "local" => Attr::Local(address()?),
        "remote" => Attr::Remote(address()?),
        "local_port" => Attr::Local(Endpoint::v4(Ipv4Addr::UNSPECIFIED, u16::try_from(number()?).ok()?)),
        "protocol" => Attr::ProtId(u16::try_from(number()?).ok()?),
        "tos" => Attr::Tos(u8::try_from(number()?).ok()?),
        "priority" => Attr::Priority(u8::try_from(number()?).ok()?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULES: &str = "[[module]]\nname = \"udp\"\n";

    fn read(path: &str) -> Result<Vec<Recipe>, String> {
        let text = format!("{MODULES}[[path]]\nname = \"echo\"\nmodule = \"udp\"\n{path}\n");
        recipes(&Graph::parse("test", &text).map_err(|faults| faults.to_string())?)
    }

    #[test]
    fn a_named_path_is_a_module_and_attributes() {
        let found = read("local_port = 7\nremote = \"10.0.0.2:9\"").unwrap();
        assert_eq!((&*found[0].name, &*found[0].module), ("echo", "udp"));
        assert_eq!(found[0].attrs.local().map(|a| a.port()), Some(7));
        assert_eq!(found[0].attrs.remote(), "10.0.0.2:9".parse().ok());
    }

    #[test]
    fn a_path_of_tcp_is_a_byte_stream_and_must_be_able_to_be_one() {
        let read = |rest: &str| {
            let text = format!(
                "{MODULES}[[module]]\nname = \"top\"\nkind = \"socket\"\n[[path]]\nname = \"it\"\n{rest}\n"
            );
            recipes(&Graph::parse("test", &text).map_err(|faults| faults.to_string())?)
                .map(|all| all[0].kind())
        };
        let top = "module = \"top\"\nprotocol = 6";
        assert_eq!(read(&format!("{top}\nlocal_port = 7")), Ok(Kind::Stream));
        assert_eq!(read(&format!("{top}\nremote = \"10.0.0.2:9\"\npriority = 2")), Ok(Kind::Stream));
        assert_eq!(read("module = \"top\"\nprotocol = 17"), Ok(Kind::Datagram));
        for (rest, why) in [
            (
                "module = \"udp\"\nprotocol = 6\nlocal_port = 7".to_owned(),
                "begins at the module of kind `socket`",
            ),
            (top.to_owned(), "needs a local end"),
            (format!("{top}\nlocal_port = 7\npriority = 2"), "has the priority of [listen]"),
        ] {
            assert!(read(&rest).unwrap_err().contains(why), "{rest}");
        }
    }

    #[test]
    fn what_means_nothing_is_named() {
        assert!(read("colour = 7").unwrap_err().contains("`colour` is no attribute"));
        assert!(read("local_port = 70000").is_err());
    }
}
