//! A graph in the language of Graphviz.

use super::live::Stream;
use silk_config::Graph;
use std::fmt::Write;

/// Draws it; `dot -Tpdf` does the rest.
pub fn draw(graph: &Graph, streams: &[Stream]) -> String {
    let mut out =
        String::from("digraph silk {\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n");
    out.push_str("  edge [fontname=\"sans-serif\", fontsize=9];\n");
    for module in &graph.modules {
        let mut label = module.name.clone();
        if module.kind != module.name {
            let _ = write!(label, "\n({})", module.kind);
        }
        let _ = writeln!(out, "  {} [label={}];", quoted(&module.name), quoted(&label));
    }
    for link in &graph.links {
        let _ = writeln!(
            out,
            "  {} -> {} [taillabel={}, headlabel={}, dir=none];",
            quoted(&link.from.module),
            quoted(&link.to.module),
            quoted(&link.from.service),
            quoted(&link.to.service)
        );
    }
    for (n, stream) in streams.iter().enumerate() {
        let hue = (n as f64 * 0.381_966) % 1.0;
        for (i, pair) in stream.modules.windows(2).enumerate() {
            let label = if i == 0 { stream.label() } else { String::new() };
            let _ = writeln!(
                out,
                "  {} -> {} [color=\"{hue:.3} 0.8 0.7\", penwidth=2, constraint=false, label={}];",
                quoted(&pair[0]),
                quoted(&pair[1]),
                quoted(&label)
            );
        }
    }
    out.push_str("}\n");
    out
}

/// A quoted text of the language, in which only quotes and backslashes mean anything.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}
