//! Pricing by shortest-path trees, one for each origin.

use std::collections::BTreeMap;
use std::ops::Range;

use super::origin::{CandidatePath, Origin, PricingView};
use super::tree::Scratch;
use super::{gain_limit, take, PathPricing};
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

pub(crate) fn collect(solver: &mut Solver, enough: usize, gains: &mut Vec<(f64, u32)>) -> bool {
    let count = solver.pricing.trees.origins.len();
    let mut candidates = Vec::new();
    let mut seen = 0;
    while seen < count && gains.len() < enough {
        if solver.pricing.cursor >= count {
            solver.pricing.cursor = 0;
        }
        let end =
            count.min(solver.pricing.cursor + (count - seen).min(solver.settings.pricing.block));
        visit(
            solver,
            solver.pricing.cursor..end,
            &mut candidates,
            Origin::price,
        );
        seen += end - solver.pricing.cursor;
        let members: usize = solver.pricing.trees.origins[solver.pricing.cursor..end]
            .iter()
            .map(Origin::len)
            .sum();
        solver.master.work +=
            (18 * solver.graph.nodes * (end - solver.pricing.cursor) + 12 * members) as u64;
        solver.pricing.cursor = end;
        // Far more would lose their gain before they are looked at: prices move with each pivot.
        let most = match solver.is_crowded() {
            true => solver.settings.pricing.most_taken_of_crowd,
            false => solver.settings.pricing.most_taken,
        };
        CandidatePath::keep_best(&mut candidates, most);
        take(solver, &mut candidates, gains);
    }
    seen == count
}

/// Visits some origins, on several threads where there is enough to do.
pub(crate) fn visit(
    solver: &mut Solver,
    block: Range<usize>,
    candidates: &mut Vec<CandidatePath>,
    visit: impl Visit,
) {
    let terms = PricingView {
        graph: &solver.graph,
        master: &solver.master,
        commodities: &solver.pool.commodities,
        search: &solver.pricing.search,
        usable: &solver.pricing.usable,
        lengths: solver.pricing.smooth_lengths.all(),
        since: solver.pricing.smooth_lengths.since(),
        version: solver.pricing.smooth_lengths.version(),
        limit: gain_limit(solver),
        settings: &solver.settings.pricing,
    };
    let origins = &mut solver.pricing.trees.origins[block];
    on_threads(
        &mut solver.pricing.trees.scratch,
        origins,
        &terms,
        candidates,
        visit,
    );
}

/// Visits origins on as many threads as there are `scratch`es; the candidates come in the origins' order.
fn on_threads(
    scratch: &mut [Scratch],
    origins: &mut [Origin],
    terms: &PricingView<'_>,
    candidates: &mut Vec<CandidatePath>,
    visit: impl Visit,
) {
    let work: usize = origins
        .iter()
        .map(|origin| terms.graph.nodes + origin.len())
        .sum();
    let threads = if work < terms.settings.parallel_work {
        1
    } else {
        scratch.len()
    };
    let share = origins.len().div_ceil(threads).max(1);
    let run =
        |origins: &mut [Origin], scratch: &mut Scratch, candidates: &mut Vec<CandidatePath>| {
            for origin in origins {
                visit(origin, terms, scratch, candidates);
            }
        };
    let mut parts = origins.chunks_mut(share).zip(scratch);
    let Some((own, own_scratch)) = parts.next() else {
        return;
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = parts
            .map(|(origins, scratch)| {
                let run = &run;
                scope.spawn(move || {
                    let mut candidates = Vec::new();
                    run(origins, scratch, &mut candidates);
                    candidates
                })
            })
            .collect();
        run(own, own_scratch, candidates);
        for other in others {
            match other.join() {
                Ok(more) => candidates.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
}

/// What is done to an origin, with the candidates that come of it.
pub(crate) trait Visit:
    Fn(&mut Origin, &PricingView<'_>, &mut Scratch, &mut Vec<CandidatePath>) + Sync
{
}

impl<F: Fn(&mut Origin, &PricingView<'_>, &mut Scratch, &mut Vec<CandidatePath>) + Sync> Visit
    for F
{
}
