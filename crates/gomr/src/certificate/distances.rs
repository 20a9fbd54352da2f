//! Distances under prices alone, for each source and ACK ratio: over the few arcs with a price where so few have one,
//! else by shortest-path trees, repaired when asked for.

use std::collections::BTreeMap;

use crate::graph::Graph;
use crate::pricing::lengths::Lengths;
use crate::pricing::priced_arcs::{are_few, PricedArcs, SourceDistances};
use crate::pricing::tree::{Scratch, Tree};

/// What is known of the distances of a class of lengths, where few arcs have one.
#[derive(Clone, Debug)]
struct DistanceClass {
    has_few_priced_arcs: bool,
    priced_arcs: PricedArcs,
    /// What is known of the paths from each source, and for which version; 0 is none.
    reached: Vec<(u32, SourceDistances)>,
}

/// Distances under one set of prices.
#[derive(Clone, Debug, Default)]
pub(crate) struct Distances {
    lengths: Lengths,
    classes: Vec<DistanceClass>,
    trees: BTreeMap<(u32, usize), Tree>,
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
        let free = vec![0.0; graph.arcs()];
        self.lengths.update(graph, &free, price, usable);
        let version = self.lengths.version();
        for (class, length) in self.classes.iter_mut().zip(self.lengths.all()) {
            let count = length.iter().filter(|&&length| length > 0.0).count();
            class.has_few_priced_arcs = are_few(count, graph.nodes, priced_arc_nodes);
            if class.has_few_priced_arcs {
                class.priced_arcs.update(graph, length, version);
            }
        }
    }

    /// Makes sure that lengths for the ACK ratio are kept from the next [`Distances::update`] on.
    pub fn class(&mut self, graph: &Graph, ack_ratio: f64) -> usize {
        let class = self.lengths.class(ack_ratio);
        if class == self.classes.len() {
            self.classes.push(DistanceClass {
                has_few_priced_arcs: false,
                priced_arcs: PricedArcs::new(graph, vec![0.0; graph.arcs()]),
                reached: vec![(0, SourceDistances::default()); graph.nodes],
            });
        }
        class
    }

    /// Lengths of a class.
    pub fn length(&self, class: usize) -> &[f64] {
        self.lengths.of(class)
    }

    /// Distance from a source to a node; infinite where there is no way.
    pub fn distance(&mut self, graph: &Graph, (source, node): (u32, u32), class: usize) -> f64 {
        let DistanceClass {
            has_few_priced_arcs,
            priced_arcs,
            reached,
        } = &mut self.classes[class];
        if !*has_few_priced_arcs {
            return self.tree(graph, source, class).distance[node as usize];
        }
        let (version, reach) = &mut reached[source as usize];
        if *version != self.lengths.version() {
            *version = self.lengths.version();
            priced_arcs.prepare(graph, source);
            priced_arcs.reach(source, reach);
        }
        priced_arcs.distance(reach, node)
    }

    /// The tree from `source`, up to date.
    pub fn tree(&mut self, graph: &Graph, source: u32, class: usize) -> &Tree {
        let new = || Tree::new(source, graph.nodes);
        let tree = self.trees.entry((source, class)).or_insert_with(new);
        tree.follow(graph, &self.lengths, class, &mut self.scratch);
        tree
    }
}
