//! Named paths of the graph file, which sockets of `PF_SCOUT` build (SILK §3.1): the module
//! that comes first, and the attributes creation begins with (Scout §3.2). A path of TCP is a byte
//! stream: it connects where it names its remote end, and is bound, to listen, where it does not. Any
//! other carries messages.

use silk_config::{Graph, NamedPath, Param};
use silk_control::Kind;
use silk_path::{Attr, Attrs, Endpoint, Value};
use silk_wire::ipv4;
use std::net::Ipv4Addr;

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
