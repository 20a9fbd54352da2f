//! All paths of a commodity that are as good as its best under the present prices.
//!
//! The distances to the target bound what is still to come, so a depth-first search meets no dead end but for
//! nodes it would visit twice.

use crate::graph::Graph;
use crate::pricing;
use crate::solver::Solver;

/// Paths of one commodity that are listed.
pub(crate) const MAX_LISTED: usize = 64;
/// Arcs looked at for each of them, per node.
const STEPS_PER_NODE: usize = 16;

/// Lists paths from `source` that are not longer than `limit`, at most [`MAX_LISTED`].
fn paths_within(
    graph: &Graph,
    length: &[f64],
    to: &[f64],
    ends: (u32, u32),
    limit: f64,
) -> Vec<Vec<u32>> {
    let (source, target) = ends;
    let mut paths = Vec::new();
    let mut visited = vec![false; graph.nodes];
    visited[source as usize] = true;
    let mut path: Vec<u32> = Vec::new();
    // Node, place among its arcs, length so far.
    let mut stack = vec![(source, 0usize, 0.0f64)];
    let mut steps = MAX_LISTED * STEPS_PER_NODE * graph.nodes;
    while let Some(top) = stack.last_mut() {
        let (node, place, so_far) = *top;
        top.1 += 1;
        steps -= 1;
        if paths.len() == MAX_LISTED || steps == 0 {
            break;
        }
        let Some(&arc) = graph.out(node as usize).get(place) else {
            visited[node as usize] = false;
            stack.pop();
            path.pop();
            continue;
        };
        let head = graph.head[arc as usize];
        let further = so_far + length[arc as usize];
        if visited[head as usize] || further + to[head as usize] > limit {
            continue;
        }
        path.push(arc);
        if head == target {
            paths.push(path.clone());
            path.pop();
            continue;
        }
        visited[head as usize] = true;
        stack.push((head, 0, further));
    }
    paths
}

/// Adds the paths of some commodities that lose less than `zero` against their commodity's price.
pub(crate) fn add(solver: &mut Solver, commodities: &[u32], zero: f64) {
    pricing::update_lengths(solver);
    let mut ids: Vec<u32> = commodities
        .iter()
        .copied()
        .filter(|&id| !solver.pool.commodities[id as usize].fixed)
        .collect();
    let key = |id: u32| {
        let commodity = &solver.pool.commodities[id as usize];
        (commodity.target, commodity.class)
    };
    ids.sort_by_key(|&id| key(id));
    let mut now = None;
    let mut to = Vec::new();
    for id in ids {
        let commodity = &solver.pool.commodities[id as usize];
        let (source, target, class) = (commodity.source, commodity.target, commodity.class);
        let delay_limit = commodity.max_delay_s.unwrap_or(f64::INFINITY) * (1.0 + 1e-12);
        let limit = pricing::worth(solver, id, solver.master.sigma(id)) + zero;
        if solver.pricing.search.least(source, target) > limit {
            continue;
        }
        let length = solver.pricing.search.length(class);
        if now != Some((target, class)) {
            to = solver.graph.distances(target, false, |arc| length[arc]);
            now = Some((target, class));
        }
        if to[source as usize] > limit {
            continue;
        }
        for path in paths_within(&solver.graph, length, &to, (source, target), limit) {
            if solver.graph.path_delay(&path) <= delay_limit {
                solver.add_path(id, &path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::NONE;

    /// A square grid with arcs both ways, and a length from 1 to `spread` for each arc.
    fn grid(side: usize, spread: u64) -> (Graph, Vec<f64>) {
        let (mut tail, mut head, mut length) = (Vec::new(), Vec::new(), Vec::new());
        let mut state = 1u64;
        for node in 0..side * side {
            let right = (node % side + 1 < side).then_some(node + 1);
            let below = (node + side < side * side).then_some(node + side);
            for other in right.into_iter().chain(below) {
                for (from, to) in [(node, other), (other, node)] {
                    tail.push(from as u32);
                    head.push(to as u32);
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
                    length.push(1.0 + ((state >> 33) % spread) as f64);
                }
            }
        }
        let arcs = tail.len();
        let graph = Graph::new(side * side, tail, head, vec![0.0; arcs], vec![NONE; arcs]);
        (graph, length)
    }

    /// Every path that visits no node twice and is not longer than `limit`, by trying all arcs.
    fn every_path(graph: &Graph, length: &[f64], ends: (u32, u32), limit: f64) -> Vec<Vec<u32>> {
        let mut paths = Vec::new();
        let mut open = vec![(ends.0, vec![ends.0], Vec::new(), 0.0)];
        while let Some((node, visited, path, so_far)) = open.pop() {
            if node == ends.1 {
                paths.push(path);
                continue;
            }
            for (arc, extra) in length.iter().enumerate() {
                let (next, whole) = (graph.head[arc], so_far + extra);
                if graph.tail[arc] == node && !visited.contains(&next) && whole <= limit {
                    let visited = visited.iter().copied().chain([next]).collect();
                    let path = path.iter().copied().chain([arc as u32]).collect();
                    open.push((next, visited, path, whole));
                }
            }
        }
        paths
    }

    #[test]
    fn lists_the_equally_good_paths_of_a_grid_and_no_others() {
        for (side, spread, slack) in [
            (2, 1, 0.0),
            (3, 1, 0.0),
            (4, 1, 0.0),
            (3, 2, 0.0),
            (4, 2, 0.0),
            (3, 3, 1.0),
        ] {
            let (graph, length) = grid(side, spread);
            let ends = (0, (side * side - 1) as u32);
            let to = graph.distances(ends.1, false, |arc| length[arc]);
            let limit = to[0] + slack;
            let mut listed = paths_within(&graph, &length, &to, ends, limit);
            let mut expected = every_path(&graph, &length, ends, limit);
            listed.sort();
            expected.sort();
            assert!(!expected.is_empty() && expected.len() <= MAX_LISTED);
            assert_eq!(listed, expected, "side {side}, lengths up to {spread}");
        }
    }

    #[test]
    fn lists_no_more_than_the_most() {
        let (graph, length) = grid(5, 1);
        let to = graph.distances(24, false, |arc| length[arc]);
        let limit = to[0];
        assert_eq!(every_path(&graph, &length, (0, 24), limit).len(), 70);
        assert_eq!(
            paths_within(&graph, &length, &to, (0, 24), limit).len(),
            MAX_LISTED
        );
    }
}
