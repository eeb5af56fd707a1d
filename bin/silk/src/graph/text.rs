//! A graph as lines of text: the highest modules first, under each what it is linked to
//! below.

use super::layers::layers;
use super::live::Stream;
use super::{edges, shown};
use silk_config::{Graph, Module};
use std::fmt::Write;

/// Draws it.
pub fn draw(graph: &Graph, streams: &[Stream]) -> String {
    let mut out = String::new();
    let layer = layers(graph.modules.len(), &edges(graph));
    let mut order: Vec<usize> = (0..graph.modules.len()).collect();
    order.sort_by_key(|&module| std::cmp::Reverse(layer[module]));
    for module in order {
        let module = &graph.modules[module];
        let _ = writeln!(out, "{}", heading(module));
        for link in graph.links.iter().filter(|link| link.from.module == module.name) {
            let _ = writeln!(out, "    {} - {}", link.from.service, link.to);
        }
    }
    if !streams.is_empty() {
        out.push('\n');
    }
    for stream in streams {
        let _ = writeln!(out, "{}: {}", stream.label(), stream.modules.join(" "));
    }
    out
}

fn heading(module: &Module) -> String {
    let mut heading = module.name.clone();
    if module.kind != module.name {
        let _ = write!(heading, " ({})", module.kind);
    }
    for param in &module.params {
        let _ = write!(heading, "  {} = {}", param.key, shown(&param.value));
    }
    heading
}
