//! `silk graph`: draws a module graph, as text, for Graphviz, or as a picture; with `--live`,
//! also the paths that run through it now.

mod dot;
mod layers;
mod live;
mod svg;
mod text;

use crate::daemon;
use crate::trouble::{Trouble, print};
use live::Stream;
use silk_config::{Config, Graph, Source, Value};
use std::path::PathBuf;

/// What to draw, and how.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// The graph
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How to draw it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Draw the paths the daemon has now into it
    #[arg(long)]
    live: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    /// Lines of text, the highest modules first
    Text,
    /// For Graphviz
    Dot,
    /// A picture
    Svg,
}

/// Draws it on standard output.
pub fn run(options: &Options) -> Result<(), Trouble> {
    let source = Source::read(&options.file)?;
    if !Graph::is_one(&source.text) && Config::is_one(&source.text) {
        return Err(Trouble::NoGraph(source.name));
    }
    // Only what is needed to draw it: modules of other makers may be drawn too.
    let graph = Graph::parse(&source.name, &source.text)?;
    let streams = if options.live { live::streams(&daemon::report()?) } else { Vec::new() };
    print(draw(&graph, &streams, options.format).as_bytes())
}

fn draw(graph: &Graph, streams: &[Stream], format: Format) -> String {
    match format {
        Format::Text => text::draw(graph, streams),
        Format::Dot => dot::draw(graph, streams),
        Format::Svg => svg::draw(graph, streams),
    }
}

/// The links as pairs of modules, the upper by custom first.
fn edges(graph: &Graph) -> Vec<(usize, usize)> {
    let place = |name: &str| graph.modules.iter().position(|module| module.name == name);
    let ends = graph.links.iter().map(|link| place(&link.from.module).zip(place(&link.to.module)));
    // Parsing has refused links to modules that do not exist.
    ends.flatten().collect()
}

/// A parameter's value as a graph file has it.
fn shown(value: &Value) -> String {
    use Value::{Flag, List, Number, Text};
    match value {
        Text(text) => format!("{text:?}"),
        Number(number) => number.to_string(),
        Flag(flag) => flag.to_string(),
        List(all) => format!("[{}]", all.iter().map(shown).collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use silk_control::{PathReport, Report};

    const WEB: &str = r#"
links = ["socket.stream -> tcp.up", "tcp.down -> ip.up", "ip.down -> eth.up",
         "ip.resolver -> arp.resolver", "arp.down -> eth.up"]
[[module]]
name = "eth"
mtu = 1500
[[module]]
name = "arp"
[[module]]
name = "ip"
[[module]]
name = "tcp"
[[module]]
name = "socket"
kind = "socket-of-programs"
"#;

    fn web() -> Graph {
        Graph::parse("web", WEB).unwrap()
    }

    fn streams() -> Vec<Stream> {
        let path = |class: &str, modules: &[&str]| PathReport {
            class: class.to_owned(),
            modules: modules.iter().map(|module| (*module).to_owned()).collect(),
            ..PathReport::default()
        };
        let tcp = ["eth", "ip", "tcp", "socket"];
        let paths = vec![path("gold", &tcp), path("<&>", &tcp), path("gold", &tcp), path("gold", &["eth"])];
        live::streams(&Report { paths, ..Report::default() })
    }

    #[test]
    fn text_has_the_highest_modules_first_and_their_links_below() {
        assert_eq!(
            text::draw(&web(), &streams()),
            "\
socket (socket-of-programs)
    stream - tcp.up
tcp
    down - ip.up
ip
    down - eth.up
    resolver - arp.resolver
arp
    down - eth.up
eth  mtu = 1500

2 paths of class gold: eth ip tcp socket
1 path of class <&>: eth ip tcp socket
1 path of class gold: eth
"
        );
    }

    #[test]
    fn graphviz_gets_every_module_and_link() {
        let dot = text_of(Format::Dot);
        assert!(dot.contains("\"socket\" [label=\"socket\\n(socket-of-programs)\"]"));
        assert!(dot.contains("\"ip\" -> \"arp\" [taillabel=\"resolver\", headlabel=\"resolver\", dir=none]"));
        assert_eq!(dot.matches("dir=none").count(), 5);
    }

    #[test]
    fn a_picture_has_every_module_and_no_markup_of_strangers() {
        let svg = text_of(Format::Svg);
        assert_eq!(svg.matches("<rect class=\"module\"").count(), 5);
        assert_eq!(svg.matches("<path class=\"link\"").count(), 5);
        assert_eq!(svg.matches("<path class=\"stream\"").count(), 3);
        assert!(svg.contains(">2 paths of class gold, up to socket<"));
        assert!(svg.contains("&lt;&amp;&gt;") && !svg.contains("<&>"));
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    }

    fn text_of(format: Format) -> String {
        draw(&web(), &streams(), format)
    }
}
