//! Named paths of the graph file, which sockets of `PF_SCOUT` build (SILK §3.1): the module
//! that comes first, and the attributes creation begins with (Scout §3.2).

use silk_config::{Graph, NamedPath};
use silk_control::Kind;
use silk_path::Attrs;

/// A path that programs can ask for by name.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Its name.
    pub name: String,
    /// The module at its top.
    pub module: String,
    /// The attributes it begins with.
    pub attrs: Attrs,
    /// What programs exchange over it.
    pub kind: Kind,
}

/// The named paths of a graph.
pub fn recipes(graph: &Graph) -> Vec<Recipe> {
    graph.paths.iter().map(recipe).collect()
}

fn recipe(path: &NamedPath) -> Recipe {
    let kind = if path.is_stream() { Kind::Stream } else { Kind::Datagram };
    Recipe { name: path.name.clone(), module: path.module.clone(), attrs: path.attrs, kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULES: &str = "[[module]]\nname = \"udp\"\n[[module]]\nname = \"top\"\nkind = \"socket\"\n";

    fn read(path: &str) -> Recipe {
        let text = format!("{MODULES}[[path]]\nname = \"it\"\n{path}\n");
        recipes(&Graph::parse("test", &text).unwrap()).remove(0)
    }

    #[test]
    fn a_named_path_is_a_module_and_attributes() {
        let found = read("module = \"udp\"\nlocal_port = 7\nremote = \"10.0.0.2:9\"");
        assert_eq!((&*found.name, &*found.module), ("it", "udp"));
        assert_eq!(found.attrs.local().map(|a| a.port()), Some(7));
        assert_eq!(found.attrs.remote(), "10.0.0.2:9".parse().ok());
    }

    #[test]
    fn a_path_of_tcp_is_a_byte_stream() {
        let top = "module = \"top\"\nprotocol = 6";
        assert_eq!(read(&format!("{top}\nlocal_port = 7")).kind, Kind::Stream);
        assert_eq!(read(&format!("{top}\nremote = \"10.0.0.2:9\"\npriority = 2")).kind, Kind::Stream);
        assert_eq!(read("module = \"top\"\nprotocol = 17").kind, Kind::Datagram);
    }
}
