//! Pricing by shortest-path trees, one for each origin.

use std::collections::BTreeMap;
use std::ops::Range;

use super::origin::{CandidatePath, Origin};
use super::tree::Scratch;
use super::{take, PathPricing};
use crate::graph::Graph;
use crate::solver::{Commodity, Solver};

/// The origins with their trees, and working memory for each thread.
#[derive(Clone, Debug)]
pub(crate) struct ShortestPathTrees {
    pub origins: Vec<Origin>,
    /// By source and class of lengths.
    origin_of: BTreeMap<(u32, usize), usize>,
    pub scratch: Vec<Scratch>,
}

impl Default for ShortestPathTrees {
    fn default() -> Self {
        Self {
            origins: Vec::new(),
            origin_of: BTreeMap::new(),
            scratch: vec![Scratch::default()],
        }
    }
}

impl ShortestPathTrees {
    pub fn set_threads(&mut self, threads: usize) {
        self.scratch.resize(threads.max(1), Scratch::default());
    }

    /// Makes a commodity a member of its origin.
    pub fn add(&mut self, id: u32, commodity: &Commodity) {
        let (source, class) = (commodity.source, commodity.class);
        let next = self.origins.len();
        let at = *self.origin_of.entry((source, class)).or_insert(next);
        if at == next {
            self.origins.push(Origin::new(source, class));
        }
        self.origins[at].add(id, commodity);
    }

    pub fn remove(&mut self, id: u32, commodity: &Commodity) {
        if let Some(&at) = self.origin_of.get(&(commodity.source, commodity.class)) {
            self.origins[at].remove(id);
        }
    }
}

impl PathPricing for ShortestPathTrees {
    /// By the tree as it was last made.
    fn shortest(
        &mut self,
        graph: &Graph,
        commodity: &Commodity,
        limit: f64,
        path: &mut Vec<u32>,
    ) -> Option<f64> {
        let key = (commodity.source, commodity.class);
        let origin = &self.origins[*self.origin_of.get(&key)?];
        let length = origin.distance(commodity.target);
        let is_there = length < limit && origin.path_to(graph, commodity.target, path);
        is_there.then_some(length)
    }
}

/// Collects columns that gain until there are enough, block by block; returns whether it saw all commodities.
pub(crate) fn collect(solver: &mut Solver, enough: usize, gains: &mut Vec<(f64, u32)>) -> bool {
    let count = solver.pricing.trees.origins.len();
    // Far more would lose their gain before they are looked at: prices move with each pivot.
    let most = match solver.is_crowded() {
        true => solver.settings.pricing.most_taken_of_crowd,
        false => solver.settings.pricing.most_taken,
    };
    let mut candidates = Vec::new();
    let mut seen = 0;
    while seen < count && gains.len() < enough {
        let start = solver.pricing.cursor % count;
        let end = count.min(start + (count - seen).min(solver.settings.pricing.block));
        visit(solver, start..end, &mut candidates, Origin::price);
        let origins = &solver.pricing.trees.origins[start..end];
        let members: usize = origins.iter().map(Origin::len).sum();
        solver.master.work += (18 * solver.graph.nodes * origins.len() + 12 * members) as u64;
        solver.pricing.cursor = end;
        seen += end - start;
        CandidatePath::keep_best(&mut candidates, most);
        take(solver, &mut candidates, gains, |pricing| &mut pricing.trees);
    }
    seen == count
}

/// Visits some origins, on several threads where there is enough to do; the candidates come in the origins' order.
pub(crate) fn visit(
    solver: &mut Solver,
    block: Range<usize>,
    candidates: &mut Vec<CandidatePath>,
    visit: impl OriginVisitor,
) {
    let mut trees = std::mem::take(&mut solver.pricing.trees);
    let ShortestPathTrees {
        origins, scratch, ..
    } = &mut trees;
    on_threads(solver, &mut origins[block], scratch, candidates, visit);
    solver.pricing.trees = trees;
}

fn on_threads(
    solver: &Solver,
    origins: &mut [Origin],
    scratch: &mut [Scratch],
    candidates: &mut Vec<CandidatePath>,
    visit: impl OriginVisitor,
) {
    let sizes = origins.iter().map(|one| solver.graph.nodes + one.len());
    let threads = match sizes.sum::<usize>() < solver.settings.pricing.parallel_work {
        true => 1,
        false => scratch.len(),
    };
    let share = origins.len().div_ceil(threads).max(1);
    let run = |origins: &mut [Origin], scratch: &mut Scratch| {
        let mut found = Vec::new();
        for origin in origins {
            visit(origin, solver, scratch, &mut found);
        }
        found
    };
    let mut parts = origins.chunks_mut(share).zip(scratch);
    let Some((own, own_scratch)) = parts.next() else {
        return;
    };
    std::thread::scope(|scope| {
        let run = &run;
        let spawn = |(origins, scratch)| scope.spawn(move || run(origins, scratch));
        let others: Vec<_> = parts.map(spawn).collect();
        candidates.extend(run(own, own_scratch));
        for other in others {
            match other.join() {
                Ok(more) => candidates.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
}

/// What is done to an origin, with the candidates that come of it.
pub(crate) trait OriginVisitor:
    Fn(&mut Origin, &Solver, &mut Scratch, &mut Vec<CandidatePath>) + Sync
{
}

impl<F: Fn(&mut Origin, &Solver, &mut Scratch, &mut Vec<CandidatePath>) + Sync> OriginVisitor
    for F
{
}
