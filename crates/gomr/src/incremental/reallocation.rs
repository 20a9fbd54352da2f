//! The optimum that moves flows least.
//!
//! A solve finds one optimum of many. The flows that it leaves as they were reported stay so. The others, the movers, share
//! what those leave; of all optima ([`OptimalFace::of_flows`]) one is chosen in two steps:
//!
//! 1. The rates nearest to those reported: a bit/s taken off a path counts 1, one put on a path that the flow has counts 1,
//!    and one put on another path counts 2.
//! 2. Every flow that moves there is tried once more: it is held where it was, beside all that stay, and stays too where
//!    an optimum is left. So no flow moves that an optimum could leave alone without moving another that stays.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::allocation::{Allocation, Changes, FlowAllocation, FlowId, PathRate, Summary};
use crate::certificate::audit::each_load;
use crate::incremental::engine::Engine;
use crate::incremental::nearest_rates::{Bounds, NearestRates, RateVariable, SearchOutcome};
use crate::incremental::optimal_face::{FacePath, OptimalFace};
use crate::objectives::tidy;
use crate::problem::Error;

/// Share of a flow's rate by which those of its paths may differ and it still stays.
const STAYING_ROUNDING: f64 = 1e-9;
/// A flow of the choice that moves less than this share of its rate stays.
const MIN_MOVE: f64 = 1e-10;
/// Limits may be broken by this share of them.
const BROKEN_LIMIT: f64 = 1e-11;
/// Rounding of a difference of loads, in shares of the capacity.
const LOAD_ROUNDING: f64 = 1e-15;
/// The solve and the choice may cost this many tenths of a solve from scratch, the rest being for what is not foreseen, and
/// so much where that is less than anyone notices.
const MAX_TENTHS: u64 = 8;
const MIN_WORK: u64 = 1_000_000;
/// Work that a path of the face counts, and a flow that may move before its paths are known.
const PATH_WORK: u64 = 3000;
const MOVER_WORK: u64 = 6 * PATH_WORK;
/// What a bit/s on a path that a flow did not have counts.
const NEW_PATH_COST: f64 = 2.0;

/// What [`Engine::minimum_reallocation`] led to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MinimumReallocation {
    /// What the solve changed, with the optimum that was chosen.
    pub changes: Changes,
    /// Whether there was time for the choice; else more flows move than need to.
    pub complete: bool,
    /// Whether every flow that moves was tried; else a solve from scratch would have cost less by then.
    pub all_tried: bool,
}

impl Engine {
    /// As [`Engine::changes`], with the optimum that moves flows least.
    ///
    /// `resized` are the flows that asked for another rate themselves: they stay near what they had, but move before
    /// others do.
    ///
    /// # Errors
    /// As [`Engine::solve`].
    pub fn minimum_reallocation(
        &mut self,
        resized: &[FlowId],
    ) -> Result<MinimumReallocation, Error> {
        let before = self.solver.master.work;
        let Allocation {
            mut flows,
            mut summary,
        } = self.allocation()?;
        let most_work = self.most_choice_work(before);
        let movers = self.movers(&flows);
        let may_move = |flow: FlowId| resized.contains(&flow) || self.reported.of(flow).is_none();
        let is_needed = !movers.iter().all(|&at| may_move(flows[at].flow));
        let is_cheap = MOVER_WORK * movers.len() as u64 <= most_work;
        let (mut complete, mut all_tried) = (true, is_cheap || !is_needed);
        if is_needed && is_cheap {
            let solved: Vec<FlowAllocation> = movers.iter().map(|&at| flows[at].clone()).collect();
            let ids: Vec<FlowId> = solved.iter().map(|flow| flow.flow).collect();
            let face = OptimalFace::of_flows(self, &ids)?;
            let mut choice = OptimumSelection::new(self, &face, &solved, resized);
            choice.limit_work(most_work);
            let (nearest, tried) = choice.settle();
            let work = choice.work();
            complete = nearest != SearchOutcome::Halted && tried != SearchOutcome::Halted;
            all_tried = nearest == SearchOutcome::Optimal && tried == SearchOutcome::Optimal;
            // Where rounding or the work defeats the choice, the optimum that the solve met stands.
            if nearest == SearchOutcome::Optimal {
                let mut totals = AdjustedTotals::new(&face);
                for ((at, before), after) in movers.into_iter().zip(&solved).zip(choice.flows()) {
                    totals.shift(self, before, &after);
                    flows[at] = after;
                }
                totals.correct(self, &mut summary);
            }
            self.solver.master.work += work;
        }
        Ok(MinimumReallocation {
            changes: Changes {
                flows: self.report(flows),
                summary,
            },
            complete,
            all_tried,
        })
    }

    /// What a choice may cost after a solve that began at `before`: what that leaves of a solve from scratch.
    fn most_choice_work(&self, before: u64) -> u64 {
        match self.solver.fresh_work() {
            0 => u64::MAX,
            fresh => {
                let most = MAX_TENTHS * (fresh + self.stage_work) / 10;
                let spent = self.solver.master.work - before;
                most.max(MIN_WORK).saturating_sub(spent)
            }
        }
    }

    /// The places of flows that are elsewhere than they were reported.
    fn movers(&self, flows: &[FlowAllocation]) -> Vec<usize> {
        let mut reported = self.reported.flows.iter().peekable();
        let moves = |flow: &FlowAllocation| {
            while reported.next_if(|old| old.flow < flow.flow).is_some() {}
            !reported.peek().is_some_and(|old| stays(old, flow))
        };
        let marks: Vec<bool> = flows.iter().map(moves).collect();
        (0..flows.len()).filter(|&at| marks[at]).collect()
    }
}

/// Whether a flow has the same paths with the same rates, but for rounding.
fn stays(old: &FlowAllocation, flow: &FlowAllocation) -> bool {
    let rounding = STAYING_ROUNDING * old.rate_bps;
    let same = |a: &PathRate, b: &PathRate| {
        a.arcs == b.arcs && (a.rate_bps - b.rate_bps).abs() <= rounding
    };
    let mut pairs = old.paths.iter().zip(&flow.paths);
    old.flow == flow.flow && old.paths.len() == flow.paths.len() && pairs.all(|(a, b)| same(a, b))
}

/// A flow that may move, with its rates in the programme.
struct MovableFlow {
    flow: FlowId,
    rates: Range<usize>,
    /// The rate that it had, or asks for.
    whole: f64,
    /// Whether it may stay as it was.
    can_stay: bool,
}

/// The choice among all optima.
struct OptimumSelection<'a> {
    engine: &'a Engine,
    /// The movers in the optimum that the solve met, by their numbers.
    solved: &'a [FlowAllocation],
    movers: Vec<MovableFlow>,
    paths: Vec<&'a FacePath>,
    nearest: NearestRates,
}

/// A flow on the face: what every optimum gives it at least, the most that one may give, and the paths.
#[derive(Default)]
struct FaceFlow<'a> {
    least: f64,
    most: f64,
    paths: Vec<&'a FacePath>,
}

/// The parts of a flow are paid by the price of its paths alone, so that they share the cheapest: one rate for each path
/// stands for all parts.
fn on_face<'a>(face: &'a OptimalFace, flows: &[FlowId]) -> BTreeMap<FlowId, FaceFlow<'a>> {
    let mut by_flow: BTreeMap<FlowId, FaceFlow<'a>> = BTreeMap::new();
    for commodity in &face.commodities {
        for &(flow, asked) in &commodity.members {
            if flows.binary_search(&flow).is_err() {
                continue;
            }
            let own = by_flow.entry(flow).or_default();
            own.least += if commodity.full { asked } else { 0.0 };
            own.most += asked;
            let paths = std::mem::take(&mut own.paths);
            own.paths = merged(paths, &commodity.paths);
        }
    }
    by_flow
}

/// Paths with those of another part that are not among them.
fn merged<'a>(mut known: Vec<&'a FacePath>, more: &'a [FacePath]) -> Vec<&'a FacePath> {
    let count = known.len();
    for path in more {
        if !known[..count].iter().any(|other| other.arcs == path.arcs) {
            known.push(path);
        }
    }
    known
}

impl<'a> OptimumSelection<'a> {
    /// `solved` are the movers in the optimum that the solve met, by their numbers.
    fn new(
        engine: &'a Engine,
        face: &'a OptimalFace,
        solved: &'a [FlowAllocation],
        resized: &[FlowId],
    ) -> Self {
        let ids: Vec<FlowId> = solved.iter().map(|flow| flow.flow).collect();
        let on_face = on_face(face, &ids);
        let mut movers = Vec::new();
        let (mut rates, mut paths, mut limits) = (Vec::new(), Vec::new(), Vec::new());
        let mut arcs = ArcRows::default();
        for now in solved {
            let Some(own) = on_face.get(&now.flow) else {
                continue;
            };
            let reported = engine.reported.of(now.flow);
            let base = reported.unwrap_or(now);
            let first = rates.len();
            let row = limits.len() as u32;
            let narrowest = |path: &FacePath| {
                let widths = path
                    .loads
                    .iter()
                    .map(|&(arc, load)| face.arcs[arc].0 / load);
                widths.fold(f64::INFINITY, f64::min)
            };
            let fitting: f64 = own.paths.iter().map(|path| narrowest(path)).sum();
            let whole = base.rate_bps.max(own.most.min(fitting));
            let mut tolerance = BROKEN_LIMIT * whole;
            for path in &own.paths {
                let rate = rate_of(base, path);
                let up = match reported {
                    None => 0.0,
                    Some(_) if rate > 0.0 => 1.0,
                    Some(_) => NEW_PATH_COST,
                };
                tolerance = tolerance.max(LOAD_ROUNDING * narrowest(path));
                rates.push(RateVariable {
                    base: rate,
                    up,
                    down: f64::from(reported.is_some()),
                    entries: vec![(row, 1.0)],
                    tolerance,
                });
                paths.push(*path);
            }
            limits.push(Bounds {
                least: own.least,
                most: own.most,
                tolerance,
            });
            let kept = own.paths.iter().filter(|path| rate_of(base, path) > 0.0);
            movers.push(MovableFlow {
                flow: now.flow,
                rates: first..rates.len(),
                whole,
                can_stay: reported.is_some()
                    && !resized.contains(&now.flow)
                    && kept.count() == base.paths.len(),
            });
            // What that optimum leaves free, the movers' own part of it included.
            for path in &own.paths {
                let rate = rate_of(now, path);
                for &(arc, load) in &path.loads {
                    arcs.add(face, arc, load * rate);
                }
            }
        }
        let first = limits.len() as u32;
        for (rate, path) in rates.iter_mut().zip(&paths) {
            let loads = path.loads.iter();
            let loads = loads.map(|&(arc, load)| (first + arcs.row[&arc], load));
            rate.entries.extend(loads);
        }
        limits.append(&mut arcs.limits);
        Self {
            engine,
            solved,
            movers,
            paths,
            nearest: NearestRates::new(rates, limits, engine.solver.master.halt.clone()),
        }
    }

    /// Ends the choice where it would cost more, its paths counted.
    fn limit_work(&mut self, most_work: u64) {
        let paths = PATH_WORK * self.paths.len() as u64;
        self.nearest.most_work = most_work.saturating_sub(paths);
    }

    fn work(&self) -> u64 {
        self.nearest.work + PATH_WORK * self.paths.len() as u64
    }

    /// Looks for the nearest rates, and tries the flows that move there; how each of both ended.
    fn settle(&mut self) -> (SearchOutcome, SearchOutcome) {
        let end = self.nearest.search();
        match end {
            SearchOutcome::Optimal => (end, self.try_each()),
            _ => (end, end),
        }
    }

    /// Holds each flow that moves where it was, if that leaves an optimum.
    fn try_each(&mut self) -> SearchOutcome {
        let (tried, staying): (Vec<usize>, Vec<usize>) =
            (0..self.movers.len()).partition(|&at| self.has_moved(&self.movers[at]));
        let held = staying.iter().flat_map(|&at| self.movers[at].rates.clone());
        // They are where they are held, but for rounding.
        match self.nearest.hold(held) {
            SearchOutcome::Optimal | SearchOutcome::Infeasible => (),
            end => return end,
        }
        for at in tried {
            if !self.movers[at].can_stay || !self.has_moved(&self.movers[at]) {
                continue;
            }
            match self.nearest.hold(self.movers[at].rates.clone()) {
                SearchOutcome::Optimal | SearchOutcome::Infeasible => (),
                end => return end,
            }
        }
        SearchOutcome::Optimal
    }

    fn has_moved(&self, mover: &MovableFlow) -> bool {
        let rounding = (MIN_MOVE * mover.whole).max(self.nearest.tolerance(mover.rates.clone()));
        !mover.can_stay || self.nearest.moved(mover.rates.clone()) > rounding
    }

    /// The movers, by their numbers; those that stay as they were reported.
    fn flows(&self) -> impl Iterator<Item = FlowAllocation> + '_ {
        let mut movers = self.movers.iter().peekable();
        self.solved.iter().map(move |solved| {
            let mover = movers.next_if(|mover| mover.flow == solved.flow);
            match (mover, self.engine.reported.of(solved.flow)) {
                (Some(mover), Some(reported)) if !self.has_moved(mover) => reported.clone(),
                (mover, _) => {
                    let mut flow = FlowAllocation {
                        flow: solved.flow,
                        rate_bps: 0.0,
                        paths: mover.map_or_else(Vec::new, |mover| self.new_rates(mover)),
                    };
                    tidy(&mut flow);
                    flow
                }
            }
        })
    }

    fn new_rates(&self, mover: &MovableFlow) -> Vec<PathRate> {
        let least = self.nearest.tolerance(mover.rates.clone());
        let used = mover
            .rates
            .clone()
            .map(|w| (self.nearest.rate(w), self.paths[w]));
        let used = used.filter(|&(rate_bps, _)| rate_bps > least);
        used.map(|(rate_bps, path)| PathRate {
            arcs: path.arcs.clone(),
            rate_bps,
            delay_s: path
                .arcs
                .iter()
                .map(|&arc| self.engine.arcs[arc].delay_s)
                .sum(),
        })
        .collect()
    }
}

fn rate_of(flow: &FlowAllocation, path: &FacePath) -> f64 {
    let known = flow.paths.iter().find(|known| known.arcs == path.arcs);
    known.map_or(0.0, |known| known.rate_bps)
}

/// The limits of the arcs that movers may load, in order of their first use.
#[derive(Default)]
struct ArcRows {
    row: BTreeMap<usize, u32>,
    limits: Vec<Bounds>,
}

impl ArcRows {
    /// Lets an arc carry so much more.
    fn add(&mut self, face: &OptimalFace, arc: usize, load: f64) {
        let (capacity, full) = face.arcs[arc];
        let row = *self.row.entry(arc).or_insert_with(|| {
            let free = face.free_bps[arc];
            self.limits.push(Bounds {
                least: if full { free } else { f64::NEG_INFINITY },
                most: free,
                tolerance: BROKEN_LIMIT * capacity,
            });
            self.limits.len() as u32 - 1
        });
        let limits = &mut self.limits[row as usize];
        limits.least += load;
        limits.most += load;
    }
}

/// What the totals of an optimum become where flows have other rates.
struct AdjustedTotals {
    load: Vec<f64>,
    admitted_bps: f64,
    cost_bps_s: f64,
}

impl AdjustedTotals {
    fn new(face: &OptimalFace) -> Self {
        let load = face.arcs.iter().zip(&face.free_bps);
        Self {
            load: load.map(|(arc, free)| arc.0 - free).collect(),
            admitted_bps: 0.0,
            cost_bps_s: 0.0,
        }
    }

    fn shift(&mut self, engine: &Engine, before: &FlowAllocation, after: &FlowAllocation) {
        let Some(entry) = engine.membership.flows[after.flow].as_ref() else {
            return;
        };
        for (sign, flow) in [(-1.0, before), (1.0, after)] {
            for path in &flow.paths {
                let rate_bps = sign * path.rate_bps;
                self.admitted_bps += rate_bps;
                self.cost_bps_s += rate_bps * path.delay_s;
                let arcs = path.arcs.iter().copied();
                each_load(&engine.arcs, &entry.flow, arcs, |arc, load| {
                    self.load[arc] += rate_bps * load;
                });
            }
        }
    }

    fn correct(&self, engine: &Engine, summary: &mut Summary) {
        summary.admitted_bps += self.admitted_bps;
        summary.cost_bps_s += self.cost_bps_s;
        summary.max_utilisation = 0.0;
        for (&load, &capacity) in self.load.iter().zip(&engine.solver.master.capacity) {
            let over = &mut summary.certificate.max_violation_bps;
            *over = over.max(load - capacity);
            if capacity > 0.0 {
                summary.max_utilisation = summary.max_utilisation.max(load / capacity);
            }
        }
    }
}
