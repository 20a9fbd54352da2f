//! Checks an answer and proves how good it is, from the answer alone.
//!
//! Nothing here has seen how the answer was found: a problem, paths with rates and prices go in; loads, totals and
//! a bound come out. Prices prove a bound whatever they are (weak duality); wrong ones
//! make it loose, never false. Distances are those of a plain Dijkstra search.

use std::collections::BTreeMap;

use crate::graph::Graph;
use crate::objectives::Objective;
use crate::pricing::constrained::cheapest_within;
use crate::pricing::lengths::arc_length;
use crate::problem::{Arc, Flow, Problem};

/// Loads and rates that are over their limit by less than this share of it are rounding, and left as they are.
const LIMIT_ROUNDING: f64 = 1e-13;
/// Rates per weight that differ by less than this share are of one level.
const SAME_LEVEL: f64 = 1e-9;
/// A flow whose path costs less than this is not in a cut.
const MIN_SHARE_OF_CUT: f64 = 1e-9;

/// Paths of all flows in flat arrays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathRates {
    /// Flow of each path, by its place in the problem; not falling.
    pub flow: Vec<u32>,
    /// Rate of each path, bit/s.
    pub rate_bps: Vec<f64>,
    /// Where the arcs of each path begin in `arcs`, and behind the last their number.
    pub start: Vec<u32>,
    /// Arcs of all paths, one after another.
    pub arcs: Vec<u32>,
}

/// Prices that stop some flows under `max_min`: they cannot all get more.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cut {
    /// Price of each arc.
    pub prices: Vec<f64>,
    /// The flows that stop here, by their place in the problem.
    pub stopped: Vec<u32>,
}

/// What an answer is worth.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Audit {
    /// Sum of the admitted rates, bit/s.
    pub admitted_bps: f64,
    /// Sum of the requested rates, bit/s.
    pub requested_bps: f64,
    /// Sum of rate times path delay, bit.
    pub cost_bps_s: f64,
    /// Value of the first objective.
    pub value: f64,
    /// No answer has a larger value of the first objective.
    pub upper_bound: f64,
    /// Largest excess of a load over its capacity or of a rate over its request, bit/s.
    pub max_violation_bps: f64,
    /// Load of each arc, bit/s.
    pub loads_bps: Vec<f64>,
}

impl PathRates {
    /// The arcs of a path.
    #[must_use]
    pub fn path(&self, index: usize) -> &[u32] {
        &self.arcs[self.start[index] as usize..self.start[index + 1] as usize]
    }

    fn arcs_of(&self, index: usize) -> impl Iterator<Item = usize> + Clone + '_ {
        self.path(index).iter().map(|&arc| arc as usize)
    }

    /// Load of each arc, bit/s.
    fn loads(&self, problem: &Problem) -> Vec<f64> {
        let mut loads = vec![0.0; problem.arcs.len()];
        for (index, (&flow, &rate)) in self.flow.iter().zip(&self.rate_bps).enumerate() {
            let flow = &problem.flows[flow as usize];
            each_load(&problem.arcs, flow, self.arcs_of(index), |arc, load| {
                loads[arc] += load * rate;
            });
        }
        loads
    }

    /// Admitted rate of each flow, bit/s.
    fn admitted(&self, problem: &Problem) -> Vec<f64> {
        let mut admitted = vec![0.0; problem.flows.len()];
        for (&flow, &rate) in self.flow.iter().zip(&self.rate_bps) {
            admitted[flow as usize] += rate;
        }
        admitted
    }

    /// Scales rates down where rounding has put them over a limit, each path by the tightest of its own.
    pub fn fit(&mut self, problem: &Problem) {
        let admitted = self.admitted(problem);
        for (&flow, rate) in self.flow.iter().zip(&mut self.rate_bps) {
            let (got, most) = (
                admitted[flow as usize],
                problem.flows[flow as usize].rate_bps,
            );
            if got > most * (1.0 + LIMIT_ROUNDING) {
                *rate *= most / got;
            }
        }
        let loads = self.loads(problem);
        let over = |(load, capacity): (f64, f64)| match load > capacity * (1.0 + LIMIT_ROUNDING) {
            true => capacity / load,
            false => 1.0,
        };
        let capacities = problem.arcs.iter().map(|arc| arc.capacity_bps);
        let factor: Vec<f64> = loads.into_iter().zip(capacities).map(over).collect();
        if factor.iter().all(|&f| f == 1.0) {
            return;
        }
        for index in 0..self.flow.len() {
            let flow = &problem.flows[self.flow[index] as usize];
            let mut least = 1.0f64;
            each_load(&problem.arcs, flow, self.arcs_of(index), |arc, _| {
                least = least.min(factor[arc]);
            });
            self.rate_bps[index] *= least;
        }
    }
}

/// Calls `f` with each arc that a bit/s on a path loads, and by how much.
pub(crate) fn each_load(
    arcs: &[Arc],
    flow: &Flow,
    path: impl Iterator<Item = usize> + Clone,
    mut f: impl FnMut(usize, f64),
) {
    path.clone().for_each(|arc| f(arc, 1.0));
    if flow.ack_ratio == 0.0 {
        return;
    }
    match &flow.ack_path {
        Some(acks) => acks.iter().for_each(|&arc| f(arc, flow.ack_ratio)),
        None => path
            .filter_map(|arc| arcs[arc].reverse)
            .for_each(|arc| f(arc, flow.ack_ratio)),
    }
}

/// Checks an answer and computes what its prices prove; `cuts` count under `max_min` alone.
///
/// # Errors
/// A sentence that says which path does not lead from its flow's source to its destination, or is too long.
pub fn audit(
    problem: &Problem,
    answer: &PathRates,
    objective: Objective,
    prices: &[f64],
    cuts: &[Cut],
) -> Result<Audit, String> {
    let mut audited = Audit {
        loads_bps: answer.loads(problem),
        ..Audit::default()
    };
    for index in 0..answer.flow.len() {
        let delay_s = check_path(problem, answer, index)?;
        audited.cost_bps_s += delay_s * answer.rate_bps[index];
    }
    let admitted = answer.admitted(problem);
    audited.admitted_bps = admitted.iter().sum();
    audited.requested_bps = problem.flows.iter().map(|flow| flow.rate_bps).sum();
    let loads = audited.loads_bps.iter().zip(&problem.arcs);
    let excess = loads.map(|(load, arc)| load - arc.capacity_bps);
    let flows = || admitted.iter().zip(&problem.flows);
    let beyond = flows().map(|(rate, flow)| rate - flow.rate_bps);
    audited.max_violation_bps = excess.chain(beyond).fold(0.0, f64::max);
    audited.value = flows()
        .map(|(&rate, flow)| value_of(objective, flow, rate))
        .sum();
    let limits = RateLimits::new(problem);
    audited.upper_bound = match objective {
        Objective::MaxMin => max_min_bound(problem, &limits, cuts, &admitted),
        _ => {
            let mut cheapest_paths = CheapestPaths::new(problem, prices);
            let mut bound = limits.room(problem, &cheapest_paths.price);
            for (id, flow) in problem.flows.iter().enumerate() {
                let cheapest = cheapest_paths.cheapest(id);
                for (worth, rate) in objective.parts(flow) {
                    bound += rate.min(limits.rate(flow)) * (worth - cheapest).max(0.0);
                }
            }
            bound
        }
    };
    Ok(audited)
}

/// Value of a flow's rate in the first objective: its parts are filled in their order.
fn value_of(objective: Objective, flow: &Flow, rate_bps: f64) -> f64 {
    let mut left = rate_bps;
    let value = objective.parts(flow).map(|(worth, most)| {
        let part = left.min(most);
        left -= part;
        worth * part
    });
    value.sum()
}

fn check_path(problem: &Problem, answer: &PathRates, index: usize) -> Result<f64, String> {
    let number = answer.flow[index] as usize;
    let flow = &problem.flows[number];
    let mut node = flow.source;
    let mut delay_s = 0.0;
    for &arc in answer.path(index) {
        let arc = &problem.arcs[arc as usize];
        if arc.tail != node {
            return Err(format!("a path of flow {number} breaks at node {node}"));
        }
        node = arc.head;
        delay_s += arc.delay_s;
    }
    if node != flow.destination {
        return Err(format!("a path of flow {number} ends at node {node}"));
    }
    if delay_s > flow.max_delay_s.unwrap_or(f64::INFINITY) * (1.0 + 1e-9) {
        return Err(format!("a path of flow {number} takes {delay_s} s"));
    }
    Ok(delay_s)
}

/// What arcs could be asked to carry and flows could ever get: bounds count no more than that.
struct RateLimits {
    largest_load: f64,
    leaving: Vec<f64>,
    entering: Vec<f64>,
}

impl RateLimits {
    fn new(problem: &Problem) -> Self {
        let mut limits = Self {
            largest_load: 0.0,
            leaving: vec![0.0; problem.nodes],
            entering: vec![0.0; problem.nodes],
        };
        for arc in &problem.arcs {
            limits.leaving[arc.tail] += arc.capacity_bps;
            limits.entering[arc.head] += arc.capacity_bps;
        }
        for flow in &problem.flows {
            let load = match flow.ack_path {
                Some(_) => 1.0 + flow.ack_ratio,
                None => flow.ack_ratio.max(1.0),
            };
            limits.largest_load += flow.rate_bps * load;
        }
        limits
    }

    fn rate(&self, flow: &Flow) -> f64 {
        if flow.source == flow.destination {
            return flow.rate_bps;
        }
        let ends = self.leaving[flow.source].min(self.entering[flow.destination]);
        flow.rate_bps.min(ends)
    }

    /// `Σ_e C_e π_e`; arcs without a capacity have an infinite price that counts nothing.
    fn room(&self, problem: &Problem, price: &[f64]) -> f64 {
        let arcs = problem.arcs.iter().zip(price);
        let open = arcs.filter(|(arc, _)| arc.capacity_bps > 0.0);
        open.map(|(arc, price)| arc.capacity_bps.min(self.largest_load) * price)
            .sum()
    }
}

/// Sum of the most that each flow could get while none that has less per weight loses.
fn max_min_bound(problem: &Problem, limits: &RateLimits, cuts: &[Cut], admitted: &[f64]) -> f64 {
    let flows = &problem.flows;
    let mut most: Vec<f64> = flows.iter().map(|flow| flow.rate_bps).collect();
    let level: Vec<f64> = flows
        .iter()
        .zip(admitted)
        .map(|(flow, rate)| rate / flow.weight)
        .collect();
    for cut in cuts {
        let mut cheapest_paths = CheapestPaths::new(problem, &cut.prices);
        let room = limits.room(problem, &cheapest_paths.price);
        let share: Vec<f64> = (0..flows.len())
            .map(|id| cheapest_paths.cheapest(id))
            .collect();
        // What flows up to a level keep of the cut, by level.
        let mut order: Vec<usize> = (0..flows.len())
            .filter(|&id| admitted[id] > 0.0 && share[id] > 0.0)
            .collect();
        order.sort_by(|&a, &b| level[a].total_cmp(&level[b]));
        let mut kept = vec![0.0];
        for &id in &order {
            kept.push(kept[kept.len() - 1] + share[id] * admitted[id]);
        }
        for &id in &cut.stopped {
            let id = id as usize;
            if share[id] <= MIN_SHARE_OF_CUT {
                continue;
            }
            let limit = level[id] * (1.0 + SAME_LEVEL);
            let below = order.partition_point(|&other| level[other] <= limit);
            let others = kept[below] - share[id] * admitted[id];
            most[id] = most[id].min((room - others).max(0.0) / share[id]);
        }
    }
    most.iter().sum()
}

/// Prices of the cheapest paths under some prices of arcs.
struct CheapestPaths<'a> {
    problem: &'a Problem,
    graph: Graph,
    usable: Vec<bool>,
    price: Vec<f64>,
    /// Distances from each source, by ACK ratio, and where those of the flow before are.
    distances: Vec<Vec<f64>>,
    places: BTreeMap<(usize, u64), usize>,
    last: Option<((usize, u64), usize)>,
}

impl<'a> CheapestPaths<'a> {
    fn new(problem: &'a Problem, prices: &[f64]) -> Self {
        let price = |(at, _): (usize, _)| prices.get(at).copied().unwrap_or(0.0).max(0.0);
        Self {
            problem,
            graph: problem.graph(),
            usable: problem.arcs.iter().map(|a| a.capacity_bps > 0.0).collect(),
            price: problem.arcs.iter().enumerate().map(price).collect(),
            distances: Vec::new(),
            places: BTreeMap::new(),
            last: None,
        }
    }

    /// Price of one bit/s of a flow on its cheapest path; infinite where it has none.
    fn cheapest(&mut self, id: usize) -> f64 {
        let flow = &self.problem.flows[id];
        if flow.source == flow.destination {
            return 0.0;
        }
        let mut acks = 0.0;
        let ratio = match &flow.ack_path {
            None => flow.ack_ratio,
            Some(path) => {
                let price = path.iter().map(|&arc| match self.usable[arc] {
                    true => flow.ack_ratio * self.price[arc],
                    false => f64::INFINITY,
                });
                acks = if flow.ack_ratio > 0.0 {
                    price.sum()
                } else {
                    0.0
                };
                0.0
            }
        };
        if let Some(paths) = &flow.fixed_paths {
            let prices = paths.iter().map(|path| self.length_of(flow, path, ratio));
            return acks + prices.fold(f64::INFINITY, f64::min);
        }
        if let Some(limit) = flow.max_delay_s {
            let lengths: Vec<f64> = self.lengths(ratio);
            let (source, target) = (flow.source as u32, flow.destination as u32);
            let path = &mut Vec::new();
            let cheapest = cheapest_within(&self.graph, &lengths, source, target, limit, path);
            return acks + cheapest.unwrap_or(f64::INFINITY);
        }
        let key = (flow.source, ratio.to_bits());
        let place = match self.last {
            Some((last, place)) if last == key => place,
            _ => self.place(key, ratio),
        };
        self.last = Some((key, place));
        acks + self.distances[place][flow.destination]
    }

    fn place(&mut self, key: (usize, u64), ratio: f64) -> usize {
        let next = self.distances.len();
        let place = *self.places.entry(key).or_insert(next);
        if place == next {
            let lengths = self.lengths(ratio);
            let length = |arc: usize| lengths[arc];
            let distances = self.graph.distances(key.0 as u32, true, length);
            self.distances.push(distances);
        }
        place
    }

    fn lengths(&self, ratio: f64) -> Vec<f64> {
        let length = |arc| arc_length(&self.graph, arc, ratio, &self.price, &self.usable);
        (0..self.price.len()).map(length).collect()
    }

    fn length_of(&self, flow: &Flow, path: &[usize], ratio: f64) -> f64 {
        let delay_s: f64 = path.iter().map(|&arc| self.graph.delay_s[arc]).sum();
        if delay_s > flow.max_delay_s.unwrap_or(f64::INFINITY) * (1.0 + 1e-12) {
            return f64::INFINITY;
        }
        let length = |&arc: &usize| arc_length(&self.graph, arc, ratio, &self.price, &self.usable);
        path.iter().map(length).sum()
    }
}
