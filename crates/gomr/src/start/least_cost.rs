//! The first basis of commodities with the same ends, from a flow of least cost.
//!
//! Where many paths are equal, the simplex makes many pivots for each that it lets in. Successive shortest paths (R. Busacker
//! and P. Gowen, 1961) find the optimum itself, and node potentials that prove it; the rates are pushed into a basis at
//! the arcs that have a price by these, so that its prices are those.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::graph::{Graph, NONE};
use crate::halt::Halt;
use crate::lp::bounds;
use crate::pricing::introduce;
use crate::solver::Solver;
use crate::start::{balanced, crossover};

/// Augmentations for each arc before the flow so far has to do.
const MAX_AUGMENTATIONS: usize = 10;
/// Part of an arc's capacity that is nothing.
const MIN_ROOM: f64 = 1e-12;
/// Price, in costs of the longest arc, that is nothing.
const MIN_ARC_PRICE: f64 = 1e-9;

/// Starts from a flow of least cost and returns the known paths outside the basis; `None` where commodities have
/// different ends, one has limits, or the time is up.
pub(crate) fn start_single(solver: &mut Solver) -> Option<Vec<u32>> {
    let ids = commodities_of_one_pair(solver)?;
    let commodity = &solver.pool.commodities[ids[0] as usize];
    let ends = (commodity.source, commodity.target);
    let request = ids
        .iter()
        .map(|&id| solver.master.groups[id as usize].request)
        .sum();
    let mut flow = LeastCostFlow::new(
        &solver.graph,
        &solver.pricing.cost,
        &solver.master.capacity,
        ends,
    );
    flow.fill(request, &solver.master.halt)?;
    let (distance, paths) = (flow.potential[ends.1 as usize], flow.paths());
    let potential = (flow.is_cut, flow.potential);
    let (shares, marginal) = shared_out(solver, &ids, paths);
    let value_of = |id: u32| solver.pool.commodities[id as usize].value;
    let (value, least) = (value_of(marginal), value_of(ids[ids.len() - 1]));
    introduce::raise_m(solver, distance, least);
    let far = value * solver.master.big_m - distance;
    solver.master.preferred = priced_by(solver, &potential.1, |node| match &potential.0 {
        Some(reached) if !reached[node as usize] => far,
        _ => 0.0,
    });
    bounds::reset(&mut solver.master);
    solver.run.accurate_at = usize::MAX;
    let mut rates = Vec::new();
    for (id, paths, unserved) in shares {
        let columns = paths
            .iter()
            .map(|(path, rate)| (solver.add_path(id, path), *rate));
        let mut own: Vec<(u32, f64)> = columns.collect();
        own.push((solver.master.groups[id as usize].unserved, unserved));
        rates.push(own);
    }
    let is_settled = push_rates(solver, rates);
    solver.master.preferred.clear();
    is_settled.then(|| balanced::paths_outside(solver))
}

/// The commodities that ask for something, what is worth most first, where they have the same ends and nothing limits
/// their paths.
fn commodities_of_one_pair(solver: &Solver) -> Option<Vec<u32>> {
    let asks = |&id: &u32| {
        let group = &solver.master.groups[id as usize];
        group.active && group.request > 0.0
    };
    let of = |id: u32| &solver.pool.commodities[id as usize];
    let mut ids = Vec::new();
    for id in (0..solver.pool.commodities.len() as u32).filter(asks) {
        let first = of(*ids.first().unwrap_or(&id));
        let has_ends = (of(id).source, of(id).target) == (first.source, first.target);
        if !has_ends || !of(id).is_free() {
            return None;
        }
        ids.push(id);
    }
    ids.sort_by(|&a, &b| of(b).value.total_cmp(&of(a).value));
    (!ids.is_empty()).then_some(ids)
}

/// A commodity, its paths with their rates, and what is not served of it.
type PathShare = (u32, Vec<(Vec<u32>, f64)>, f64);

/// Shares paths out among commodities, those first that come first; and the last one that gets something.
fn shared_out(solver: &Solver, ids: &[u32], paths: Vec<(Vec<u32>, f64)>) -> (Vec<PathShare>, u32) {
    let mut paths = paths.into_iter().rev().collect::<Vec<_>>();
    let mut marginal = ids[0];
    let share = |&id: &u32| {
        let request = solver.master.groups[id as usize].request;
        let (mut left, mut own) = (request, Vec::new());
        while let Some((path, rate)) = paths.last_mut().filter(|_| left > MIN_ROOM * request) {
            let part = rate.min(left);
            own.push((path.clone(), part));
            (left, marginal) = (left - part, id);
            *rate -= part;
            if *rate <= MIN_ROOM * part {
                paths.pop();
            }
        }
        (id, own, left.max(0.0))
    };
    let shares = ids.iter().map(share).collect();
    (shares, marginal)
}

/// The arcs that have a price by node potentials, raised as `raise` says.
fn priced_by(solver: &Solver, potential: &[f64], raise: impl Fn(u32) -> f64) -> Vec<bool> {
    let at = |node: u32| potential[node as usize] + raise(node);
    let ends = solver.graph.tail.iter().zip(&solver.graph.head);
    let price = ends.map(|(&tail, &head)| at(head) - at(tail));
    price
        .zip(&solver.pricing.cost)
        .map(|(rise, cost)| rise - cost > MIN_ARC_PRICE)
        .collect()
}

/// Makes the largest rate of each commodity its key and pushes the others into the basis; whether that is feasible then.
fn push_rates(solver: &mut Solver, commodities: Vec<Vec<(u32, f64)>>) -> bool {
    let mut aside = Vec::new();
    for mut rates in commodities {
        rates.sort_by(|a, b| b.1.total_cmp(&a.1));
        let (key, _) = rates[0];
        if !solver.master.is_basic(key) {
            solver.master.set_key(key);
        }
        aside.extend(rates.drain(1..).filter(|&(_, rate)| rate > 0.0));
    }
    for &(column, rate) in &aside {
        crossover::set_aside(&mut solver.master, column, rate);
    }
    solver.master.compute_values();
    let tolerance = solver.master.tolerance();
    for (column, rate) in aside {
        crossover::push(&mut solver.master, column, rate, tolerance);
    }
    bounds::restore_bounds(&mut solver.master);
    solver.accurate();
    solver.master.infeasibility() <= solver.feasibility()
}

/// A flow between two nodes, and potentials by which no augmenting path is shorter than those taken.
struct LeastCostFlow<'a> {
    graph: &'a Graph,
    cost: &'a [f64],
    capacity: &'a [f64],
    ends: (u32, u32),
    flow: Vec<f64>,
    potential: Vec<f64>,
    /// Nodes that an augmenting path could reach, once there is none to the target.
    is_cut: Option<Vec<bool>>,
}

impl<'a> LeastCostFlow<'a> {
    fn new(graph: &'a Graph, cost: &'a [f64], capacity: &'a [f64], ends: (u32, u32)) -> Self {
        Self {
            graph,
            cost,
            capacity,
            ends,
            flow: vec![0.0; cost.len()],
            potential: vec![0.0; graph.nodes],
            is_cut: None,
        }
    }

    /// Augments up to `request`; `None` when the time is up.
    fn fill(&mut self, request: f64, halt: &Halt) -> Option<()> {
        let mut left = request;
        let mut parent = vec![(NONE, false); self.graph.nodes];
        for _ in 0..MAX_AUGMENTATIONS * self.cost.len() {
            if halt.now() {
                return None;
            }
            if left <= MIN_ROOM * request || !self.search(&mut parent) {
                break;
            }
            left -= self.augment(&parent, left);
        }
        Some(())
    }

    fn room(&self, arc: u32, is_forward: bool) -> f64 {
        let (flow, capacity) = (self.flow[arc as usize], self.capacity[arc as usize]);
        let room = if is_forward { capacity - flow } else { flow };
        if room > MIN_ROOM * capacity {
            room
        } else {
            0.0
        }
    }

    /// Finds the nodes' parents on shortest augmenting paths and raises the potentials; false where none leads to the target.
    fn search(&mut self, parent: &mut [(u32, bool)]) -> bool {
        let (source, target) = self.ends;
        let mut distance = vec![f64::INFINITY; self.graph.nodes];
        distance[source as usize] = 0.0;
        let mut heap = BinaryHeap::from([Reverse((0u64, source))]);
        while let Some(Reverse((bits, node))) = heap.pop() {
            let at = distance[node as usize];
            if bits > at.to_bits() {
                continue;
            }
            if node == target {
                for (potential, own) in self.potential.iter_mut().zip(&distance) {
                    *potential += own.min(at);
                }
                return true;
            }
            let out = self.graph.out(node as usize).iter().map(|&arc| (arc, true));
            let into = self
                .graph
                .into(node as usize)
                .iter()
                .map(|&arc| (arc, false));
            for (arc, is_forward) in out.chain(into) {
                if self.room(arc, is_forward) == 0.0 {
                    continue;
                }
                let (other, cost) = match is_forward {
                    true => (self.graph.head[arc as usize], self.cost[arc as usize]),
                    false => (self.graph.tail[arc as usize], -self.cost[arc as usize]),
                };
                let reduced = cost + self.potential[node as usize] - self.potential[other as usize];
                let next = at + reduced.max(0.0);
                if next < distance[other as usize] {
                    distance[other as usize] = next;
                    parent[other as usize] = (arc, is_forward);
                    heap.push(Reverse((next.to_bits(), other)));
                }
            }
        }
        self.is_cut = Some(distance.iter().map(|d| d.is_finite()).collect());
        false
    }

    /// Sends as much as fits on the path that was found; returns how much.
    fn augment(&mut self, parent: &[(u32, bool)], most: f64) -> f64 {
        let mut steps = Vec::new();
        let mut node = self.ends.1;
        while node != self.ends.0 {
            let (arc, is_forward) = parent[node as usize];
            steps.push((arc, is_forward));
            node = match is_forward {
                true => self.graph.tail[arc as usize],
                false => self.graph.head[arc as usize],
            };
        }
        let rooms = steps
            .iter()
            .map(|&(arc, is_forward)| self.room(arc, is_forward));
        let rate = rooms.fold(most, f64::min);
        for (arc, is_forward) in steps {
            self.flow[arc as usize] += if is_forward { rate } else { -rate };
        }
        rate
    }

    /// Takes the flow apart into paths; circles are left out.
    fn paths(&mut self) -> Vec<(Vec<u32>, f64)> {
        let mut paths = Vec::new();
        let mut place = vec![usize::MAX; self.graph.nodes];
        let mut path: Vec<u32> = Vec::new();
        let mut node = self.ends.0;
        loop {
            if node == self.ends.1 {
                paths.push((path.clone(), self.take(&path)));
                self.forget_from(0, &mut path, &mut place);
                node = self.ends.0;
            }
            if place[node as usize] != usize::MAX {
                let start = place[node as usize];
                self.take(&path[start..]);
                self.forget_from(start, &mut path, &mut place);
            }
            place[node as usize] = path.len();
            let used = |&&arc: &&u32| self.room(arc, false) > 0.0;
            let Some(&arc) = self.graph.out(node as usize).iter().find(used) else {
                return paths;
            };
            path.push(arc);
            node = self.graph.head[arc as usize];
        }
    }

    /// Takes the largest flow that all the arcs carry away from them; returns it.
    fn take(&mut self, arcs: &[u32]) -> f64 {
        let flows = arcs.iter().map(|&arc| self.flow[arc as usize]);
        let rate = flows.fold(f64::INFINITY, f64::min);
        for &arc in arcs {
            self.flow[arc as usize] -= rate;
        }
        rate
    }

    fn forget_from(&self, start: usize, path: &mut Vec<u32>, place: &mut [usize]) {
        for &arc in &path[start..] {
            place[self.graph.tail[arc as usize] as usize] = usize::MAX;
        }
        path.truncate(start);
    }
}
