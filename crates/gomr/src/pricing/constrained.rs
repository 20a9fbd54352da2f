//! Cheapest path within a delay limit, exactly: labels of (length, delay) with dominance.
//!
//! Label setting with pruning by the least delay that is still to come (Dumitrescu and Boland,
//! "Improved preprocessing, labeling and scaling algorithms for the weight-constrained shortest path
//! problem", Networks 42, 2003). Its worst case is exponential; the limits of real networks are not.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::graph::{Graph, NONE};

struct Label {
    length: f64,
    delay: f64,
    node: u32,
    arc: u32,
    before: u32,
}

/// Finds the path of least `length` whose delay is at most `limit_s`; returns its length.
pub(crate) fn cheapest_within(
    graph: &Graph,
    length: &[f64],
    source: u32,
    target: u32,
    limit_s: f64,
    path: &mut Vec<u32>,
) -> Option<f64> {
    let limit = limit_s * (1.0 + 1e-12);
    let to_come = graph.distances(target, false, |arc| match length[arc].is_finite() {
        true => graph.delay_s[arc],
        false => f64::INFINITY,
    });
    let mut labels = vec![Label {
        length: 0.0,
        delay: 0.0,
        node: source,
        arc: NONE,
        before: NONE,
    }];
    // Labels leave the heap by length, so a node's later label must have less delay to matter.
    let mut least_delay = vec![f64::INFINITY; graph.nodes];
    let mut heap = BinaryHeap::from([Reverse((0u64, 0u64, 0u32))]);
    while let Some(Reverse((_, _, id))) = heap.pop() {
        let (at, delay, node) = {
            let label = &labels[id as usize];
            (label.length, label.delay, label.node as usize)
        };
        if node == target as usize {
            trace(&labels, id, path);
            return Some(at);
        }
        if delay >= least_delay[node] {
            continue;
        }
        least_delay[node] = delay;
        for &arc in graph.out(node) {
            let head = graph.head[arc as usize];
            let next = at + length[arc as usize];
            let later = delay + graph.delay_s[arc as usize];
            if !next.is_finite()
                || later + to_come[head as usize] > limit
                || later >= least_delay[head as usize]
            {
                continue;
            }
            heap.push(Reverse((
                next.to_bits(),
                later.to_bits(),
                labels.len() as u32,
            )));
            labels.push(Label {
                length: next,
                delay: later,
                node: head,
                arc,
                before: id,
            });
        }
    }
    None
}

fn trace(labels: &[Label], mut id: u32, path: &mut Vec<u32>) {
    path.clear();
    while labels[id as usize].arc != NONE {
        path.push(labels[id as usize].arc);
        id = labels[id as usize].before;
    }
    path.reverse();
}
