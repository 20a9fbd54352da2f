//! Cuts that hold for every allocation, and the level that each of them allows.

use std::collections::VecDeque;
use std::rc::Rc;

use super::{rising, FillingFlow};
use crate::solver::Solver;

/// What all allocations keep: `Σ_k dist_k(π)·x_k ≤ Σ_e C_e π_e`.
pub(crate) struct MetricCut {
    /// `Σ_e C_e π_e`.
    pub room: f64,
    /// `dist_k(π)` of each commodity.
    distance: Vec<f64>,
    /// `π`.
    pub prices: Vec<f64>,
}

/// The highest level and what stops it; nothing where that is the requests alone.
pub(super) struct Level {
    pub level: f64,
    pub cut: Option<Rc<MetricCut>>,
}

/// The cuts that were met so far.
#[derive(Default)]
pub(super) struct CutPool {
    cuts: VecDeque<Rc<MetricCut>>,
}

/// Cuts that are kept from level to level.
const MAX_CUTS_KEPT: usize = 64;
/// What still rises must make up this part of a kept cut: else rounding of the rest would decide.
const MIN_RISING_PART: f64 = 1e-3;

impl Level {
    /// Share of the cut that one bit/s of a flow takes.
    pub fn share(&self, flow: &FillingFlow) -> f64 {
        let cut = self.cut.as_ref();
        cut.map_or(0.0, |cut| cut.share(flow))
    }
}

impl MetricCut {
    /// The cut that the first-objective prices form. A commodity that is not served pays 1, however far it is.
    pub fn of(solver: &mut Solver) -> Self {
        let (room, distance) = solver.cut();
        Self {
            room,
            distance,
            prices: solver.first_prices(),
        }
    }

    /// The same where prices are in a unit of their own: the commodity that pays most pays 1.
    pub fn scaled(solver: &mut Solver) -> Self {
        let mut cut = Self::of(solver);
        let finite = cut.distance.iter().copied().filter(|d| d.is_finite());
        let most = finite.fold(0.0, f64::max);
        if most > 0.0 {
            cut.room /= most;
            cut.distance.iter_mut().for_each(|d| *d /= most);
            cut.prices.iter_mut().for_each(|p| *p /= most);
        }
        cut
    }

    /// What stops the commodities that have no path, at prices of zero, once [`rising::begin`] looked for one.
    pub fn of_pathless(solver: &Solver) -> Self {
        let distance = |id| match rising::has_path(solver, id) {
            true => 0.0,
            false => f64::INFINITY,
        };
        Self {
            room: 0.0,
            distance: (0..solver.pool.commodities.len() as u32)
                .map(distance)
                .collect(),
            prices: vec![0.0; solver.graph.arcs()],
        }
    }

    /// `dist_k(π)` of a commodity.
    pub fn distance(&self, id: usize) -> f64 {
        self.distance[id]
    }

    pub fn share(&self, flow: &FillingFlow) -> f64 {
        self.distance[flow.commodity as usize].min(1.0)
    }
}

impl CutPool {
    /// Keeps a cut; the oldest is forgotten where there are many.
    pub fn add(&mut self, cut: MetricCut) -> Rc<MetricCut> {
        let cut = Rc::new(cut);
        self.cuts.push_back(Rc::clone(&cut));
        if self.cuts.len() > MAX_CUTS_KEPT {
            self.cuts.pop_front();
        }
        cut
    }

    /// The highest level that the requests and all known cuts allow.
    pub fn bound(&self, flows: &[FillingFlow], frozen: &[Option<f64>]) -> Level {
        let rising = flows.iter().zip(frozen).filter(|(_, rate)| rate.is_none());
        let requests = rising.map(|(flow, _)| flow.request / flow.weight);
        let mut lowest = Level {
            level: requests.fold(0.0, f64::max),
            cut: None,
        };
        for cut in &self.cuts {
            let line = CutSlack::new(flows, frozen, cut);
            if !line.rises_enough(cut, lowest.level) {
                continue;
            }
            let root = line.root(lowest.level);
            if root < lowest.level {
                lowest = Level {
                    level: root,
                    cut: Some(Rc::clone(cut)),
                };
            }
        }
        lowest
    }
}

/// What is left of a cut as the level rises: `left − slope·t`, less steep once a flow has all it asks for.
pub(super) struct CutSlack {
    left: f64,
    slope: f64,
    /// Level at which a flow has its request, and what it makes of the slope.
    steps: Vec<(f64, f64)>,
}

impl CutSlack {
    pub fn new(flows: &[FillingFlow], frozen: &[Option<f64>], cut: &MetricCut) -> Self {
        let mut line = Self {
            left: cut.room,
            slope: 0.0,
            steps: Vec::new(),
        };
        for (flow, rate) in flows.iter().zip(frozen) {
            let share = cut.share(flow);
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
    fn rises_enough(&self, cut: &MetricCut, level: f64) -> bool {
        let rises = self
            .steps
            .iter()
            .map(|&(until, weight)| weight * until.min(level));
        rises.sum::<f64>() > MIN_RISING_PART * cut.room
    }

    /// Largest `t ≤ level` at which nothing is missing.
    pub fn root(mut self, level: f64) -> f64 {
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
