//! Shortest paths where few arcs have a price.
//!
//! All other arcs are as long as they always were, so the shortest detours around the priced arcs are kept from solve to
//! solve: a tree for each source, and one for each node that a priced arc leads to. A shortest path is such ways with
//! priced arcs between them, and the best sequence of priced arcs is a small all-pairs problem (R. W. Floyd, "Algorithm
//! 97: Shortest path", Comm. ACM 5, 1962). Each tree is repaired when another arc gets a price.

use std::sync::Arc;

use super::detours::{Detours, RepairScratch};
use crate::graph::{Graph, NONE};

/// Nodes for each priced arc from which on detours around them are worthwhile.
const NODES_PER_PRICED_ARC: usize = 6;
/// This many arcs that had a price and have none now, and one for this many that have one, may be avoided still.
const MAX_UNPRICED: usize = 16;
const MAX_UNPRICED_PART: usize = 4;
/// Changes that are kept for trees that do not know them yet.
const MAX_CHANGES: usize = 20_000;

/// An arc with a price.
#[derive(Clone, Copy, Debug)]
struct PricedArc {
    arc: u32,
    tail: u32,
    length: f64,
    /// Place of its head among the heads.
    head: u32,
}

/// A priced arc, times 2^32, and a head, by their places: of the size of a distance, so that both are compared at once.
type ArcAndHead = u64;

/// Whether so few arcs have a price that detours around them are worthwhile, in networks of `least_nodes` and more.
pub(crate) fn are_few(priced_arcs: usize, nodes: usize, least_nodes: usize) -> bool {
    nodes >= least_nodes && NODES_PER_PRICED_ARC * priced_arcs <= nodes
}

/// What is known of the paths from one source.
#[derive(Clone, Debug, Default)]
pub(crate) struct SourceDistances {
    source: u32,
    /// Least distance of each head by a path whose last arc is the first priced arc on it.
    entry: Vec<f64>,
    /// Least distance of each head.
    distance: Vec<f64>,
}

/// Distances and paths under one set of lengths.
#[derive(Clone, Debug, Default)]
pub(crate) struct PricedArcs {
    /// Length of each arc without price.
    free: Vec<f64>,
    avoided: Vec<bool>,
    /// Arcs that were avoided from then on, or no longer.
    changes: Vec<u32>,
    /// By root.
    ways: Vec<Option<Arc<Detours>>>,
    priced_arcs: Vec<PricedArc>,
    heads: Vec<u32>,
    /// Distance from each head around all priced arcs, node by node.
    around: Vec<f64>,
    /// The heads that it is of, and the versions of their ways.
    around_of: Vec<(u32, u32)>,
    /// Distance from head to head.
    between: Vec<f64>,
    /// The last priced arc on the way from head to head, and the head from where it is reached around all priced arcs.
    last: Vec<ArcAndHead>,
    version: Option<u32>,
    repair: RepairScratch,
}

impl PricedArcs {
    /// Arcs of these lengths, none with a price.
    pub fn new(graph: &Graph, free: Vec<f64>) -> Self {
        Self {
            avoided: vec![false; free.len()],
            ways: vec![None; graph.nodes],
            free,
            ..Self::default()
        }
    }

    /// Takes the lengths of all arcs, infinite where one is not usable; `version` changes when one does. Returns the
    /// work, in steps of about a nanosecond.
    pub fn update(&mut self, graph: &Graph, length: &[f64], version: u32) -> u64 {
        if self.version.replace(version) == Some(version) {
            return 0;
        }
        self.choose_avoided(length);
        self.list_priced(graph, length);
        let heads = self.heads.clone();
        for &head in &heads {
            self.prepare(graph, head);
        }
        self.fill_around(graph);
        self.join();
        let size = self.heads.len() as u64;
        size * (size * size + 2 * graph.nodes as u64)
    }

    fn choose_avoided(&mut self, length: &[f64]) {
        let free = &self.free;
        let has_price = |arc: usize| length[arc] != free[arc];
        let count = (0..free.len()).filter(|&arc| has_price(arc)).count();
        let former = (0..free.len()).filter(|&arc| self.avoided[arc] && !has_price(arc));
        let former: Vec<usize> = former.collect();
        if former.len() > MAX_UNPRICED + count / MAX_UNPRICED_PART {
            for arc in former {
                self.avoided[arc] = false;
                self.changes.push(arc as u32);
            }
        }
        for arc in 0..free.len() {
            if has_price(arc) && !self.avoided[arc] {
                self.avoided[arc] = true;
                self.changes.push(arc as u32);
            }
        }
        if self.changes.len() > MAX_CHANGES {
            self.changes.clear();
            self.ways.fill(None);
            self.around_of.clear();
        }
    }

    fn list_priced(&mut self, graph: &Graph, length: &[f64]) {
        self.priced_arcs.clear();
        self.heads.clear();
        let avoided = (0..self.avoided.len()).filter(|&arc| self.avoided[arc]);
        for arc in avoided.map(|arc| arc as u32) {
            let (tail, head) = (graph.tail[arc as usize], graph.head[arc as usize]);
            let length = length[arc as usize];
            if length.is_finite() {
                let known = self.heads.iter().position(|&other| other == head);
                let place = known.unwrap_or_else(|| {
                    self.heads.push(head);
                    self.heads.len() - 1
                });
                self.priced_arcs.push(PricedArc {
                    arc,
                    tail,
                    length,
                    head: place as u32,
                });
            }
        }
    }

    /// Brings the distances around all priced arcs up to date, of the heads whose ways have changed.
    fn fill_around(&mut self, graph: &Graph) {
        let size = self.heads.len();
        if self.around_of.len() != size {
            self.around_of.clear();
            self.around_of.resize(size, (NONE, 0));
            self.around.resize(size * graph.nodes, f64::INFINITY);
        }
        for (place, &head) in self.heads.iter().enumerate() {
            let Some(ways) = &self.ways[head as usize] else {
                continue;
            };
            let of = (head, ways.version);
            if std::mem::replace(&mut self.around_of[place], of) != of {
                let column = self.around[place..].iter_mut().step_by(size);
                for (around, &distance) in column.zip(&ways.distance) {
                    *around = distance;
                }
            }
        }
    }

    /// Distances from head to head over any number of priced arcs.
    fn join(&mut self) {
        let size = self.heads.len();
        self.between.clear();
        self.between.resize(size * size, f64::INFINITY);
        self.last.clear();
        self.last.resize(size * size, 0);
        for (place, priced) in self.priced_arcs.iter().enumerate() {
            for from in 0..size {
                let over = self.around[priced.tail as usize * size + from] + priced.length;
                let at = from * size + priced.head as usize;
                if over < self.between[at] {
                    self.between[at] = over;
                    self.last[at] = (place as ArcAndHead) << 32 | from as ArcAndHead;
                }
            }
        }
        for i in 0..size {
            self.between[i * size + i] = 0.0;
        }
        for middle in 0..size {
            let own = middle * size..(middle + 1) * size;
            let (row, lasts) = (self.between[own.clone()].to_vec(), self.last[own].to_vec());
            for from in (0..size).filter(|&from| from != middle) {
                let own = from * size..(from + 1) * size;
                let first = self.between[from * size + middle];
                if first.is_finite() {
                    shorten(
                        (&mut self.between[own.clone()], &mut self.last[own]),
                        first,
                        (&row, &lasts),
                    );
                }
            }
        }
    }

    /// Makes sure that the ways from a node are known and right.
    pub fn prepare(&mut self, graph: &Graph, root: u32) {
        let known = self.changes.len();
        let slot = &mut self.ways[root as usize];
        let Some(ways) = slot else {
            let ways = Detours::new(graph, &self.free, &self.avoided, root, known);
            *slot = Some(Arc::new(ways));
            return;
        };
        if ways.applied == known {
            return;
        }
        let ways = Arc::make_mut(ways);
        let changes = &self.changes[ways.applied..];
        ways.repair(
            graph,
            &self.free,
            &self.avoided,
            root,
            changes,
            &mut self.repair,
        );
        ways.applied = known;
    }

    /// Distances from a prepared source to the heads.
    pub fn reach(&self, source: u32, reach: &mut SourceDistances) {
        let size = self.heads.len();
        reach.source = source;
        reach.entry.clear();
        reach.entry.resize(size, f64::INFINITY);
        reach.distance.clear();
        reach.distance.resize(size, f64::INFINITY);
        let Some(ways) = &self.ways[source as usize] else {
            return;
        };
        for priced in &self.priced_arcs {
            let over = ways.distance[priced.tail as usize] + priced.length;
            let entry = &mut reach.entry[priced.head as usize];
            *entry = entry.min(over);
        }
        for (from, &first) in reach.entry.iter().enumerate() {
            let row = &self.between[from * size..(from + 1) * size];
            // What is as near over another head leads nowhere sooner.
            if first < reach.distance[from] {
                for (distance, &second) in reach.distance.iter_mut().zip(row) {
                    let over = first + second;
                    *distance = if over < *distance { over } else { *distance };
                }
            }
        }
    }

    /// Distance of a node from the source.
    pub fn distance(&self, reach: &SourceDistances, node: u32) -> f64 {
        let direct = self.direct(reach.source, node);
        let size = self.heads.len();
        let around = &self.around[node as usize * size..(node as usize + 1) * size];
        let over = reach.distance.iter().zip(around);
        over.fold(direct, |least, (first, second)| {
            let whole = first + second;
            if whole < least {
                whole
            } else {
                least
            }
        })
    }

    fn direct(&self, source: u32, node: u32) -> f64 {
        let ways = self.ways[source as usize].as_ref();
        ways.map_or(f64::INFINITY, |ways| ways.distance[node as usize])
    }

    /// Writes a path of least length to a node that can be reached; returns its length.
    pub fn path_to(
        &self,
        graph: &Graph,
        reach: &SourceDistances,
        node: u32,
        path: &mut Vec<u32>,
    ) -> f64 {
        path.clear();
        let size = self.heads.len();
        let around = &self.around[node as usize * size..(node as usize + 1) * size];
        let mut least = self.direct(reach.source, node);
        let mut end = None;
        for (head, (first, second)) in reach.distance.iter().zip(around).enumerate() {
            if first + second < least {
                least = first + second;
                end = Some(head);
            }
        }
        // From the end to the beginning.
        let Some(end) = end else {
            self.walk_back(graph, reach.source, node, path);
            path.reverse();
            return least;
        };
        self.walk_back(graph, self.heads[end], node, path);
        let mut first = end;
        let mut nearest = f64::INFINITY;
        for (from, entry) in reach.entry.iter().enumerate() {
            let over = entry + self.between[from * size + end];
            if over < nearest {
                (first, nearest) = (from, over);
            }
        }
        let mut at = end;
        while at != first {
            let last = self.last[first * size + at];
            let PricedArc { arc, tail, .. } = self.priced_arcs[(last >> 32) as usize];
            path.push(arc);
            at = (last & u64::from(u32::MAX)) as usize;
            self.walk_back(graph, self.heads[at], tail, path);
        }
        let into = self
            .priced_arcs
            .iter()
            .filter(|priced| priced.head as usize == first);
        let length = |priced: &PricedArc| self.direct(reach.source, priced.tail) + priced.length;
        let entry = into.min_by(|a, b| length(a).total_cmp(&length(b)));
        if let Some(priced) = entry {
            path.push(priced.arc);
            self.walk_back(graph, reach.source, priced.tail, path);
        }
        path.reverse();
        cut_loops(graph, reach.source, path);
        least
    }

    /// Appends the arcs of the way from a root to a node, the last one first.
    fn walk_back(&self, graph: &Graph, root: u32, node: u32, path: &mut Vec<u32>) {
        let Some(ways) = &self.ways[root as usize] else {
            return;
        };
        let mut at = node;
        while at != root {
            let arc = ways.parent[at as usize];
            path.push(arc);
            at = graph.tail[arc as usize];
        }
    }
}

/// Takes the ways over a middle where they are shorter.
fn shorten(
    (distances, lasts): (&mut [f64], &mut [ArcAndHead]),
    first: f64,
    (seconds, over): (&[f64], &[ArcAndHead]),
) {
    let own = distances.iter_mut().zip(lasts);
    // Masks in place of branches: they are hard to foresee, and so several are compared at once.
    for ((distance, last), (&second, &new)) in own.zip(seconds.iter().zip(over)) {
        let whole = first + second;
        let mask = u64::from(whole < *distance).wrapping_neg();
        *distance = if whole < *distance { whole } else { *distance };
        *last = (new & mask) | (*last & !mask);
    }
}

/// Takes out what leads back to a node of the path: arcs without length, or it would not be a shortest one.
fn cut_loops(graph: &Graph, source: u32, path: &mut Vec<u32>) {
    let mut passed = vec![0u64; graph.nodes.div_ceil(64)];
    let mut pass = |node: u32| {
        let (word, bit) = (&mut passed[node as usize / 64], 1 << (node % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    };
    pass(source);
    if path.iter().all(|&arc| pass(graph.head[arc as usize])) {
        return;
    }
    let mut nodes = vec![source];
    let mut kept = Vec::with_capacity(path.len());
    for &arc in path.iter() {
        let head = graph.head[arc as usize];
        if let Some(at) = nodes.iter().position(|&node| node == head) {
            nodes.truncate(at + 1);
            kept.truncate(at);
        } else {
            nodes.push(head);
            kept.push(arc);
        }
    }
    *path = kept;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;

    fn random_graph(nodes: usize, rng: &mut Rng) -> Graph {
        let (mut tail, mut head) = (Vec::new(), Vec::new());
        for _ in 0..3 * nodes {
            let (a, b) = (rng.below(nodes), rng.below(nodes));
            if a != b {
                tail.push(a as u32);
                head.push(b as u32);
            }
        }
        let arcs = tail.len();
        Graph::new(nodes, tail, head, vec![0.0; arcs], vec![NONE; arcs])
    }

    /// Bellman and Ford's distances.
    fn distances(graph: &Graph, length: &[f64], source: u32) -> Vec<f64> {
        let mut distance = vec![f64::INFINITY; graph.nodes];
        distance[source as usize] = 0.0;
        for _ in 0..graph.nodes {
            for (arc, length) in length.iter().enumerate() {
                let over = distance[graph.tail[arc] as usize] + length;
                let head = graph.head[arc] as usize;
                distance[head] = distance[head].min(over);
            }
        }
        distance
    }

    #[test]
    fn distances_and_paths_are_the_shortest_as_prices_come_change_and_go() {
        for seed in 0..60 {
            let mut rng = Rng(seed);
            let graph = random_graph(4 + rng.below(12), &mut rng);
            let free: Vec<f64> = (0..graph.arcs()).map(|_| rng.below(4) as f64).collect();
            let mut priced_arcs = PricedArcs::new(&graph, free.clone());
            let mut length = free.clone();
            for version in 1..12 {
                for _ in 0..=rng.below(4) {
                    let arc = rng.below(graph.arcs());
                    length[arc] = match rng.below(4) {
                        0 => f64::INFINITY,
                        1 => free[arc],
                        _ => free[arc] + rng.below(5) as f64,
                    };
                }
                priced_arcs.update(&graph, &length, version);
                let mut reach = SourceDistances::default();
                let mut path = Vec::new();
                for source in 0..graph.nodes as u32 {
                    priced_arcs.prepare(&graph, source);
                    priced_arcs.reach(source, &mut reach);
                    let expected = distances(&graph, &length, source);
                    for node in 0..graph.nodes as u32 {
                        let distance = priced_arcs.distance(&reach, node);
                        assert_eq!(distance, expected[node as usize], "seed {seed}");
                        if distance.is_finite() {
                            priced_arcs.path_to(&graph, &reach, node, &mut path);
                            let along: f64 = path.iter().map(|&arc| length[arc as usize]).sum();
                            assert_eq!(along, distance, "seed {seed}");
                            let mut at = source;
                            for &arc in &path {
                                assert_eq!(graph.tail[arc as usize], at);
                                at = graph.head[arc as usize];
                            }
                            assert_eq!(at, node);
                        }
                    }
                }
            }
        }
    }
}
