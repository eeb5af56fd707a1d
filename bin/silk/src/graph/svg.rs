//! A graph as a picture: modules in layers, the device at the bottom, as the papers draw
//! them; live paths as coloured lines through the modules they cross. Follows the reader's
//! choice of light or dark.

use super::layers::{Drawing, Layout, lay_out};
use super::live::Stream;
use super::{edges, shown};
use silk_config::{Endpoint, Graph, Link, Module};
use std::fmt::Write;

const HEIGHT: f64 = 44.0;
const BETWEEN: f64 = 62.0;
const MARGIN: f64 = 24.0;
const LINE: f64 = 18.0;

const STYLE: &str = "\
svg{background:#fff;color:#1d2330;font:13px system-ui,sans-serif}
.module{fill:#eef2f9;stroke:#5b6b8c;stroke-width:1.2}
.link{fill:none;stroke:#8a94a8;stroke-width:1.4}
.service{font-size:10px;fill:#5f6b80;paint-order:stroke;stroke:#fff;stroke-width:4px}
.kind{font-size:10px;fill:#5f6b80}
.stream{fill:none;stroke-width:2.6;stroke-linecap:round;stroke-linejoin:round;opacity:.75}
text{fill:currentColor;text-anchor:middle}
.name{font-weight:600;paint-order:stroke;stroke:#eef2f9;stroke-width:5px}
.legend{text-anchor:start}
@media (prefers-color-scheme:dark){svg{background:#161a22;color:#e6e9f0}.module{fill:#232b3a;stroke:#8fa0c4}.link{stroke:#66718a}.service,.kind{fill:#a3adc0}.service{stroke:#161a22}.name{stroke:#232b3a}}";

/// Draws it.
pub fn draw(graph: &Graph, streams: &[Stream]) -> String {
    let links = |module: &Module| {
        let ends =
            |end: fn(&Link) -> &Endpoint| graph.links.iter().filter(|l| end(l).module == module.name).count();
        ends(|link| &link.from).max(ends(|link| &link.to))
    };
    let widths: Vec<f64> = graph.modules.iter().map(|module| width(module, links(module))).collect();
    let edges = edges(graph);
    let layout = lay_out(&Drawing { widths: &widths, edges: &edges });
    let canvas = Canvas::new(graph, &edges, &layout, &widths, streams);
    let mut out = canvas.opening();
    (0..graph.modules.len()).for_each(|module| canvas.shape(&mut out, module));
    (0..edges.len()).for_each(|link| canvas.link(&mut out, link));
    (0..streams.len()).for_each(|stream| canvas.stream(&mut out, stream));
    (0..edges.len()).for_each(|link| canvas.services(&mut out, link));
    (0..graph.modules.len()).for_each(|module| canvas.names(&mut out, module));
    out.push_str("</svg>\n");
    out
}

/// Wide enough for the longest of the module's lines, and for its links side by side.
fn width(module: &Module, links: usize) -> f64 {
    let longest = module.name.len().max(subtitle(module).len() * 4 / 5);
    (longest as f64 * 8.0 + 28.0).max(links as f64 * 48.0).clamp(84.0, 480.0)
}

/// Its kind, where that is not its name, and its parameters.
fn subtitle(module: &Module) -> String {
    let kind = (module.kind != module.name).then(|| module.kind.clone());
    let params = module.params.iter().map(|param| format!("{} = {}", param.key, shown(&param.value)));
    kind.into_iter().chain(params).collect::<Vec<_>>().join(", ")
}

/// A place on the canvas.
type Point = (f64, f64);

struct Canvas<'a> {
    graph: &'a Graph,
    edges: &'a [(usize, usize)],
    layout: &'a Layout,
    widths: &'a [f64],
    streams: &'a [Stream],
    highest: usize,
}

impl<'a> Canvas<'a> {
    fn new(
        graph: &'a Graph,
        edges: &'a [(usize, usize)],
        layout: &'a Layout,
        widths: &'a [f64],
        streams: &'a [Stream],
    ) -> Self {
        let highest = layout.layer.iter().copied().max().unwrap_or(0);
        Self { graph, edges, layout, widths, streams, highest }
    }

    fn opening(&self) -> String {
        let legend = self.streams.iter().map(|stream| stream.full_label().len()).max().unwrap_or(0);
        let width = (self.layout.width + 2.0 * MARGIN).max(legend as f64 * 8.0 + 3.0 * MARGIN);
        let height = self.top(0) + HEIGHT + MARGIN + self.streams.len() as f64 * LINE;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"module graph\">\n<style>{STYLE}</style>\n"
        )
    }

    /// The upper edge of a layer's modules.
    fn top(&self, layer: usize) -> f64 {
        MARGIN + (self.highest - layer) as f64 * (HEIGHT + BETWEEN)
    }

    fn x(&self, module: usize) -> f64 {
        MARGIN + self.layout.x[module]
    }

    fn shape(&self, out: &mut String, n: usize) {
        let (x, top, width) = (self.x(n), self.top(self.layout.layer[n]), self.widths[n]);
        let _ = writeln!(
            out,
            "<rect class=\"module\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{HEIGHT}\" rx=\"7\"/>",
            x - width / 2.0
        );
    }

    fn names(&self, out: &mut String, n: usize) {
        let module = &self.graph.modules[n];
        let (x, top) = (self.x(n), self.top(self.layout.layer[n]));
        let below = subtitle(module);
        let name_at = top + if below.is_empty() { 27.0 } else { 20.0 };
        let _ = writeln!(
            out,
            "<text class=\"name\" x=\"{x:.1}\" y=\"{name_at:.1}\">{}</text>",
            escaped(&module.name)
        );
        if !below.is_empty() {
            let room = ((self.widths[n] - 12.0) / 5.2) as usize;
            let _ = writeln!(
                out,
                "<text class=\"kind\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                top + 35.0,
                escaped(&shortened(&below, room))
            );
        }
    }

    /// Where a link leaves a module: its place among the links on that side, the leftmost
    /// towards the left.
    fn port(&self, module: usize, edge: usize, side_of: impl Fn(usize) -> Option<f64>) -> f64 {
        let mut others: Vec<(f64, usize)> =
            (0..self.graph.links.len()).filter_map(|n| Some((side_of(n)?, n))).collect();
        others.sort_by(|a, b| a.0.total_cmp(&b.0));
        let place = others.iter().position(|&(_, n)| n == edge).unwrap_or(0) as f64;
        let step = (self.widths[module] / (others.len() + 1) as f64).min(56.0);
        self.x(module) + (place - (others.len().max(1) - 1) as f64 / 2.0) * step
    }

    /// Where the other end of link `n` of `module` lies, if it is on this side.
    fn towards(&self, n: usize, module: usize, upwards: bool) -> Option<f64> {
        let (from, to) = self.edges[n];
        let other = if from == module { to } else { from };
        if from != module && to != module {
            return None;
        }
        let is_up = self.layout.layer[other] > self.layout.layer[module]
            || (self.layout.layer[other] == self.layout.layer[module] && to == module);
        let bends = &self.layout.bends[n];
        let first = if from == module { bends.first() } else { bends.last() };
        (is_up == upwards).then(|| first.map_or(self.layout.x[other], |bend| bend.1))
    }

    /// The ends of a link as they are drawn: the one on top first, and whether that is the
    /// one written first. A link that closes a circle may be written the other way round.
    fn ends(&self, n: usize) -> (usize, usize, bool) {
        let (from, to) = self.edges[n];
        let down = self.layout.layer[from] >= self.layout.layer[to];
        if down { (from, to, down) } else { (to, from, down) }
    }

    /// The places a link passes, from the top down, two for every gap between layers.
    fn route(&self, n: usize) -> Vec<Point> {
        let (upper, lower, down) = self.ends(n);
        let bottom = |layer: usize| self.top(layer) + HEIGHT;
        let from_x = self.port(upper, n, |link| self.towards(link, upper, false));
        let to_x = self.port(lower, n, |link| self.towards(link, lower, true));
        let mut route = vec![(from_x, bottom(self.layout.layer[upper]))];
        let mut bends = self.layout.bends[n].clone();
        if !down {
            bends.reverse();
        }
        for (layer, x) in bends {
            route.extend([(MARGIN + x, self.top(layer)), (MARGIN + x, bottom(layer))]);
        }
        route.push((to_x, self.top(self.layout.layer[lower])));
        route
    }

    fn link(&self, out: &mut String, n: usize) {
        let _ = writeln!(out, "<path class=\"link\" d=\"{}\"/>", line(&self.route(n)));
    }

    fn services(&self, out: &mut String, n: usize) {
        let (link, route) = (&self.graph.links[n], self.route(n));
        let (_, _, down) = self.ends(n);
        let (above, below) = if down { (&link.from, &link.to) } else { (&link.to, &link.from) };
        let (first, last) = (route[0], route[route.len() - 1]);
        service(out, first.0, first.1 + 12.0, &above.service);
        service(out, last.0, last.1 - 5.0, &below.service);
    }

    /// A live stream: a line along the links between its modules, and its name in the legend.
    fn stream(&self, out: &mut String, n: usize) {
        let colour = format!("hsl({:.0} 70% 50%)", (n as f64 * 137.5) % 360.0);
        let shift = (n as f64 - (self.streams.len() - 1) as f64 / 2.0) * 4.0;
        let route: Vec<Point> =
            self.course(&self.streams[n]).into_iter().map(|(x, y)| (x + shift, y)).collect();
        let _ = writeln!(out, "<path class=\"stream\" stroke=\"{colour}\" d=\"{}\"/>", line(&route));
        let y = self.top(0) + HEIGHT + MARGIN + n as f64 * LINE;
        let _ = writeln!(
            out,
            "<line class=\"stream\" stroke=\"{colour}\" x1=\"{MARGIN}\" x2=\"{:.0}\" y1=\"{:.0}\" y2=\"{:.0}\"/>\
             <text class=\"legend\" x=\"{:.0}\" y=\"{y:.0}\">{}</text>",
            2.0 * MARGIN,
            y - 4.0,
            y - 4.0,
            2.4 * MARGIN,
            escaped(&self.streams[n].full_label())
        );
    }

    /// The places a stream passes, device first, from the middle of its first module to that
    /// of its last. Modules that are not linked in this graph are joined straight.
    fn course(&self, stream: &Stream) -> Vec<Point> {
        let known = |name: &String| self.graph.modules.iter().position(|module| module.name == *name);
        let modules: Vec<usize> = stream.modules.iter().filter_map(known).collect();
        let middle = |m: usize| (self.x(m), self.top(self.layout.layer[m]) + HEIGHT / 2.0);
        let mut course: Vec<Point> = modules.first().map(|&m| middle(m)).into_iter().collect();
        for pair in modules.windows(2) {
            let joins = |&n: &usize| {
                let (upper, lower, _) = self.ends(n);
                [upper, lower] == [pair[1], pair[0]] || [upper, lower] == [pair[0], pair[1]]
            };
            let Some(link) = (0..self.edges.len()).find(joins) else { continue };
            let mut route = self.route(link);
            if self.ends(link).0 == pair[1] {
                route.reverse();
            }
            course.extend(route);
        }
        course.extend(modules.last().map(|&m| middle(m)));
        course
    }
}

fn service(out: &mut String, x: f64, y: f64, name: &str) {
    let _ = writeln!(out, "<text class=\"service\" x=\"{:.1}\" y=\"{y:.1}\">{}</text>", x, escaped(name));
}

/// A line through all places, upright at each.
fn line(route: &[Point]) -> String {
    let mut line = String::new();
    for (i, &(x, y)) in route.iter().enumerate() {
        let _ = match i.checked_sub(1).map(|before| route[before]) {
            None => write!(line, "M{x:.1} {y:.1}"),
            Some((from, above)) => {
                let middle = (above + y) / 2.0;
                write!(line, "C{from:.1} {middle:.1} {x:.1} {middle:.1} {x:.1} {y:.1}")
            }
        };
    }
    line
}

fn shortened(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    text.chars().take(room.saturating_sub(1)).chain(['…']).collect()
}

/// A text in which nothing is markup.
fn escaped(text: &str) -> String {
    let clean = text.chars().filter(|c| !c.is_control());
    clean.fold(String::new(), |mut out, c| {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
        out
    })
}
