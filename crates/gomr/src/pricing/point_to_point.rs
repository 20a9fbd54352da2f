//! The cheapest path of one commodity under the present prices, found by a search of its own.
//!
//! The search is A* (Hart, Nilsson and Raphael, 1968) with the distance at zero prices as its potential: prices only add
//! to it, so it stays valid for the life of the network, and nodes from where no useful path can come are never
//! visited. Within a delay limit, the path is searched by labels ([`super::constrained`]) where the shortest is too slow.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::constrained::cheapest_within;
use super::lengths::Lengths;
use super::PathPricing;
use crate::graph::{Graph, NONE};
use crate::solver::Commodity;

/// Arc lengths, potentials and working memory of the searches.
#[derive(Clone, Debug, Default)]
pub(crate) struct PointToPoint {
    lengths: Lengths,
    /// Length of each arc at zero prices, or less.
    cost: Vec<f64>,
    /// Distance to each target at zero prices, by target; empty until it is needed.
    potential: Vec<Vec<f64>>,
    search: AStar,
}

/// Working memory of a search.
#[derive(Clone, Debug, Default)]
struct AStar {
    distance: Vec<f64>,
    parent: Vec<u32>,
    stamp: Vec<u32>,
    now: u32,
    heap: BinaryHeap<Reverse<(u64, u32)>>,
}

impl PointToPoint {
    /// Searches at lengths that are never less than these.
    pub fn new(nodes: usize, cost: Vec<f64>) -> Self {
        Self {
            cost,
            potential: vec![Vec::new(); nodes],
            search: AStar {
                distance: vec![0.0; nodes],
                parent: vec![NONE; nodes],
                stamp: vec![0; nodes],
                ..AStar::default()
            },
            ..Self::default()
        }
    }

    /// Number of the class of an ACK ratio; its lengths are set by the next [`PointToPoint::update`].
    pub fn class(&mut self, ack_ratio: f64) -> usize {
        self.lengths.class(ack_ratio)
    }

    /// Whether arcs cost no more than the least that they ever do.
    pub fn is_least(&self, cost: &[f64]) -> bool {
        self.cost == cost
    }

    /// Prepares the distances to `target` at zero prices, which searches for it need.
    pub fn prepare(&mut self, graph: &Graph, target: u32) {
        if !self.potential[target as usize].is_empty() {
            return;
        }
        let to = graph.distances(target, false, |arc| self.cost[arc]);
        self.potential[target as usize] = to;
    }

    /// Takes the lengths `cost + price`; arcs that are not `usable` are out.
    pub fn update(&mut self, graph: &Graph, cost: &[f64], price: &[f64], usable: &[bool]) {
        self.lengths.update(graph, cost, price, usable);
    }

    /// Lengths of a class.
    pub fn length(&self, class: usize) -> &[f64] {
        self.lengths.of(class)
    }

    /// Least length a path can have at any prices, 0 where the target was not prepared.
    pub fn least(&self, source: u32, target: u32) -> f64 {
        let to = self.potential[target as usize].get(source as usize);
        to.copied().unwrap_or(0.0)
    }

    /// Finds the path of least `length` to a prepared target if that is less than `limit`; no arc may be shorter
    /// than at zero prices.
    pub fn shortest_by(
        &mut self,
        graph: &Graph,
        length: impl Fn(u32) -> f64,
        ends: (u32, u32),
        limit: f64,
        path: &mut Vec<u32>,
    ) -> Option<f64> {
        let to_come = &self.potential[ends.1 as usize];
        self.search.run(graph, length, to_come, ends, limit, path)
    }
}

impl PathPricing for PointToPoint {
    fn shortest(
        &mut self,
        graph: &Graph,
        commodity: &Commodity,
        limit: f64,
        path: &mut Vec<u32>,
    ) -> Option<f64> {
        let (source, target) = (commodity.source, commodity.target);
        self.prepare(graph, target);
        let to_come = &self.potential[target as usize];
        let lengths = self.lengths.of(commodity.class);
        let length = |arc: u32| lengths[arc as usize];
        let ends = (source, target);
        let shortest = self.search.run(graph, length, to_come, ends, limit, path)?;
        match commodity.max_delay_s {
            Some(limit_s) if graph.path_delay(path) > limit_s * (1.0 + 1e-12) => {
                cheapest_within(graph, lengths, source, target, limit_s, path)
            }
            _ => Some(shortest),
        }
    }
}

impl AStar {
    fn run(
        &mut self,
        graph: &Graph,
        length: impl Fn(u32) -> f64,
        to_come: &[f64],
        (source, target): (u32, u32),
        limit: f64,
        path: &mut Vec<u32>,
    ) -> Option<f64> {
        if to_come[source as usize] >= limit {
            return None;
        }
        self.now = self.now.wrapping_add(1);
        if self.now == 0 {
            self.stamp.fill(0);
            self.now = 1;
        }
        self.heap.clear();
        self.distance[source as usize] = 0.0;
        self.parent[source as usize] = NONE;
        self.stamp[source as usize] = self.now;
        self.heap
            .push(Reverse((to_come[source as usize].to_bits(), source)));
        while let Some(Reverse((bits, node))) = self.heap.pop() {
            let at = self.distance[node as usize];
            if node == target {
                graph.trace(&self.parent, source, target, path);
                return Some(at);
            }
            if bits > (at + to_come[node as usize]).to_bits() {
                continue;
            }
            for &arc in graph.out(node as usize) {
                let head = graph.head[arc as usize] as usize;
                let next = at + length(arc);
                let whole = next + to_come[head];
                let known = self.stamp[head] == self.now;
                if whole < limit && (!known || next < self.distance[head]) {
                    self.stamp[head] = self.now;
                    self.distance[head] = next;
                    self.parent[head] = arc;
                    self.heap.push(Reverse((whole.to_bits(), head as u32)));
                }
            }
        }
        None
    }
}
