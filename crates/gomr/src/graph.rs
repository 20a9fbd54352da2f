//! The network as flat arrays: arcs by index, and for each node the arcs that leave and enter it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Marks "no arc", "no column", "not in the basis" in index arrays.
pub(crate) const NONE: u32 = u32::MAX;

/// A directed multigraph in compressed sparse rows.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    /// Number of nodes.
    pub nodes: usize,
    /// Tail node of each arc.
    pub tail: Vec<u32>,
    /// Head node of each arc.
    pub head: Vec<u32>,
    /// Delay of each arc, seconds.
    pub delay_s: Vec<f64>,
    /// Reverse arc of each arc (it carries the acknowledgements), or `NONE`.
    pub reverse: Vec<u32>,
    out: Csr,
    into: Csr,
    /// The arcs of `out` with their heads: side by side, they are read much faster.
    out_arcs: Vec<OutArc>,
}

/// An arc that leaves a node, and where it leads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutArc {
    pub arc: u32,
    pub head: u32,
}

#[derive(Clone, Debug)]
struct Csr {
    start: Vec<u32>,
    arcs: Vec<u32>,
}

impl Csr {
    fn new(nodes: usize, ends: &[u32]) -> Self {
        let mut start = vec![0u32; nodes + 1];
        for &node in ends {
            start[node as usize + 1] += 1;
        }
        for node in 0..nodes {
            start[node + 1] += start[node];
        }
        let mut next = start.clone();
        let mut arcs = vec![0u32; ends.len()];
        for (arc, &node) in ends.iter().enumerate() {
            arcs[next[node as usize] as usize] = arc as u32;
            next[node as usize] += 1;
        }
        Self { start, arcs }
    }

    fn span(&self, node: usize) -> Range<usize> {
        self.start[node] as usize..self.start[node + 1] as usize
    }

    fn of(&self, node: usize) -> &[u32] {
        &self.arcs[self.span(node)]
    }
}

impl Graph {
    /// Builds the graph; every end must be below `nodes`.
    pub fn new(
        nodes: usize,
        tail: Vec<u32>,
        head: Vec<u32>,
        delay_s: Vec<f64>,
        reverse: Vec<u32>,
    ) -> Self {
        let out = Csr::new(nodes, &tail);
        let into = Csr::new(nodes, &head);
        let way = |&arc: &u32| OutArc {
            arc,
            head: head[arc as usize],
        };
        Self {
            out_arcs: out.arcs.iter().map(way).collect(),
            nodes,
            tail,
            head,
            delay_s,
            reverse,
            out,
            into,
        }
    }

    /// Number of arcs.
    pub fn arcs(&self) -> usize {
        self.tail.len()
    }

    /// Arcs that leave `node`, in index order.
    pub fn out(&self, node: usize) -> &[u32] {
        self.out.of(node)
    }

    /// The same with their heads.
    #[inline]
    pub fn out_arcs(&self, node: usize) -> &[OutArc] {
        &self.out_arcs[self.out.span(node)]
    }

    /// Arcs that enter `node`, in index order.
    pub fn into(&self, node: usize) -> &[u32] {
        self.into.of(node)
    }

    /// Least length from each node to `root`, or with `is_source` to each node from it (Dijkstra's algorithm); infinite
    /// lengths close arcs.
    pub fn distances(&self, root: u32, is_source: bool, length: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut distance = vec![f64::INFINITY; self.nodes];
        distance[root as usize] = 0.0;
        let mut heap = BinaryHeap::from([Reverse((0u64, root))]);
        let (arcs, ends) = match is_source {
            true => (&self.out, &self.head),
            false => (&self.into, &self.tail),
        };
        while let Some(Reverse((bits, node))) = heap.pop() {
            let at = distance[node as usize];
            if bits > at.to_bits() {
                continue;
            }
            for &arc in arcs.of(node as usize) {
                let end = ends[arc as usize];
                let next = at + length(arc as usize);
                if next < distance[end as usize] {
                    distance[end as usize] = next;
                    heap.push(Reverse((next.to_bits(), end)));
                }
            }
        }
        distance
    }

    /// Writes the path that `parent`, the last arc to each node, leads back from `target` to `source`.
    pub fn trace(&self, parent: &[u32], source: u32, target: u32, path: &mut Vec<u32>) {
        path.clear();
        let mut at = target;
        while at != source {
            let arc = parent[at as usize];
            path.push(arc);
            at = self.tail[arc as usize];
        }
        path.reverse();
    }

    /// Sum of the delays along `path`, seconds.
    pub fn path_delay(&self, path: &[u32]) -> f64 {
        path.iter().map(|&arc| self.delay_s[arc as usize]).sum()
    }
}
