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

mod ascent;
pub(crate) mod cuts;
pub(crate) mod rising;

use crate::certificate::audit::Cut;
use crate::certificate::duality::Proof;
use crate::objectives::first_only::{self, SavedCosts};
use crate::problem::Error;
use crate::solver::Solver;
use ascent::Ascent;
use cuts::{CutPool, CutSlack, Level, MetricCut};

/// A flow as the filling sees it: its commodity, request and weight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FillingFlow {
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

/// Flows with a smaller share are not in a cut.
const MIN_CUT_SHARE: f64 = 1e-9;
/// Part of the requests that may be missing where all of them fit.
pub(crate) const MAX_MISSING: f64 = 1e-11;
/// Cuts that may be met on the way to a level.
const MAX_CUTS: usize = 200;
/// Share of its rate that a settled flow gives way by first, and in the end, where rounding would stop the rest.
const FIRST_RELAXATION: f64 = 2.5e-13;
const MAX_RELAXATION: f64 = 1e-10;

/// Finds the max-min fair rates; the solver ends with these as its requests. What was settled before an error is
/// in `filling`.
pub(crate) fn fill(
    solver: &mut Solver,
    flows: &[FillingFlow],
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
    let mut search = LevelSearch::new(first_only::ignore_delays(solver));
    while frozen.iter().any(Option::is_none) {
        let next = search.next_level(solver, flows, frozen)?;
        let share = |flow: &FillingFlow| next.share(flow);
        let mut stopped = Vec::new();
        let mut proven = Cut::default();
        for (place, (flow, rate)) in flows
            .iter()
            .zip(frozen.iter_mut())
            .enumerate()
            .filter(|(_, (_, rate))| rate.is_none())
        {
            // As the level was made of it: weight times level may be a hair below the request.
            let at_request = flow.request / flow.weight <= next.level;
            if at_request || share(flow) > MIN_CUT_SHARE {
                let fair = if at_request {
                    flow.request
                } else {
                    flow.request.min(flow.weight * next.level)
                };
                *rate = Some(fair);
                proof.bound += fair;
                if !at_request {
                    proven.stopped.push(place as u32);
                }
                stopped.push((flow, if at_request { 0.0 } else { 1.0 / share(flow) }));
            }
        }
        if stopped.is_empty() {
            // Only rates that are settled already meet in this cut, by rounding: they give it way.
            yielded = 4.0 * f64::max(yielded, FIRST_RELAXATION);
            if yielded > MAX_RELAXATION {
                return Err(solver.not_solved("max-min filling found no bottleneck"));
            }
            let settled = frozen.iter_mut().flatten();
            settled.for_each(|rate| *rate *= 1.0 - yielded);
            continue;
        }
        let Some(cut) = &next.cut else {
            continue;
        };
        if !proven.stopped.is_empty() {
            proven.prices.clone_from(&cut.prices);
            cuts.push(proven);
        }
        // Every flow of the cut has its rate by now: what they leave of the cut is all one could gain.
        let parts = flows.iter().zip(frozen.iter());
        let taken: f64 = parts
            .map(|(flow, rate)| share(flow) * rate.unwrap_or(0.0))
            .sum();
        let spare = (cut.room - taken).max(0.0);
        proof.bound += stopped.iter().map(|(_, gain)| spare * gain).sum::<f64>();
    }
    search.end(solver);
    let rate = |i: usize| frozen[i].unwrap_or(0.0);
    set_requests(solver, flows, rate);
    solver.solve()?;
    proof.value = (0..flows.len()).map(rate).sum();
    Ok(())
}

fn set_requests(solver: &mut Solver, flows: &[FillingFlow], rate: impl Fn(usize) -> f64) -> f64 {
    let mut total = vec![0.0; solver.pool.commodities.len()];
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

/// The way from level to level.
struct LevelSearch {
    pool: CutPool,
    ascent: Option<Ascent>,
    /// What undoes that delays are ignored; nothing once solves are from scratch.
    delays: Option<SavedCosts>,
    /// The last level that was found.
    level: f64,
}

impl LevelSearch {
    fn new(delays: SavedCosts) -> Self {
        Self {
            pool: CutPool::default(),
            ascent: None,
            delays: Some(delays),
            level: 0.0,
        }
    }

    fn end(mut self, solver: &mut Solver) {
        if let Some(ascent) = &mut self.ascent {
            ascent.end(solver);
        }
        self.count_delays(solver);
    }

    fn count_delays(&mut self, solver: &mut Solver) {
        if let Some(delays) = self.delays.take() {
            first_only::count_delays(solver, delays);
        }
    }

    /// The largest level all flows that still rise can reach, from that before.
    fn next_level(
        &mut self,
        solver: &mut Solver,
        flows: &[FillingFlow],
        frozen: &[Option<f64>],
    ) -> Result<Level, Error> {
        let pool = &mut self.pool;
        if self.ascent.is_none() {
            let all = pool.bound(flows, frozen);
            if fits(solver, flows, frozen, all.level, Basis::Last)? {
                return Ok(all);
            }
            pool.add(MetricCut::of(solver));
            if has_single_commodity(solver) {
                // The largest throughput is its level: nothing is to be climbed.
                let only = pool.bound(flows, frozen);
                if fits(solver, flows, frozen, only.level, Basis::Last)? {
                    return Ok(only);
                }
            }
            self.ascent = Some(Ascent::begin(solver));
            let apart = MetricCut::of_pathless(solver);
            let rising = flows.iter().zip(frozen).filter(|(_, rate)| rate.is_none());
            if rising
                .map(|(flow, _)| apart.share(flow))
                .any(|share| share > 0.0)
            {
                return Ok(Level {
                    level: 0.0,
                    cut: Some(pool.add(apart)),
                });
            }
        }
        let climbed = match &mut self.ascent {
            Some(ascent) => ascent.next(solver, flows, frozen, pool)?,
            None => None,
        };
        let level = match climbed {
            Some(level) => level,
            None => self.level_from_above(solver, flows, frozen)?,
        };
        self.level = level.level;
        Ok(level)
    }

    /// The same by single solves: where the climb took too long each from scratch, and delays decide between paths.
    fn level_from_above(
        &mut self,
        solver: &mut Solver,
        flows: &[FillingFlow],
        frozen: &[Option<f64>],
    ) -> Result<Level, Error> {
        let basis = match solver.master.work > solver.run.rise_until {
            true => Basis::Fresh,
            false => Basis::Last,
        };
        if basis == Basis::Fresh {
            self.count_delays(solver);
        }
        highest_level(solver, flows, frozen, &mut self.pool, (self.level, basis))
    }
}

/// Whether one commodity alone asks for something.
fn has_single_commodity(solver: &Solver) -> bool {
    let groups = solver.master.groups.iter();
    groups
        .filter(|group| group.active && group.request > 0.0)
        .count()
        == 1
}

/// Where a solve begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Basis {
    Last,
    Fresh,
}

/// Whether what the flows ask for at a level fits.
fn fits(
    solver: &mut Solver,
    flows: &[FillingFlow],
    frozen: &[Option<f64>],
    level: f64,
    basis: Basis,
) -> Result<bool, Error> {
    let asked = set_requests(solver, flows, |i| match frozen[i] {
        Some(rate) => rate,
        None => flows[i].request.min(flows[i].weight * level),
    });
    if basis == Basis::Fresh {
        solver.run.last_prices.clear();
        solver.restart()?;
    }
    let proof = solver.solve()?;
    Ok(asked - proof.bound <= MAX_MISSING * asked && solver.serves_all())
}

/// The highest level, by a solve for each one that is tried: from the right, by Newton's method. `least` fits.
fn highest_level(
    solver: &mut Solver,
    flows: &[FillingFlow],
    frozen: &[Option<f64>],
    pool: &mut CutPool,
    (least, basis): (f64, Basis),
) -> Result<Level, Error> {
    let mut highest = pool.bound(flows, frozen);
    for _ in 0..MAX_CUTS {
        let level = highest.level;
        if fits(solver, flows, frozen, level, basis)? {
            return Ok(highest);
        }
        let cut = pool.add(MetricCut::of(solver));
        let next = CutSlack::new(flows, frozen, &cut).root(level);
        highest = Level {
            level: next.min(level).max(least),
            cut: Some(cut),
        };
        if next >= level * (1.0 - 1e-13) || next <= least * (1.0 + MAX_MISSING) {
            return Ok(highest);
        }
    }
    Err(solver.not_solved("max-min filling does not settle"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arc, Engine, Flow, Objective, Problem};

    /// A ring of equal links with two chords, and a flow from each node to most others.
    fn ring(size: usize) -> Problem {
        let mut arcs = Vec::new();
        let around = (0..size).map(|node| (node, (node + 1) % size));
        for (a, b) in around.chain([(0, size / 2), (1, size / 3)]) {
            for (tail, head) in [(a, b), (b, a)] {
                arcs.push(Arc::new(tail, head, 5.0, 1.0));
            }
        }
        let pairs = (0..size).flat_map(|s| (0..size).map(move |t| (s, t)));
        let flows = pairs.filter(|(s, t)| s != t && (s + 2 * t) % 3 != 0);
        Problem {
            nodes: size,
            arcs,
            flows: flows
                .map(|(s, t)| Flow::new(s, t, 0.3 + (s % 4) as f64))
                .collect(),
        }
    }

    #[test]
    fn the_climb_meets_the_levels_that_single_solves_find() {
        let problem = ring(11);
        let mut engine = Engine::new(&problem, Objective::MaxMin).expect("valid");
        engine.solve().expect("solves");
        let flows: Vec<FillingFlow> = (0..problem.flows.len())
            .map(|id| FillingFlow {
                commodity: id as u32,
                request: problem.flows[id].rate_bps,
                weight: 1.0,
            })
            .collect();
        let mut frozen = vec![None; flows.len()];
        let mut climbing = engine.solver.clone();
        let mut probing = engine.solver;
        let _ = (
            first_only::ignore_delays(&mut climbing),
            first_only::ignore_delays(&mut probing),
        );
        let (mut met, mut pool) = (CutPool::default(), CutPool::default());
        let mut ascent = Ascent::begin(&mut climbing);
        let mut levels = 0;
        while frozen.iter().any(Option::is_none) {
            let probed =
                highest_level(&mut probing, &flows, &frozen, &mut pool, (0.0, Basis::Last))
                    .expect("solves");
            let climbed = ascent
                .next(&mut climbing, &flows, &frozen, &mut met)
                .expect("not halted")
                .expect("no rounding stops it");
            assert!((climbed.level - probed.level).abs() < 1e-9 * probed.level);
            for (flow, rate) in flows.iter().zip(&mut frozen) {
                let stops = flow.request <= probed.level || probed.share(flow) > MIN_CUT_SHARE;
                if rate.is_none() && stops {
                    *rate = Some(flow.request.min(probed.level));
                }
            }
            levels += 1;
        }
        assert!(levels > 3);
        ascent.end(&mut climbing);
    }
}
