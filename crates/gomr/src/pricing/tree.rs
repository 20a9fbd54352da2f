//! Shortest-path trees that survive changes of arc lengths.
//!
//! The old tree's paths under the new lengths are distances that a path has, so only what became
//! shorter is left to correct (a label-correcting algorithm: R. E. Bellman, "On a routing problem",
//! Quarterly of Applied Mathematics 16, 1958). One sweep over the nodes in the order of their old
//! distances corrects nearly all of it, without a heap: after some simplex pivots most nodes still
//! come in that order.

use std::collections::VecDeque;

use super::lengths::Lengths;
use crate::graph::{Graph, OutArc, NONE};

/// Shortest distances from one source, and the arc by which each node is reached.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    /// Source node.
    source: u32,
    /// Distance of each node; infinite when unreachable.
    pub distance: Vec<f64>,
    /// Tree arc that enters each node, `NONE` at the source and at unreachable nodes.
    parent: Vec<u32>,
    /// The nodes by distance, as the last correction left them.
    order: Vec<u32>,
    /// Version of the lengths that the tree is right for; 0 is none.
    pub version: u32,
}

/// Working memory of the corrections, shared by all trees.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    /// Nodes whose arcs are to be looked at again, first come, first served.
    queue: VecDeque<u32>,
    /// Whether a node's arcs will be looked at: by the sweep, or from the queue.
    awaited: Vec<bool>,
    /// Lengths of tree paths under other arc lengths, as far as they were asked for; NaN where not.
    measured: Vec<f64>,
    /// The nodes of a path that is being measured.
    walk: Vec<u32>,
    /// Distances and nodes that are being sorted.
    keys: Vec<u64>,
}

/// The order is renewed when one node in this many had to be looked at again.
const LATE_PART: usize = 16;

impl Tree {
    /// A tree that reaches nothing yet.
    pub fn new(source: u32, nodes: usize) -> Self {
        Self {
            source,
            distance: vec![f64::INFINITY; nodes],
            parent: vec![NONE; nodes],
            order: Vec::new(),
            version: 0,
        }
    }

    /// Brings the tree up to date with the lengths of a class, where it is not right for them as it is.
    pub fn follow(
        &mut self,
        graph: &Graph,
        lengths: &Lengths,
        class: usize,
        scratch: &mut Scratch,
    ) {
        let now = lengths.version();
        if self.version != now {
            if self.version == 0 || !self.outlasts(graph, lengths, class) {
                self.update(graph, lengths.of(class), scratch);
            }
            self.version = now;
        }
    }

    /// Brings the tree up to date with `length` (not negative; infinite: arc not usable), which is of no version.
    pub fn update(&mut self, graph: &Graph, length: &[f64], scratch: &mut Scratch) {
        self.version = 0;
        self.measure_paths(graph, length);
        scratch.awaited.clear();
        scratch.awaited.resize(graph.nodes, false);
        for &node in &self.order {
            scratch.awaited[node as usize] = true;
        }
        if self.order.is_empty() {
            scratch.queue.push_back(self.source);
        }
        for at in 0..self.order.len() {
            self.relax_from(graph, length, self.order[at], scratch);
        }
        let mut late = 0;
        while let Some(node) = scratch.queue.pop_front() {
            self.relax_from(graph, length, node, scratch);
            late += 1;
        }
        if LATE_PART * late > self.order.len() {
            self.sort(&mut scratch.keys);
        }
    }

    /// Whether the tree is right for lengths that changed since its version.
    fn outlasts(&self, graph: &Graph, lengths: &Lengths, class: usize) -> bool {
        let length = lengths.of(class);
        let since = lengths.since(class);
        let mut changed = (0..since.len()).filter(|&arc| since[arc] > self.version);
        changed.all(|arc| {
            let (tail, head) = (graph.tail[arc] as usize, graph.head[arc] as usize);
            let over = self.distance[tail] + length[arc];
            match self.parent[head] == arc as u32 {
                true => over == self.distance[head],
                false => over >= self.distance[head],
            }
        })
    }

    /// Gives each node the length of its old path; one whose old path is gone, or comes later in the order,
    /// has none for now.
    fn measure_paths(&mut self, graph: &Graph, length: &[f64]) {
        self.distance.fill(f64::INFINITY);
        self.distance[self.source as usize] = 0.0;
        for &node in &self.order {
            let arc = self.parent[node as usize];
            if arc != NONE {
                let tail = graph.tail[arc as usize];
                self.distance[node as usize] = self.distance[tail as usize] + length[arc as usize];
            }
        }
    }

    /// Offers the heads of a node's arcs a way over it.
    fn relax_from(&mut self, graph: &Graph, length: &[f64], node: u32, scratch: &mut Scratch) {
        scratch.awaited[node as usize] = false;
        let so_far = self.distance[node as usize];
        for &OutArc { arc, head } in graph.out_arcs(node as usize) {
            let distance = so_far + length[arc as usize];
            if distance < self.distance[head as usize] {
                self.distance[head as usize] = distance;
                self.parent[head as usize] = arc;
                if !scratch.awaited[head as usize] {
                    scratch.awaited[head as usize] = true;
                    scratch.queue.push_back(head);
                }
            }
        }
    }

    /// Forgets what [`Tree::measure`] has measured: it is asked about another tree or other lengths.
    pub fn begin_measuring(&self, scratch: &mut Scratch) {
        scratch.measured.clear();
        scratch.measured.resize(self.distance.len(), f64::NAN);
        scratch.measured[self.source as usize] = 0.0;
    }

    /// Length of the path to a reachable `node` under other lengths; each node is walked over once.
    pub fn measure(&self, graph: &Graph, length: &[f64], node: u32, scratch: &mut Scratch) -> f64 {
        let mut at = node;
        while scratch.measured[at as usize].is_nan() {
            scratch.walk.push(at);
            at = graph.tail[self.parent[at as usize] as usize];
        }
        let mut so_far = scratch.measured[at as usize];
        while let Some(next) = scratch.walk.pop() {
            so_far += length[self.parent[next as usize] as usize];
            scratch.measured[next as usize] = so_far;
        }
        so_far
    }

    /// The arc that enters each node, `NONE` at the source and at unreachable nodes.
    pub fn parents(&self) -> &[u32] {
        &self.parent
    }

    /// Sorts the nodes by distance, of which 32 bits will do: not the distances depend on the order, only the time
    /// that it takes to find them. As integers, floats that are not negative have the order that they have as floats.
    fn sort(&mut self, keys: &mut Vec<u64>) {
        let keyed = self.distance.iter().zip(0_u32..);
        keys.clear();
        keys.extend(keyed.map(|(&distance, node)| {
            u64::from((distance as f32).to_bits()) << 32 | u64::from(node)
        }));
        keys.sort_unstable();
        self.order.clear();
        self.order.extend(keys.iter().map(|&key| key as u32));
    }

    /// Writes the arcs of the path to `node` into `path`; false when it cannot be reached.
    pub fn path_to(&self, graph: &Graph, node: u32, path: &mut Vec<u32>) -> bool {
        path.clear();
        if !self.distance[node as usize].is_finite() {
            return false;
        }
        let mut at = node;
        while at != self.source {
            let arc = self.parent[at as usize];
            path.push(arc);
            at = graph.tail[arc as usize];
        }
        path.reverse();
        true
    }
}
