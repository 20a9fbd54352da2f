//! The path of least length for lengths that a caller gives, perhaps within a delay limit.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::graph::{Graph, NONE};
use crate::pricing::constrained::cheapest_within;
use crate::problem::{invalid, Error, Problem};

/// Searches one network for paths; flows play no part.
#[derive(Clone, Debug)]
pub struct PathSearch {
    graph: Graph,
    usable: Vec<bool>,
}

impl PathSearch {
    /// Takes the arcs of a problem, those with a capacity.
    #[must_use]
    pub fn new(problem: &Problem) -> Self {
        Self {
            graph: problem.graph(),
            usable: problem.arcs.iter().map(|a| a.capacity_bps > 0.0).collect(),
        }
    }

    /// Finds the path (arc indices) of least `length` whose delay is within the limit; infinite lengths close arcs.
    ///
    /// # Errors
    /// [`Error::Invalid`] when a node is wrong, or there is not one length of at least 0 for each arc.
    pub fn cheapest(
        &self,
        mut length: Vec<f64>,
        source: usize,
        destination: usize,
        max_delay_s: Option<f64>,
    ) -> Result<Option<Vec<u32>>, Error> {
        if length.len() != self.graph.arcs() || !length.iter().all(|&one| one >= 0.0) {
            return Err(invalid(
                "lengths".to_owned(),
                "must be a number of at least 0 for each arc",
            ));
        }
        if source.max(destination) >= self.graph.nodes {
            return Err(invalid(
                "source".to_owned(),
                "or destination is beyond the nodes",
            ));
        }
        for (length, &usable) in length.iter_mut().zip(&self.usable) {
            if !usable {
                *length = f64::INFINITY;
            }
        }
        let (source, target) = (source as u32, destination as u32);
        let path = shortest(&self.graph, &length, source, target);
        let (Some(path), Some(limit_s)) = (&path, max_delay_s) else {
            return Ok(path);
        };
        if self.graph.path_delay(path) <= limit_s * (1.0 + 1e-12) {
            return Ok(Some(path.clone()));
        }
        let mut within = Vec::new();
        let found = cheapest_within(&self.graph, &length, source, target, limit_s, &mut within);
        Ok(found.map(|_| within))
    }
}

/// Dijkstra's algorithm; ties go to fewer arcs.
fn shortest(graph: &Graph, length: &[f64], source: u32, target: u32) -> Option<Vec<u32>> {
    let mut best = vec![(f64::INFINITY, 0u32); graph.nodes];
    let mut parent = vec![NONE; graph.nodes];
    best[source as usize] = (0.0, 0);
    let mut heap = BinaryHeap::from([Reverse((0u64, 0u32, source))]);
    while let Some(Reverse((bits, hops, node))) = heap.pop() {
        if node == target {
            let mut path = Vec::new();
            graph.trace(&parent, source, target, &mut path);
            return Some(path);
        }
        let (so_far, fewest) = best[node as usize];
        if (bits, hops) > (so_far.to_bits(), fewest) {
            continue;
        }
        for &arc in graph.out(node as usize) {
            let head = graph.head[arc as usize];
            let next = (so_far + length[arc as usize], hops + 1);
            if next < best[head as usize] {
                best[head as usize] = next;
                parent[head as usize] = arc;
                heap.push(Reverse((next.0.to_bits(), next.1, head)));
            }
        }
    }
    None
}
