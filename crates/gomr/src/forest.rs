//! Shortest-path trees, one per source and ACK ratio, repaired when asked for.

use std::collections::BTreeMap;

use crate::dijkstra::{Scratch, Tree};
use crate::graph::{Graph, NONE};
use crate::pricing::arc_length;

#[derive(Clone, Debug)]
struct Class {
    ack_ratio: f64,
    length: Vec<f64>,
    /// Version at which each arc's length last changed.
    changed: Vec<u32>,
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
    changed: Vec<u32>,
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
                    class.changed[arc] = next;
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
                changed: vec![0; graph.arcs()],
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
            let tree = Tree {
                source,
                distance: vec![f64::INFINITY; graph.nodes],
                parent: vec![NONE; graph.nodes],
            };
            self.trees.push(Planted {
                class,
                tree,
                version: 0,
            });
        }
        let planted = &mut self.trees[id];
        let class = &self.classes[planted.class];
        if planted.version == 0 {
            planted
                .tree
                .rebuild(graph, &class.length, &mut self.scratch);
        } else if planted.version < self.version {
            let since = planted.version;
            self.changed.clear();
            let changed = (0..graph.arcs() as u32).filter(|&a| class.changed[a as usize] > since);
            self.changed.extend(changed);
            planted
                .tree
                .repair(graph, &class.length, &self.changed, &mut self.scratch);
        }
        planted.version = self.version;
        &planted.tree
    }
}
