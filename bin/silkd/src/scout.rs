//! Named paths of the graph file, which sockets of `PF_SCOUT` build (SILK §3.1): the module
//! that comes first, and the attributes creation begins with (Scout §3.2).

use silk_config::{Graph, NamedPath, Param};
use silk_path::{Attr, Attrs, Endpoint, Value};
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

/// The named paths of a graph.
///
/// # Errors
/// The first attribute that means nothing to path creation, in a sentence.
pub fn recipes(graph: &Graph) -> Result<Vec<Recipe>, String> {
    graph.paths.iter().map(recipe).collect()
}

fn recipe(path: &NamedPath) -> Result<Recipe, String> {
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
    Ok(Recipe { name: path.name.clone(), module: path.module.clone(), attrs })
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
    fn what_means_nothing_is_named() {
        assert!(read("colour = 7").unwrap_err().contains("`colour` is no attribute"));
        assert!(read("local_port = 70000").is_err());
    }
}
