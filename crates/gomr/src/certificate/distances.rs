//! Distances under prices alone, for each source and ACK ratio: over the few arcs with a price where so few have one,
//! else by shortest-path trees, repaired when asked for.

use std::collections::BTreeMap;

use crate::graph::Graph;
use crate::pricing::lengths::arc_length;
use crate::pricing::priced_arcs::{are_few, PricedArcs, Reach};
use crate::pricing::tree::{Scratch, Tree};

#[derive(Clone, Debug)]
struct DistanceClass {
    ack_ratio: f64,
    length: Vec<f64>,
    /// Version since which each length is as it is.
    since: Vec<u32>,
    has_few_priced_arcs: bool,
    priced_arcs: PricedArcs,
    /// What is known of the paths from each source, and for which version; 0 is none.
    reached: Vec<(u32, Reach)>,
}

#[derive(Clone, Debug)]
struct Planted {
    class: usize,
    tree: Tree,
    /// Version of the lengths the tree is right for; 0 is none.
    version: u32,
}

/// Trees under one set of prices.
#[derive(Clone, Debug, Default)]
pub(crate) struct Distances {
    classes: Vec<DistanceClass>,
    trees: Vec<Planted>,
    index: BTreeMap<(u32, u64), usize>,
    version: u32,
    scratch: Scratch,
}

impl Distances {
    /// Takes the prices as lengths; arcs that are not `usable` are out. Networks of `priced_arc_nodes` and more are measured over
    /// the arcs with a price where these are few.
    pub fn update(
        &mut self,
        graph: &Graph,
        price: &[f64],
        usable: &[bool],
        priced_arc_nodes: usize,
    ) {
        let next = self.version + 1;
        for class in &mut self.classes {
            let mut count = 0;
            for arc in 0..graph.arcs() {
                let length = arc_length(graph, arc, class.ack_ratio, price, usable);
                count += usize::from(length > 0.0);
                if length != class.length[arc] {
                    class.length[arc] = length;
                    class.since[arc] = next;
                    self.version = next;
                }
            }
            class.has_few_priced_arcs = are_few(count, graph.nodes, priced_arc_nodes);
        }
        for class in self
            .classes
            .iter_mut()
            .filter(|class| class.has_few_priced_arcs)
        {
            class.priced_arcs.update(graph, &class.length, self.version);
        }
    }

    /// Makes sure that lengths for the ACK ratio are kept from the next [`Distances::update`] on.
    pub fn class(&mut self, graph: &Graph, ack_ratio: f64) -> usize {
        let known = self.classes.iter().position(|c| c.ack_ratio == ack_ratio);
        known.unwrap_or_else(|| {
            self.classes.push(DistanceClass {
                ack_ratio,
                length: vec![f64::INFINITY; graph.arcs()],
                since: vec![self.version + 1; graph.arcs()],
                has_few_priced_arcs: false,
                priced_arcs: PricedArcs::new(graph, vec![0.0; graph.arcs()]),
                reached: vec![(0, Reach::default()); graph.nodes],
            });
            self.classes.len() - 1
        })
    }

    /// Lengths of a class.
    pub fn length(&self, class: usize) -> &[f64] {
        &self.classes[class].length
    }

    /// Distance from a source to a node; infinite where there is no way.
    pub fn distance(&mut self, graph: &Graph, (source, node): (u32, u32), class: usize) -> f64 {
        let DistanceClass {
            has_few_priced_arcs,
            priced_arcs,
            reached,
            ..
        } = &mut self.classes[class];
        if !*has_few_priced_arcs {
            return self.tree(graph, source, class).distance[node as usize];
        }
        let (version, reach) = &mut reached[source as usize];
        if *version != self.version {
            *version = self.version;
            priced_arcs.prepare(graph, source);
            priced_arcs.reach(source, reach);
        }
        priced_arcs.distance(reach, node)
    }

    /// The tree from `source`, up to date.
    pub fn tree(&mut self, graph: &Graph, source: u32, class: usize) -> &Tree {
        let key = (source, class as u64);
        let next = self.trees.len();
        let id = *self.index.entry(key).or_insert(next);
        if id == next {
            self.trees.push(Planted {
                class,
                tree: Tree::new(source, graph.nodes),
                version: 0,
            });
        }
        let planted = &mut self.trees[id];
        if planted.version == 0 || planted.version < self.version {
            let DistanceClass { length, since, .. } = &self.classes[planted.class];
            let is_new = planted.version == 0;
            if is_new || !planted.tree.outlasts(graph, length, since, planted.version) {
                planted.tree.update(graph, length, &mut self.scratch);
            }
            planted.version = self.version;
        }
        &planted.tree
    }
}
