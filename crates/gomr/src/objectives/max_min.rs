//! Exact max-min fairness: no flow can get more without taking from one that has less per weight.
//!
//! All flows rise together to `d_k(t) = min(d_k, w_k·t)` until `T(t)`, the largest total that fits, falls
//! short of `Σ d_k(t)`. The shortfall is convex in `t`, and the first-objective prices `π` of each solve
//! give its slope, so Newton's method from the right meets the largest `t` in finitely many solves. There
//! the prices form a tight cut `Σ_k dist_k(π)·x_k ≤ Σ_e C_e π_e`: flows with `dist_k > 0` and not yet at
//! their request cannot rise and are frozen; the rest rise on (Nace and Pióro, "Max-min fairness and its
//! applications to routing and load-balancing in communication networks", IEEE Surveys 10(4), 2008).
//!
//! A cut holds for every allocation, so each level is looked for below all the cuts that are known. Delays play
//! no part before the rates are settled: until then they are ignored.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::audit::Cut;
use crate::certify::Proof;
use crate::colgen::Solver;
use crate::problem::Error;

/// A flow as the filling sees it: its commodity, request and weight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rising {
    pub commodity: u32,
    pub request: f64,
    pub weight: f64,
}

/// The fair rates as far as they are settled, and what proves them.
#[derive(Default)]
pub(crate) struct Filling {
    /// Of each flow; `None` while it rises.
    pub rates: Vec<Option<f64>>,
    /// What stopped the flows, by their place among those that rise.
    pub cuts: Vec<Cut>,
    /// Sum of the rates, and of the most each flow could get while none that has less per weight loses.
    pub proof: Proof,
}

/// What all allocations keep: `Σ_k dist_k(π)·x_k ≤ Σ_e C_e π_e`.
struct Barrier {
    /// `Σ_e C_e π_e`.
    room: f64,
    /// `dist_k(π)` of each commodity.
    distance: Vec<f64>,
    /// `π`.
    prices: Vec<f64>,
}

/// The highest level and what stops it; nothing where that is the requests alone.
struct Level {
    level: f64,
    barrier: Option<Rc<Barrier>>,
}

impl Level {
    /// Share of the cut that one bit/s of a flow takes.
    fn share(&self, flow: &Rising) -> f64 {
        let barrier = self.barrier.as_ref();
        barrier.map_or(0.0, |barrier| barrier.share(flow))
    }
}

impl Barrier {
    fn share(&self, flow: &Rising) -> f64 {
        self.distance[flow.commodity as usize].min(1.0)
    }
}

/// Flows with a smaller share are not in a cut.
const NO_SHARE: f64 = 1e-9;
/// Cuts that are kept from level to level.
const KEPT: usize = 64;
/// What still rises must make up this part of a kept cut: else rounding of the rest would decide.
const LEAST_PART: f64 = 1e-3;
/// Share of its rate that a settled flow gives way by first, and in the end, where rounding would stop the rest.
const YIELD: f64 = 2.5e-13;
const MOST_YIELDED: f64 = 1e-10;

/// Finds the max-min fair rates; the solver ends with these as its requests. What was settled before an error is
/// in `filling`.
pub(crate) fn fill(
    solver: &mut Solver,
    flows: &[Rising],
    filling: &mut Filling,
) -> Result<(), Error> {
    let asks = flows.iter().map(|flow| flow.request > 0.0);
    filling.rates = asks
        .map(|asks| if asks { None } else { Some(0.0) })
        .collect();
    let Filling {
        rates: frozen,
        cuts,
        proof,
    } = filling;
    let mut yielded = 0.0;
    let delays = solver.ignore_delays();
    let mut known = VecDeque::new();
    while frozen.iter().any(Option::is_none) {
        let found = highest_level(solver, flows, frozen, &mut known)?;
        let share = |flow: &Rising| found.share(flow);
        let mut stopped = Vec::new();
        let mut cut = Cut::default();
        for (place, (flow, rate)) in flows
            .iter()
            .zip(frozen.iter_mut())
            .enumerate()
            .filter(|(_, (_, rate))| rate.is_none())
        {
            // As the level was made of it: weight times level may be a hair below the request.
            let at_request = flow.request / flow.weight <= found.level;
            if at_request || share(flow) > NO_SHARE {
                let fair = if at_request {
                    flow.request
                } else {
                    flow.request.min(flow.weight * found.level)
                };
                *rate = Some(fair);
                proof.bound += fair;
                if !at_request {
                    cut.stopped.push(place as u32);
                }
                stopped.push((flow, if at_request { 0.0 } else { 1.0 / share(flow) }));
            }
        }
        if stopped.is_empty() {
            // Only rates that are settled already meet in this cut, by rounding: they give it way.
            yielded = 4.0 * f64::max(yielded, YIELD);
            if yielded > MOST_YIELDED {
                return Err(solver.not_solved("max-min filling found no bottleneck"));
            }
            let settled = frozen.iter_mut().flatten();
            settled.for_each(|rate| *rate *= 1.0 - yielded);
            continue;
        }
        let Some(barrier) = &found.barrier else {
            continue;
        };
        if !cut.stopped.is_empty() {
            cut.prices.clone_from(&barrier.prices);
            cuts.push(cut);
        }
        // Every flow of the cut has its rate by now: what they leave of the cut is all one could gain.
        let parts = flows.iter().zip(frozen.iter());
        let taken: f64 = parts
            .map(|(flow, rate)| share(flow) * rate.unwrap_or(0.0))
            .sum();
        let spare = (barrier.room - taken).max(0.0);
        proof.bound += stopped.iter().map(|(_, gain)| spare * gain).sum::<f64>();
    }
    let rate = |i: usize| frozen[i].unwrap_or(0.0);
    set_requests(solver, flows, rate);
    solver.count_delays(delays);
    solver.solve()?;
    proof.value = (0..flows.len()).map(rate).sum();
    Ok(())
}

fn set_requests(solver: &mut Solver, flows: &[Rising], rate: impl Fn(usize) -> f64) -> f64 {
    let mut total = vec![0.0; solver.commodities.len()];
    for (i, flow) in flows.iter().enumerate() {
        total[flow.commodity as usize] += rate(i);
    }
    for (id, &request) in total.iter().enumerate() {
        if solver.master.groups[id].active {
            solver.master.set_request(id as u32, request);
        }
    }
    total.iter().sum()
}

/// The largest level all flows that still rise can reach.
fn highest_level(
    solver: &mut Solver,
    flows: &[Rising],
    frozen: &[Option<f64>],
    known: &mut VecDeque<Rc<Barrier>>,
) -> Result<Level, Error> {
    let rising = flows.iter().zip(frozen).filter(|(_, rate)| rate.is_none());
    let requests = rising.map(|(flow, _)| flow.request / flow.weight);
    let mut found = Level {
        level: requests.fold(0.0, f64::max),
        barrier: None,
    };
    for barrier in known.iter() {
        let line = Line::new(flows, frozen, barrier);
        if line.rises_enough(barrier, found.level) {
            found.lower(line.root(found.level), barrier);
        }
    }
    for _ in 0..200 {
        let level = found.level;
        let rate = |i: usize| match frozen[i] {
            Some(rate) => rate,
            None => flows[i].request.min(flows[i].weight * level),
        };
        let asked = set_requests(solver, flows, rate);
        let proof = solver.solve()?;
        if asked - proof.bound <= 1e-11 * asked {
            return Ok(found);
        }
        let (room, distance) = solver.cut();
        let barrier = Rc::new(Barrier {
            room,
            distance,
            prices: solver.first_prices(),
        });
        let next = Line::new(flows, frozen, &barrier).root(level);
        found.level = next.min(level);
        found.barrier = Some(Rc::clone(&barrier));
        known.push_back(barrier);
        if known.len() > KEPT {
            known.pop_front();
        }
        if next >= level * (1.0 - 1e-13) {
            return Ok(found);
        }
    }
    Err(solver.not_solved("max-min filling does not settle"))
}

impl Level {
    fn lower(&mut self, level: f64, barrier: &Rc<Barrier>) {
        if level < self.level {
            self.level = level;
            self.barrier = Some(Rc::clone(barrier));
        }
    }
}

/// What is left of a cut as the level rises: `left − slope·t`, less steep once a flow has all it asks for.
struct Line {
    left: f64,
    slope: f64,
    /// Level at which a flow has its request, and what it makes of the slope.
    steps: Vec<(f64, f64)>,
}

impl Line {
    fn new(flows: &[Rising], frozen: &[Option<f64>], barrier: &Barrier) -> Self {
        let mut line = Self {
            left: barrier.room,
            slope: 0.0,
            steps: Vec::new(),
        };
        for (flow, rate) in flows.iter().zip(frozen) {
            let share = barrier.share(flow);
            match *rate {
                Some(rate) => line.left -= share * rate,
                None if share > 0.0 => {
                    line.slope += share * flow.weight;
                    line.steps
                        .push((flow.request / flow.weight, share * flow.weight));
                }
                None => {}
            }
        }
        line
    }

    /// Whether what rises is so much of the cut that its root is exact.
    fn rises_enough(&self, barrier: &Barrier, level: f64) -> bool {
        let rises = self
            .steps
            .iter()
            .map(|&(until, weight)| weight * until.min(level));
        rises.sum::<f64>() > LEAST_PART * barrier.room
    }

    /// Largest `t ≤ level` at which nothing is missing.
    fn root(mut self, level: f64) -> f64 {
        self.steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut t = 0.0;
        for (until, weight) in self.steps {
            if self.slope > 0.0 && t + self.left / self.slope <= until {
                return (t + self.left / self.slope).clamp(0.0, level);
            }
            self.left -= self.slope * (until - t);
            t = until;
            self.slope -= weight;
        }
        level
    }
}
