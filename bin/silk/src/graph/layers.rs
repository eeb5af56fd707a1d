//! Where the modules of a graph are drawn: in layers, each module above all it builds on, as
//! few links as possible crossing (Sugiyama, Tagawa and Toda 1981, in small). Links across
//! several layers bend around the modules between. Pure arithmetic on indices.

/// What is laid out: `edges` lead from an upper to a lower node.
pub struct Drawing<'a> {
    /// The width of each node.
    pub widths: &'a [f64],
    /// Pairs of upper and lower.
    pub edges: &'a [(usize, usize)],
}

/// Where things go: x to the right from 0, layers upwards from 0.
#[derive(Debug)]
pub struct Layout {
    /// The layer of each node; everything it builds on is lower.
    pub layer: Vec<usize>,
    /// The middle of each node.
    pub x: Vec<f64>,
    /// The places each edge passes between its ends, from the upper down: layer and x.
    pub bends: Vec<Vec<(usize, f64)>>,
    /// The width of it all.
    pub width: f64,
}

/// Between neighbours of a layer.
const GAP: f64 = 28.0;
/// How often the order is improved, and the places.
const SWEEPS: usize = 12;

/// The layer of each node: one above the highest it builds on. Edges that close a circle
/// count for nothing.
pub fn layers(nodes: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut layer = vec![0; nodes];
    // Without circles the longest chain settles in as many rounds as there are nodes.
    let down = without_circles(nodes, edges);
    for _ in 0..nodes {
        for &(upper, lower) in &down {
            layer[upper] = layer[upper].max(layer[lower] + 1);
        }
    }
    layer
}

/// The edges that do not lead back to a node on the way.
fn without_circles(nodes: usize, edges: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut kept: Vec<(usize, usize)> = Vec::new();
    for &(upper, lower) in edges {
        let mut reached = vec![false; nodes];
        let mut open = vec![lower];
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut reached[node], true) {
                open.extend(kept.iter().filter(|edge| edge.0 == node).map(|edge| edge.1));
            }
        }
        if !reached[upper] {
            kept.push((upper, lower));
        }
    }
    kept
}

/// Nodes, and after them the bends of edges, as one kind of thing.
struct Items {
    layer: Vec<usize>,
    width: Vec<f64>,
    /// Each item's neighbours in the layer below, and in the layer above.
    below: Vec<Vec<usize>>,
    above: Vec<Vec<usize>>,
    /// The items between the ends of each edge, from the upper down.
    bends: Vec<Vec<usize>>,
}

impl Items {
    fn new(drawing: &Drawing<'_>) -> Self {
        let nodes = drawing.widths.len();
        let mut items = Self {
            layer: layers(nodes, drawing.edges),
            width: drawing.widths.to_vec(),
            below: vec![Vec::new(); nodes],
            above: vec![Vec::new(); nodes],
            bends: Vec::new(),
        };
        for &(a, b) in drawing.edges {
            let (upper, lower) = if items.layer[a] >= items.layer[b] { (a, b) } else { (b, a) };
            let bends: Vec<usize> =
                (items.layer[lower] + 1..items.layer[upper]).rev().map(|layer| items.bend(layer)).collect();
            let chain: Vec<usize> = [upper].into_iter().chain(bends.iter().copied()).chain([lower]).collect();
            for pair in chain.windows(2) {
                items.below[pair[0]].push(pair[1]);
                items.above[pair[1]].push(pair[0]);
            }
            items.bends.push(if upper == a { bends } else { bends.into_iter().rev().collect() });
        }
        items
    }

    fn bend(&mut self, layer: usize) -> usize {
        self.layer.push(layer);
        self.width.push(0.0);
        self.below.push(Vec::new());
        self.above.push(Vec::new());
        self.layer.len() - 1
    }

    /// The mean of `values` over the neighbours on one side; what it has where there are none.
    fn mean(neighbours: &[usize], values: &[f64], own: f64) -> f64 {
        match neighbours.len() {
            0 => own,
            len => neighbours.iter().map(|&item| values[item]).sum::<f64>() / len as f64,
        }
    }
}

/// Lays a drawing out.
pub fn lay_out(drawing: &Drawing<'_>) -> Layout {
    let items = Items::new(drawing);
    let rows = order(&items);
    let x = places(&items, &rows);
    let left = edge_of(&items, &x, -1.0).fold(f64::MAX, f64::min);
    let right = edge_of(&items, &x, 1.0).fold(f64::MIN, f64::max);
    let x: Vec<f64> = x.into_iter().map(|x| x - left).collect();
    let nodes = drawing.widths.len();
    Layout {
        layer: items.layer[..nodes].to_vec(),
        bends: items
            .bends
            .iter()
            .map(|bends| bends.iter().map(|&item| (items.layer[item], x[item])).collect())
            .collect(),
        x: x[..nodes].to_vec(),
        width: (right - left).max(0.0),
    }
}

fn edge_of<'a>(items: &'a Items, x: &'a [f64], side: f64) -> impl Iterator<Item = f64> + 'a {
    x.iter().zip(&items.width).map(move |(x, width)| x + side * width / 2.0)
}

/// The items of each layer from left to right: each near the middle of its neighbours.
fn order(items: &Items) -> Vec<Vec<usize>> {
    let highest = items.layer.iter().copied().max().map_or(0, |top| top + 1);
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); highest];
    for (item, &layer) in items.layer.iter().enumerate() {
        rows[layer].push(item);
    }
    let mut rank = vec![0.0; items.layer.len()];
    for sweep in 0..SWEEPS {
        for row in &rows {
            row.iter().enumerate().for_each(|(i, &item)| rank[item] = i as f64);
        }
        let upwards = sweep % 2 == 0;
        let layers: Vec<usize> = if upwards { (0..highest).collect() } else { (0..highest).rev().collect() };
        for layer in layers {
            let side = if upwards { &items.below } else { &items.above };
            let row = &mut rows[layer];
            let mut keyed: Vec<(f64, usize)> =
                row.iter().map(|&item| (Items::mean(&side[item], &rank, rank[item]), item)).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            *row = keyed.into_iter().map(|(_, item)| item).collect();
            row.iter().enumerate().for_each(|(i, &item)| rank[item] = i as f64);
        }
    }
    rows
}

/// The middle of each item: near its neighbours, in order, and no two overlapping.
fn places(items: &Items, rows: &[Vec<usize>]) -> Vec<f64> {
    let mut x = vec![0.0; items.layer.len()];
    for row in rows {
        spread(items, row, &mut x);
    }
    for _ in 0..SWEEPS {
        for row in rows.iter().chain(rows.iter().rev()) {
            for &item in row {
                let neighbours = [&items.below[item][..], &items.above[item][..]].concat();
                x[item] = Items::mean(&neighbours, &x, x[item]);
            }
            spread(items, row, &mut x);
        }
    }
    x
}

/// Pushes the items of a row apart until none overlaps, and back so that on the whole they
/// stay where they wanted to be.
fn spread(items: &Items, row: &[usize], x: &mut [f64]) {
    let wanted: f64 = row.iter().map(|&item| x[item]).sum();
    for pair in row.windows(2) {
        let least = x[pair[0]] + (items.width[pair[0]] + items.width[pair[1]]) / 2.0 + GAP;
        x[pair[1]] = x[pair[1]].max(least);
    }
    let shift = (row.iter().map(|&item| x[item]).sum::<f64>() - wanted) / row.len().max(1) as f64;
    row.iter().for_each(|&item| x[item] -= shift);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_node_is_above_all_it_builds_on() {
        assert_eq!(layers(4, &[(3, 2), (2, 0), (2, 1), (1, 0)]), [0, 1, 2, 3]);
    }

    #[test]
    fn a_circle_is_cut_and_not_followed_for_ever() {
        assert_eq!(layers(2, &[(0, 1), (1, 0)]), [1, 0]);
        assert_eq!(layers(1, &[(0, 0)]), [0]);
    }

    #[test]
    fn a_long_edge_bends_once_in_every_layer_between() {
        let layout = lay_out(&Drawing { widths: &[10.0; 3], edges: &[(2, 1), (1, 0), (2, 0)] });
        assert_eq!(layout.bends.iter().map(Vec::len).collect::<Vec<_>>(), [0, 0, 1]);
        assert_eq!(layout.bends[2][0].0, 1);
    }

    proptest! {
        #[test]
        fn no_two_nodes_overlap_and_everything_is_inside(
            widths in proptest::collection::vec(1.0f64..200.0, 1..12),
            edges in proptest::collection::vec((0usize..12, 0usize..12), 0..30),
        ) {
            let nodes = widths.len();
            let edges: Vec<_> = edges.into_iter().map(|(a, b)| (a % nodes, b % nodes)).collect();
            let layout = lay_out(&Drawing { widths: &widths, edges: &edges });
            prop_assert_eq!(layout.bends.len(), edges.len());
            for a in 0..nodes {
                prop_assert!(layout.x[a] - widths[a] / 2.0 >= -1e-6);
                prop_assert!(layout.x[a] + widths[a] / 2.0 <= layout.width + 1e-6);
                for b in 0..a {
                    let apart = (layout.x[a] - layout.x[b]).abs() - (widths[a] + widths[b]) / 2.0;
                    prop_assert!(layout.layer[a] != layout.layer[b] || apart > 1.0);
                }
            }
        }
    }
}
