//! As many disjoint paths as there are, with the least total delay.
//!
//! Successive shortest paths on unit capacities (Bhandari, "Survivable Networks", 1999): each search may
//! walk an arc in use backwards for minus its delay. Arcs that are each other's reverse count as two.

use crate::graph::{Graph, NONE};
use crate::problem::{Arc, Error, Problem};

/// What disjoint paths may not share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// Arcs.
    Arcs,
    /// Nodes other than the ends, and arcs.
    Nodes,
}

/// Finds up to `k` disjoint paths (arc indices) over arcs with a capacity, as many as possible, and of
/// these the ones with the least total delay; sorted by delay.
///
/// # Errors
/// [`Error::Invalid`] when the problem or a node is wrong.
pub fn disjoint_paths(
    problem: &Problem,
    source: usize,
    destination: usize,
    k: usize,
    apart: Apart,
) -> Result<Vec<Vec<usize>>, Error> {
    problem.validate()?;
    problem.check_ends(source, destination)?;
    if source == destination || k == 0 {
        return Ok(Vec::new());
    }
    if apart == Apart::Nodes {
        let paths = disjoint_paths(
            &split_nodes(problem, source, destination),
            source,
            destination,
            k,
            Apart::Arcs,
        )?;
        let real = |path: Vec<usize>| {
            path.into_iter()
                .filter(|&arc| arc < problem.arcs.len())
                .collect()
        };
        return Ok(paths.into_iter().map(real).collect());
    }
    let graph = problem.graph();
    let usable: Vec<bool> = problem.arcs.iter().map(|a| a.capacity_bps > 0.0).collect();
    let mut used = vec![false; graph.arcs()];
    let mut count = 0;
    while count < k && augment(&graph, &usable, &mut used, source, destination) {
        count += 1;
    }
    let mut paths: Vec<Vec<u32>> = (0..count)
        .map(|_| peel(&graph, &mut used, source, destination))
        .collect();
    paths.sort_by(|a, b| {
        graph
            .path_delay(a)
            .total_cmp(&graph.path_delay(b))
            .then(a.cmp(b))
    });
    Ok(paths
        .into_iter()
        .map(|path| path.into_iter().map(|arc| arc as usize).collect())
        .collect())
}

/// Every node between the ends becomes two, joined by one arc: paths that share no arc share no node.
fn split_nodes(problem: &Problem, source: usize, destination: usize) -> Problem {
    let n = problem.nodes;
    let is_end = |node: usize| node == source || node == destination;
    let exit = |node: usize| if is_end(node) { node } else { node + n };
    let outer = problem
        .arcs
        .iter()
        .map(|a| Arc::new(exit(a.tail), a.head, a.capacity_bps, a.delay_s));
    let inner = (0..n)
        .filter(|&v| !is_end(v))
        .map(|v| Arc::new(v, v + n, 1.0, 0.0));
    Problem {
        nodes: 2 * n,
        arcs: outer.chain(inner).collect(),
        flows: Vec::new(),
    }
}

/// Bellman-Ford over the residual network; false when the destination is cut off.
fn augment(g: &Graph, usable: &[bool], used: &mut [bool], source: usize, target: usize) -> bool {
    let mut distance = vec![f64::INFINITY; g.nodes];
    let mut parent = vec![NONE; g.nodes];
    distance[source] = 0.0;
    for _ in 0..g.nodes {
        let mut changed = false;
        for arc in (0..g.arcs()).filter(|&a| usable[a]) {
            let (tail, head) = (g.tail[arc] as usize, g.head[arc] as usize);
            let (from, to, delay) = match used[arc] {
                true => (head, tail, -g.delay_s[arc]),
                false => (tail, head, g.delay_s[arc]),
            };
            // Rounding must not look like a gain, or a cycle of zero length would never end.
            if distance[from] + delay < distance[to] - 1e-15 * distance[to].abs().min(1e300) {
                distance[to] = distance[from] + delay;
                parent[to] = arc as u32;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    if !distance[target].is_finite() {
        return false;
    }
    let mut at = target;
    // At most one step per node: rounding cannot trap the walk.
    for _ in 0..g.nodes {
        if at == source {
            break;
        }
        let arc = parent[at] as usize;
        at = if used[arc] {
            g.head[arc] as usize
        } else {
            g.tail[arc] as usize
        };
        used[arc] = !used[arc];
    }
    true
}

/// Takes one path out of the arcs in use.
fn peel(g: &Graph, used: &mut [bool], source: usize, target: usize) -> Vec<u32> {
    let mut path: Vec<u32> = Vec::new();
    let mut at = source;
    while at != target {
        let Some(&arc) = g.out(at).iter().find(|&&a| used[a as usize]) else {
            break;
        };
        used[arc as usize] = false;
        path.push(arc);
        at = g.head[arc as usize] as usize;
        // A way of zero delay may run in a circle: cut the circle off.
        if let Some(first) = path.iter().position(|&a| g.tail[a as usize] as usize == at) {
            path.truncate(first);
        }
    }
    path
}
