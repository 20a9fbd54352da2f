//! Shortest-path trees that survive changes of arc lengths.
//!
//! A tree is built by Dijkstra's algorithm and repaired in place when lengths change, after
//! G. Ramalingam and T. Reps, "An incremental algorithm for a generalization of the shortest-path
//! problem" (J. Algorithms 21, 1996): what hung below a lengthened tree arc is searched again from
//! its border, and shortened arcs are relaxed. Simplex pivots change few prices, so a repair
//! touches few nodes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::graph::{Graph, NONE};

/// Shortest distances from one source, and the arc by which each node is reached.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    /// Source node.
    pub source: u32,
    /// Distance of each node; infinite when unreachable.
    pub distance: Vec<f64>,
    /// Tree arc that enters each node, `NONE` at the source and at unreachable nodes.
    pub parent: Vec<u32>,
}

/// Working memory of the searches, shared by all trees.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    below: Vec<u8>,
    stack: Vec<u32>,
}

const UNKNOWN: u8 = 0;
const KEPT: u8 = 1;
const CUT: u8 = 2;

impl Tree {
    /// Builds the tree anew under `length` (not negative; infinite: arc not usable).
    pub fn rebuild(&mut self, graph: &Graph, length: &[f64], scratch: &mut Scratch) {
        self.distance.fill(f64::INFINITY);
        self.parent.fill(NONE);
        self.distance[self.source as usize] = 0.0;
        scratch.heap.clear();
        scratch.heap.push(Reverse((0, self.source)));
        self.search(graph, length, scratch);
    }

    fn search(&mut self, graph: &Graph, length: &[f64], scratch: &mut Scratch) {
        while let Some(Reverse((bits, node))) = scratch.heap.pop() {
            let distance = self.distance[node as usize];
            if bits > distance.to_bits() {
                continue;
            }
            for &arc in graph.out(node as usize) {
                self.relax(graph, arc, distance + length[arc as usize], scratch);
            }
        }
    }

    fn relax(&mut self, graph: &Graph, arc: u32, distance: f64, scratch: &mut Scratch) {
        let head = graph.head[arc as usize];
        if distance < self.distance[head as usize] {
            self.distance[head as usize] = distance;
            self.parent[head as usize] = arc;
            // Distances are not negative, so their bit patterns sort as they do.
            scratch.heap.push(Reverse((distance.to_bits(), head)));
        }
    }

    /// Brings the tree up to date after the lengths of the arcs `changed` changed.
    pub fn repair(
        &mut self,
        graph: &Graph,
        length: &[f64],
        changed: &[u32],
        scratch: &mut Scratch,
    ) {
        scratch.heap.clear();
        if changed
            .iter()
            .any(|&arc| self.is_longer(graph, length, arc))
        {
            self.cut_below(graph, length, changed, scratch);
        }
        for &arc in changed {
            let distance = self.distance[graph.tail[arc as usize] as usize] + length[arc as usize];
            self.relax(graph, arc, distance, scratch);
        }
        self.search(graph, length, scratch);
    }

    /// Whether a tree arc is longer than when its head got its distance.
    fn is_longer(&self, graph: &Graph, length: &[f64], arc: u32) -> bool {
        let (tail, head) = (
            graph.tail[arc as usize] as usize,
            graph.head[arc as usize] as usize,
        );
        self.parent[head] == arc && self.distance[tail] + length[arc as usize] > self.distance[head]
    }

    /// Forgets the nodes below lengthened tree arcs and offers each its best way from a kept node.
    fn cut_below(&mut self, graph: &Graph, length: &[f64], changed: &[u32], scratch: &mut Scratch) {
        self.mark_below(graph, length, changed, scratch);
        let below = std::mem::take(&mut scratch.below);
        for node in (0..graph.nodes).filter(|&n| below[n] == CUT) {
            self.distance[node] = f64::INFINITY;
            self.parent[node] = NONE;
        }
        for node in (0..graph.nodes).filter(|&n| below[n] == CUT) {
            for &arc in graph.into(node) {
                let tail = graph.tail[arc as usize] as usize;
                if below[tail] != CUT {
                    let distance = self.distance[tail] + length[arc as usize];
                    self.relax(graph, arc, distance, scratch);
                }
            }
        }
        scratch.below = below;
    }

    fn mark_below(&self, graph: &Graph, length: &[f64], changed: &[u32], scratch: &mut Scratch) {
        scratch.below.clear();
        scratch.below.resize(graph.nodes, UNKNOWN);
        scratch.below[self.source as usize] = KEPT;
        for &arc in changed {
            if self.is_longer(graph, length, arc) {
                scratch.below[graph.head[arc as usize] as usize] = CUT;
            }
        }
        for start in 0..graph.nodes {
            let mut node = start;
            scratch.stack.clear();
            while scratch.below[node] == UNKNOWN {
                scratch.stack.push(node as u32);
                let arc = self.parent[node];
                if arc == NONE {
                    scratch.below[node] = KEPT;
                    break;
                }
                node = graph.tail[arc as usize] as usize;
            }
            let mark = scratch.below[node];
            for &node in &scratch.stack {
                scratch.below[node as usize] = mark;
            }
        }
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
