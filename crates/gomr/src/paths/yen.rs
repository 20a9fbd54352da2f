//! The k shortest simple paths by delay.
//!
//! J. Y. Yen, "Finding the k shortest loopless paths in a network" (Management Science 17, 1971), with
//! Lawler's rule (a path is only varied from where it left its parent on) and A* searches guided by the
//! exact delay to the destination.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use crate::graph::{Graph, NONE};
use crate::problem::{Error, Problem};

/// Finds up to `k` simple paths (arc indices) of least delay over arcs with a capacity, by delay.
///
/// Flows of the problem play no part. With `source == destination` the only path is the empty one.
///
/// # Errors
/// [`Error::Invalid`] when the problem or a node is wrong.
pub fn shortest_paths(
    problem: &Problem,
    source: usize,
    destination: usize,
    k: usize,
) -> Result<Vec<Vec<usize>>, Error> {
    problem.validate()?;
    problem.check_ends(source, destination)?;
    let graph = problem.graph();
    let usable: Vec<bool> = problem.arcs.iter().map(|a| a.capacity_bps > 0.0).collect();
    let paths = yen(&graph, &usable, source as u32, destination as u32, k);
    Ok(paths
        .into_iter()
        .map(|path| path.into_iter().map(|arc| arc as usize).collect())
        .collect())
}

/// A candidate, ordered by delay, then by its arcs; `from` is where it left its parent.
type QueuedPath = Reverse<(u64, Vec<u32>, usize)>;

fn yen(graph: &Graph, usable: &[bool], source: u32, target: u32, k: usize) -> Vec<Vec<u32>> {
    let mut search = SpurSearch::new(graph, usable, target);
    let mut paths: Vec<Vec<u32>> = Vec::new();
    let mut queue: BinaryHeap<QueuedPath> = BinaryHeap::new();
    let mut seen: BTreeSet<Vec<u32>> = BTreeSet::new();
    if let Some(path) = search.run(source, &BTreeSet::new()) {
        seen.insert(path.clone());
        queue.push(Reverse((graph.path_delay(&path).to_bits(), path, 0)));
    }
    while paths.len() < k {
        let Some(Reverse((_, path, from))) = queue.pop() else {
            break;
        };
        for at in from..path.len() {
            let root = &path[..at];
            let spur = graph.tail[path[at] as usize];
            let mut barred: BTreeSet<u32> = BTreeSet::from([path[at]]);
            let alike = paths.iter().filter(|p| p.len() > at && p[..at] == *root);
            barred.extend(alike.map(|p| p[at]));
            search.block(root);
            if let Some(rest) = search.run(spur, &barred) {
                let whole: Vec<u32> = root.iter().copied().chain(rest).collect();
                if seen.insert(whole.clone()) {
                    queue.push(Reverse((graph.path_delay(&whole).to_bits(), whole, at)));
                }
            }
        }
        paths.push(path);
    }
    paths
}

struct SpurSearch<'a> {
    graph: &'a Graph,
    usable: &'a [bool],
    target: u32,
    to_come: Vec<f64>,
    blocked: Vec<bool>,
}

impl<'a> SpurSearch<'a> {
    fn new(graph: &'a Graph, usable: &'a [bool], target: u32) -> Self {
        let to_come = graph.distances(target, false, |arc| match usable[arc] {
            true => graph.delay_s[arc],
            false => f64::INFINITY,
        });
        Self {
            graph,
            usable,
            target,
            to_come,
            blocked: vec![false; graph.nodes],
        }
    }

    /// Blocks the nodes a root path visits before its end.
    fn block(&mut self, root: &[u32]) {
        self.blocked.fill(false);
        for &arc in root {
            self.blocked[self.graph.tail[arc as usize] as usize] = true;
        }
    }

    /// Shortest path from `source` whose first arc is not `barred`.
    fn run(&self, source: u32, barred: &BTreeSet<u32>) -> Option<Vec<u32>> {
        let graph = self.graph;
        let mut distance = vec![f64::INFINITY; graph.nodes];
        let mut parent = vec![NONE; graph.nodes];
        distance[source as usize] = 0.0;
        let mut heap = BinaryHeap::from([Reverse((0u64, source))]);
        while let Some(Reverse((bits, node))) = heap.pop() {
            if node == self.target {
                let mut path = Vec::new();
                graph.trace(&parent, source, node, &mut path);
                return Some(path);
            }
            let at = distance[node as usize];
            if node != source && bits > (at + self.to_come[node as usize]).to_bits() {
                continue;
            }
            for &arc in graph.out(node as usize) {
                let head = graph.head[arc as usize] as usize;
                let next = at + graph.delay_s[arc as usize];
                let closed = self.blocked[head] || head == source as usize;
                let shut = node == source && barred.contains(&arc);
                if closed || shut || !self.usable[arc as usize] || next >= distance[head] {
                    continue;
                }
                let whole = next + self.to_come[head];
                if whole.is_finite() {
                    distance[head] = next;
                    parent[head] = arc;
                    heap.push(Reverse((whole.to_bits(), head as u32)));
                }
            }
        }
        None
    }
}
