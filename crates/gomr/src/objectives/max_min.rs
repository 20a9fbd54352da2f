//! Exact max-min fairness: no flow can get more without taking from one that has less per weight.
//!
//! All flows rise together to `d_k(t) = min(d_k, w_k·t)` until `T(t)`, the largest total that fits, falls
//! short of `Σ d_k(t)`. The shortfall is convex in `t`, and the first-objective prices `π` of each solve
//! give its slope, so Newton's method from the right meets the largest `t` in finitely many solves. There
//! the prices form a tight cut `Σ_k dist_k(π)·x_k ≤ Σ_e C_e π_e`: flows with `dist_k > 0` and not yet at
//! their request cannot rise and are frozen; the rest rise on (Nace and Pióro, "Max-min fairness and its
//! applications to routing and load-balancing in communication networks", IEEE Surveys 10(4), 2008).

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

/// The fair rates and what proves them.
pub(crate) struct Filled {
    pub rates: Vec<f64>,
    /// What stopped the flows, by their place among those that rise.
    pub cuts: Vec<Cut>,
    /// Sum of the rates, and of the most each flow could get while none that has less per weight loses.
    pub proof: Proof,
}

/// The highest level found and the cut that stops it.
struct Level {
    level: f64,
    /// `Σ_e C_e π_e`.
    room: f64,
    /// `dist_k(π)` of each commodity; zero where nothing but requests stops the level.
    distance: Vec<f64>,
    /// `π`.
    prices: Vec<f64>,
}

/// Share of its rate that a settled flow gives way by first, and in the end, where rounding would stop the rest.
const YIELD: f64 = 2.5e-13;
const MOST_YIELDED: f64 = 1e-10;

/// Finds the max-min fair rates; the solver ends with these as its requests.
pub(crate) fn fill(solver: &mut Solver, flows: &[Rising]) -> Result<Filled, Error> {
    let mut frozen: Vec<Option<f64>> = flows
        .iter()
        .map(|f| if f.request > 0.0 { None } else { Some(0.0) })
        .collect();
    let mut proof = Proof::default();
    let mut cuts = Vec::new();
    let mut yielded = 0.0;
    while frozen.iter().any(Option::is_none) {
        let found = highest_level(solver, flows, &frozen)?;
        let share = |flow: &Rising| found.distance[flow.commodity as usize].min(1.0);
        let mut stopped = Vec::new();
        let mut cut = Cut::default();
        for (place, (flow, rate)) in flows
            .iter()
            .zip(&mut frozen)
            .enumerate()
            .filter(|(_, (_, rate))| rate.is_none())
        {
            // As the level was made of it: weight times level may be a hair below the request.
            let at_request = flow.request / flow.weight <= found.level;
            if at_request || share(flow) > 1e-9 {
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
        if !cut.stopped.is_empty() {
            cut.prices = found.prices;
            cuts.push(cut);
        }
        // Every flow of the cut has its rate by now: what they leave of the cut is all one could gain.
        let parts = flows.iter().zip(&frozen);
        let taken: f64 = parts
            .map(|(flow, rate)| share(flow) * rate.unwrap_or(0.0))
            .sum();
        let spare = (found.room - taken).max(0.0);
        proof.bound += stopped.iter().map(|(_, gain)| spare * gain).sum::<f64>();
    }
    let rates: Vec<f64> = frozen.into_iter().map(|rate| rate.unwrap_or(0.0)).collect();
    set_requests(solver, flows, |i| rates[i]);
    solver.solve()?;
    proof.value = rates.iter().sum();
    Ok(Filled { rates, cuts, proof })
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
) -> Result<Level, Error> {
    let rising = || {
        flows
            .iter()
            .zip(frozen)
            .filter(|(_, f)| f.is_none())
            .map(|(flow, _)| flow)
    };
    let mut level = rising().map(|f| f.request / f.weight).fold(0.0, f64::max);
    let mut cut = (0.0, vec![0.0; solver.commodities.len()], Vec::new());
    for _ in 0..200 {
        let rate = |i: usize| match frozen[i] {
            Some(rate) => rate,
            None => flows[i].request.min(flows[i].weight * level),
        };
        let asked = set_requests(solver, flows, rate);
        let proof = solver.solve()?;
        if asked - proof.bound <= 1e-11 * asked {
            return Ok(Level {
                level,
                room: cut.0,
                distance: cut.1,
                prices: cut.2,
            });
        }
        let (room, distance) = solver.cut();
        // Root of the cut Σ min(1, dist_k)·d_k(t) = room, with requests capped at each flow's own.
        let next = root(flows, frozen, &distance, room, level);
        cut = (room, distance, solver.first_prices());
        if next >= level * (1.0 - 1e-13) {
            return Ok(Level {
                level: next.min(level),
                room: cut.0,
                distance: cut.1,
                prices: cut.2,
            });
        }
        level = next;
    }
    Err(solver.not_solved("max-min filling does not settle"))
}

/// Largest `t ≤ level` with `Σ_k min(1, dist_k)·d_k(t) ≤ room`.
fn root(flows: &[Rising], frozen: &[Option<f64>], distance: &[f64], room: f64, level: f64) -> f64 {
    let mut left = room;
    let mut slope = 0.0;
    let mut steps = Vec::new();
    for (i, flow) in flows.iter().enumerate() {
        let share = distance[flow.commodity as usize].min(1.0);
        match frozen[i] {
            Some(rate) => left -= share * rate,
            None if share > 0.0 => {
                slope += share * flow.weight;
                steps.push((flow.request / flow.weight, share * flow.weight));
            }
            None => {}
        }
    }
    steps.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut t = 0.0;
    for (until, weight) in steps {
        if slope > 0.0 && t + left / slope <= until {
            return (t + left / slope).clamp(0.0, level);
        }
        left -= slope * (until - t);
        t = until;
        slope -= weight;
    }
    level
}
