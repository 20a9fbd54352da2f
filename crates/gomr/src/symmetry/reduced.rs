//! The programme of one demand of each class, over the classes of arcs.
//!
//! All that counts of a path is how often it meets each class: paths that meet some class more often than another path,
//! and none less, are left out, and those that remain are the columns.

use std::collections::{BTreeMap, VecDeque};

use super::partition::Partition;
use crate::graph::NONE;
use crate::halt::Halt;
use crate::incremental::engine::Engine;
use crate::objectives::Objective;
use crate::pricing::introduce;
use crate::problem::{Arc, Flow, Problem};
use crate::solver::Solver;

/// Labels of all nodes together that a search may make, for each node.
const MAX_LABELS: usize = 256;

/// The programme, and whom its flows stand for.
pub(super) struct ReducedProblem {
    pub engine: Engine,
    /// Flow of the programme that stands for each flow.
    pub stands_for: Vec<u32>,
    /// Number of flows that each flow of the programme stands for.
    pub members: Vec<usize>,
    /// Place of its source among all.
    pub places: Vec<usize>,
    /// Its paths, in the order of its columns.
    pub paths: Vec<Vec<Vec<u32>>>,
}

/// A path, and how often it meets each class.
struct PathCounts {
    node: usize,
    last: u32,
    before: usize,
    counts: Vec<(u32, u32)>,
}

impl ReducedProblem {
    /// The programme; `None` where demands have too many paths that differ.
    pub fn new(
        problem: &Problem,
        partition: &Partition,
        objective: Objective,
        halt: Halt,
    ) -> Option<Self> {
        let (flows, stands_for) = classes(problem, partition);
        let mut members = vec![0; flows.len()];
        stands_for
            .iter()
            .for_each(|&class| members[class as usize] += 1);
        let mut arcs = vec![None; partition.sizes.len()];
        for (arc, &class) in problem.arcs.iter().zip(&partition.class) {
            if class != NONE {
                let size = partition.sizes[class as usize] as f64;
                arcs[class as usize] = Some(Arc::new(0, 1, size * arc.capacity_bps, arc.delay_s));
            }
        }
        let flow = |(&(_, at), &members): (&(usize, u32), &usize)| {
            let flow = &problem.flows[at as usize];
            let mut own = Flow::new(0, 1, members as f64 * flow.rate_bps);
            own.fixed_paths = Some(Vec::new());
            own.weight = match objective {
                Objective::MaxMin => members as f64 * flow.weight,
                _ => flow.weight,
            };
            own
        };
        let own = Problem {
            nodes: 2,
            arcs: arcs.into_iter().flatten().collect(),
            flows: flows.iter().zip(&members).map(flow).collect(),
        };
        let mut engine = Engine::new(&own, objective).ok()?;
        engine.set_halt(halt.0);
        let mut reduced = Self {
            engine,
            stands_for,
            members,
            places: flows.iter().map(|&(place, _)| place).collect(),
            paths: Vec::new(),
        };
        reduced.add_columns(problem, partition, &flows)?;
        Some(reduced)
    }

    fn add_columns(
        &mut self,
        problem: &Problem,
        partition: &Partition,
        flows: &[(usize, u32)],
    ) -> Option<()> {
        let leaving = leaving(problem);
        let mut labels = PathLabels::default();
        let mut last = usize::MAX;
        for (own, &(place, at)) in flows.iter().enumerate() {
            if place != last {
                let source = partition.sources[place] as usize;
                labels = PathLabels::from(problem, partition, &leaving, source)?;
                last = place;
            }
            let mut paths = Vec::new();
            for &label in &labels.at[problem.flows[at as usize].destination] {
                self.add_column(own, &labels.all[label].counts);
                paths.push(labels.path(label));
            }
            self.paths.push(paths);
        }
        Some(())
    }

    fn add_column(&mut self, flow: usize, counts: &[(u32, u32)]) {
        let classes: Vec<u32> = counts.iter().map(|&(class, _)| class).collect();
        let more = counts.iter().filter(|&&(_, count)| count > 1);
        let more: Vec<(u32, f64)> = more.map(|&(c, count)| (c, f64::from(count - 1))).collect();
        let shares = self.engine.membership.entry(flow);
        let shares = shares.map_or(Vec::new(), |entry| entry.shares.clone());
        let solver = &mut self.engine.solver;
        let cost =
            |&(class, count): &(u32, u32)| f64::from(count) * solver.pricing.cost[class as usize];
        let cost = counts.iter().map(cost).sum();
        for share in shares {
            let value = solver.pool.commodities[share.commodity as usize].value;
            let master = &mut solver.master;
            master.add_path(share.commodity, value, cost, &classes, &more);
        }
    }

    /// The solver, each demand on a path of its own.
    pub fn solver(&mut self) -> &mut Solver {
        let fresh = std::mem::take(&mut self.engine.membership.fresh);
        introduce::introduce(&mut self.engine.solver, &fresh);
        &mut self.engine.solver
    }

    /// The flows that those of the programme stand for.
    pub fn members_of(&self, own: &[u32]) -> Vec<u32> {
        let flows = self.stands_for.iter().enumerate();
        let stopped = flows.filter(|(_, class)| own.contains(class));
        stopped.map(|(flow, _)| flow as u32).collect()
    }

    /// Rates of a flow on its paths, of all that it stands for together, bit/s.
    pub fn rates(&self, own: usize) -> Vec<f64> {
        let mut rates = vec![0.0; self.paths[own].len()];
        let master = &self.engine.answer().master;
        let shares = self.engine.membership.entry(own);
        for share in shares.iter().flat_map(|entry| &entry.shares) {
            let group = &master.groups[share.commodity as usize];
            for (column, rate) in master.used_paths(group) {
                let at = group.columns.iter().position(|&other| other == column);
                at.iter().for_each(|&at| rates[at] += rate);
            }
        }
        rates
    }
}

/// One flow of each class with the place of its source, and the class of every flow.
fn classes(problem: &Problem, partition: &Partition) -> (Vec<(usize, u32)>, Vec<u32>) {
    let mut known: BTreeMap<(u64, usize), u32> = BTreeMap::new();
    let mut flows = Vec::new();
    let mut class = vec![NONE; problem.flows.len()];
    let (mut place, mut before, mut same) = (0, (usize::MAX, 0), 0);
    for &at in &partition.order {
        let flow = &problem.flows[at as usize];
        while (partition.sources[place] as usize) < flow.source {
            place += 1;
        }
        let ends = (flow.source, flow.destination);
        same = if ends == before { same + 1 } else { 0 };
        before = ends;
        let colour = partition.colour(place, flow.destination);
        let of = *known.entry((colour, same)).or_insert_with(|| {
            flows.push((place, at));
            flows.len() as u32 - 1
        });
        class[at as usize] = of;
    }
    (flows, class)
}

/// The arcs with a capacity that leave each node.
fn leaving(problem: &Problem) -> Vec<Vec<u32>> {
    let mut leaving = vec![Vec::new(); problem.nodes];
    for (at, arc) in problem.arcs.iter().enumerate() {
        if arc.capacity_bps > 0.0 {
            leaving[arc.tail].push(at as u32);
        }
    }
    leaving
}

/// The paths from a source that none is better than.
#[derive(Default)]
struct PathLabels {
    all: Vec<PathCounts>,
    /// Of each node.
    at: Vec<Vec<usize>>,
}

impl PathLabels {
    /// Finds them in the order of their lengths: of two the longer one is never the better.
    fn from(
        problem: &Problem,
        partition: &Partition,
        leaving: &[Vec<u32>],
        source: usize,
    ) -> Option<Self> {
        let first = PathCounts {
            node: source,
            last: NONE,
            before: 0,
            counts: Vec::new(),
        };
        let mut labels = Self {
            all: vec![first],
            at: vec![Vec::new(); problem.nodes],
        };
        labels.at[source].push(0);
        let mut open = VecDeque::from([0]);
        while let Some(before) = open.pop_front() {
            for &last in &leaving[labels.all[before].node] {
                let node = problem.arcs[last as usize].head;
                let counts = &labels.all[before].counts;
                let counts = with(counts, partition.class[last as usize]);
                let mut known = labels.at[node].iter();
                if known.any(|&label| is_within(&labels.all[label].counts, &counts)) {
                    continue;
                }
                if labels.all.len() > MAX_LABELS * problem.nodes {
                    return None;
                }
                labels.at[node].push(labels.all.len());
                open.push_back(labels.all.len());
                labels.all.push(PathCounts {
                    node,
                    last,
                    before,
                    counts,
                });
            }
        }
        Some(labels)
    }

    fn path(&self, mut label: usize) -> Vec<u32> {
        let mut path = Vec::new();
        while self.all[label].last != NONE {
            path.push(self.all[label].last);
            label = self.all[label].before;
        }
        path.reverse();
        path
    }
}

/// One more of a class.
fn with(counts: &[(u32, u32)], class: u32) -> Vec<(u32, u32)> {
    let mut more = counts.to_vec();
    match more.binary_search_by_key(&class, |&(class, _)| class) {
        Ok(at) => more[at].1 += 1,
        Err(at) => more.insert(at, (class, 1)),
    }
    more
}

/// Whether no class is met more often by one than by the other.
fn is_within(one: &[(u32, u32)], other: &[(u32, u32)]) -> bool {
    let mut rest = other.iter();
    one.iter().all(|&(class, count)| {
        let same = rest.find(|&&(other, _)| other >= class);
        same.is_some_and(|&(other, most)| other == class && most >= count)
    })
}
