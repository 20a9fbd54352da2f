//! Shortest-path trees, one per source and ACK ratio, repaired when asked for.

use std::collections::BTreeMap;

use crate::graph::Graph;
use crate::pricing::arc_length;
use crate::tree::{Scratch, Tree};

#[derive(Clone, Debug)]
struct Class {
    ack_ratio: f64,
    length: Vec<f64>,
    /// Version since which each length is as it is.
    since: Vec<u32>,
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
pub(crate) struct Forest {
    classes: Vec<Class>,
    trees: Vec<Planted>,
    index: BTreeMap<(u32, u64), usize>,
    version: u32,
    scratch: Scratch,
}

impl Forest {
    /// Takes the lengths `cost + price` (or the prices alone); arcs that are not `usable` are out.
    pub fn update(&mut self, graph: &Graph, cost: Option<&[f64]>, price: &[f64], usable: &[bool]) {
        let next = self.version + 1;
        for class in &mut self.classes {
            for arc in 0..graph.arcs() {
                let length = cost.map_or(0.0, |c| c[arc])
                    + arc_length(graph, arc, class.ack_ratio, price, usable);
                if length != class.length[arc] {
                    class.length[arc] = length;
                    class.since[arc] = next;
                    self.version = next;
                }
            }
        }
    }

    /// Makes sure that lengths for the ACK ratio are kept from the next [`Forest::update`] on.
    pub fn class(&mut self, graph: &Graph, ack_ratio: f64) -> usize {
        let known = self.classes.iter().position(|c| c.ack_ratio == ack_ratio);
        known.unwrap_or_else(|| {
            self.classes.push(Class {
                ack_ratio,
                length: vec![f64::INFINITY; graph.arcs()],
                since: vec![self.version + 1; graph.arcs()],
            });
            self.classes.len() - 1
        })
    }

    /// Lengths of a class.
    pub fn length(&self, class: usize) -> &[f64] {
        &self.classes[class].length
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
            let Class { length, since, .. } = &self.classes[planted.class];
            let is_new = planted.version == 0;
            if is_new || !planted.tree.outlasts(graph, length, since, planted.version) {
                planted.tree.update(graph, length, &mut self.scratch);
            }
            planted.version = self.version;
        }
        &planted.tree
    }
}
