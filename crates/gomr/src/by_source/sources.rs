//! The demands of one source, routed together on a tree.

use std::collections::BTreeMap;

use super::sweeps::{SourceRouting, SOURCES_PER_LOOK};
use crate::graph::{Graph, NONE};
use crate::halt::Halt;
use crate::pricing::lengths::Lengths;
use crate::pricing::tree::{Scratch, Tree};
use crate::problem::Problem;
use crate::start::balance::Balance;

/// Demands for each source that are few.
const FEW_DEMANDS_PER_SOURCE: usize = 4;

/// Loads of arcs as shares of their capacities.
pub(super) type SourceLoads = Vec<(u32, f64)>;

/// A demand of a source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    pub flow: u32,
    pub target: u32,
    pub rate_bps: f64,
}

/// All that leaves a node under one ACK ratio.
#[derive(Clone, Debug)]
pub(super) struct Source {
    place: usize,
    pub demands: Vec<Demand>,
    class: usize,
    tree: Tree,
}

/// The demands of a source on a tree.
#[derive(Clone, Debug, Default)]
pub(super) struct TreeRouting {
    /// The source, by its place.
    pub place: usize,
    /// The arc by which the tree enters each node.
    pub parents: Box<[u32]>,
    /// Places of the demands that are left out, in their order.
    pub left_out: Vec<u32>,
    pub loads: SourceLoads,
    /// Rate that is served, bit/s.
    pub rate_bps: f64,
    /// Rate that is not, bit/s.
    pub left_out_bps: f64,
    /// Rate times cost of its path, summed.
    pub cost_bps: f64,
    /// Rate times length of its path, summed; infinite where a demand without a path is served.
    pub length_bps: f64,
}

/// Working memory of a thread.
#[derive(Clone, Debug, Default)]
struct Workspace {
    tree: Scratch,
    through: Vec<f64>,
    children: Vec<u32>,
    ready: Vec<u32>,
    load: Vec<f64>,
}

/// All sources of a problem.
#[derive(Clone, Debug)]
pub(super) struct Sources {
    pub all: Vec<Source>,
    pub graph: Graph,
    pub capacity: Vec<f64>,
    /// Cost of each arc in the second objective.
    cost: Vec<f64>,
    usable: Vec<bool>,
    lengths: Lengths,
    work: Vec<Workspace>,
}

impl Sources {
    /// Returns the sources of a problem; `None` where a demand has limits on its paths.
    pub fn new(problem: &Problem, cost: Vec<f64>, threads: usize) -> Option<Self> {
        let capacity: Vec<f64> = problem.arcs.iter().map(|arc| arc.capacity_bps).collect();
        let mut sources = Self {
            all: Vec::new(),
            graph: problem.graph(),
            usable: capacity.iter().map(|&c| c > 0.0).collect(),
            capacity,
            cost,
            lengths: Lengths::default(),
            work: vec![Workspace::default(); threads.max(1)],
        };
        let mut places = BTreeMap::new();
        for (number, flow) in problem.flows.iter().enumerate() {
            if flow.fixed_paths.is_some() || flow.ack_path.is_some() || flow.max_delay_s.is_some() {
                return None;
            }
            if flow.rate_bps == 0.0 || flow.source == flow.destination {
                continue;
            }
            let key = (flow.source, flow.ack_ratio.to_bits());
            let place = *places.entry(key).or_insert(sources.all.len());
            if place == sources.all.len() {
                let class = sources.lengths.class(flow.ack_ratio);
                sources.all.push(Source {
                    place,
                    demands: Vec::new(),
                    class,
                    tree: Tree::new(flow.source as u32, problem.nodes),
                });
            }
            sources.all[place].demands.push(Demand {
                flow: number as u32,
                target: flow.destination as u32,
                rate_bps: flow.rate_bps,
            });
        }
        Some(sources)
    }

    /// Whether there are so few demands for each source that trees are hardly more than their paths.
    pub fn have_few_demands(&self) -> bool {
        let demands: usize = self.all.iter().map(|source| source.demands.len()).sum();
        demands <= FEW_DEMANDS_PER_SOURCE * self.all.len()
    }

    /// Whether acknowledgements load arcs as well.
    pub fn have_acks(&self) -> bool {
        let mut classes = self.all.iter().map(|source| source.class);
        classes.any(|class| self.lengths.ratio(class) > 0.0)
    }

    /// Rate of all demands, bit/s.
    pub fn rate_bps(&self) -> f64 {
        let demands = self.all.iter().flat_map(|source| &source.demands);
        demands.map(|demand| demand.rate_bps).sum()
    }

    /// Forgets the demands that have no path; trees must be measured. Returns their rate, bit/s.
    pub fn drop_pathless(&mut self) -> f64 {
        let mut dropped_bps = 0.0;
        for source in &mut self.all {
            let (demands, tree) = (&mut source.demands, &source.tree);
            demands.retain(|demand| {
                let has_path = tree.distance[demand.target as usize].is_finite();
                if !has_path {
                    dropped_bps += demand.rate_bps;
                }
                has_path
            });
        }
        dropped_bps
    }

    /// Length of the longest path to a demand in the trees as they are; 0 where no demand has a path.
    pub fn longest(&self) -> f64 {
        let lengths = self.all.iter().flat_map(|source| {
            let ends = source.demands.iter().map(|demand| demand.target as usize);
            ends.map(|target| source.tree.distance[target])
        });
        lengths
            .filter(|length| length.is_finite())
            .fold(0.0, f64::max)
    }

    /// The largest least utilisation of the fullest arc that prices of whole capacities prove where such a rate may be left out, bit/s,
    /// and the price of a bit/s which is. Trees are those of these prices.
    pub fn proven(&mut self, prices: &[f64], left_out_bps: f64) -> (f64, f64) {
        self.set_lengths(prices, 0.0);
        let mut lengths = Vec::new();
        for source in &mut self.all {
            let own = self.lengths.of(source.class);
            source.tree.update(&self.graph, own, &mut self.work[0].tree);
            let distance = &source.tree.distance;
            let demands = source.demands.iter();
            lengths.extend(demands.map(|one| (distance[one.target as usize], one.rate_bps)));
        }
        let (mut left_bps, mut worth, mut paid) = (left_out_bps, f64::INFINITY, 0.0);
        if left_out_bps > 0.0 {
            // The farthest are left out.
            lengths.sort_unstable_by(|one, other| other.0.total_cmp(&one.0));
        }
        for (length, rate_bps) in lengths {
            let served_bps = (rate_bps - left_bps).max(0.0);
            if left_bps > 0.0 {
                worth = length;
            }
            left_bps -= rate_bps - served_bps;
            paid += served_bps * length;
        }
        let usable = prices.iter().zip(&self.capacity);
        let usable = usable.filter(|(_, &capacity)| capacity > 0.0);
        let sum: f64 = usable.map(|(price, _)| price).sum();
        match sum > 0.0 {
            true => (paid / sum, worth),
            false => (0.0, worth),
        }
    }

    /// Visits all demands with their shortest paths at the lengths of a balance; false when the time is up.
    pub fn visit_all(&mut self, balance: &mut Balance, halt: &Halt) -> bool {
        let (mut id, mut path) = (0, Vec::new());
        for (place, source) in self.all.iter_mut().enumerate() {
            if place % SOURCES_PER_LOOK == 0 && halt.now() {
                return false;
            }
            let tree = &mut source.tree;
            tree.update(&self.graph, balance.lengths(), &mut self.work[0].tree);
            for demand in &source.demands {
                let distance = tree.distance[demand.target as usize];
                balance.visit(id, distance, || {
                    let is_there = tree.path_to(&self.graph, demand.target, &mut path);
                    is_there.then_some(&path[..])
                });
                id += 1;
            }
        }
        true
    }

    /// Load of each arc by rates of all demands, in their order, on the trees as they are, bit/s.
    pub fn loads_of(&mut self, rate_bps: impl Fn(usize) -> f64) -> Vec<f64> {
        let (mut loads, mut id) = (vec![0.0; self.graph.arcs()], 0);
        let work = &mut self.work[0];
        for source in &self.all {
            work.begin(&self.graph);
            for demand in &source.demands {
                work.through[demand.target as usize] += rate_bps(id);
                id += 1;
            }
            let parents = source.tree.parents();
            for (arc, share) in work.loads(&self.graph, &self.capacity, 0.0, parents) {
                loads[arc as usize] += share * self.capacity[arc as usize];
            }
        }
        loads
    }

    /// Serves what a balance leaves out beyond such a rate, bit/s, on the trees as they are.
    pub fn serve_rest(&self, balance: &mut Balance, left_out_bps: f64) {
        let unserved_bps = balance.unserved();
        if unserved_bps <= left_out_bps {
            return;
        }
        let part = 1.0 - left_out_bps / unserved_bps;
        let (mut id, mut path) = (0, Vec::new());
        for source in &self.all {
            for demand in &source.demands {
                let rate_bps = part * balance.splits[id].unserved;
                if rate_bps > 0.0 {
                    source.tree.path_to(&self.graph, demand.target, &mut path);
                    balance.serve(id, &path, rate_bps);
                }
                id += 1;
            }
        }
    }

    /// What a balance routes of each source.
    pub fn shares_of(&self, balance: &Balance) -> Vec<SourceRouting> {
        let mut splits = balance.splits.iter();
        let share = |source: &Source| {
            let mut loads = vec![0.0; self.graph.arcs()];
            let mut share = SourceRouting::default();
            for split in splits.by_ref().take(source.demands.len()) {
                share.left_out_bps += split.unserved;
                for route in &split.routes {
                    share.rate_bps += route.rate;
                    for &arc in balance.path(route) {
                        loads[arc as usize] += route.rate;
                    }
                }
            }
            let loaded = (0..).zip(loads).filter(|&(_, load)| load > 0.0);
            share.loads = loaded
                .map(|(arc, load)| (arc, load / self.capacity[arc as usize]))
                .collect();
            share
        };
        self.all.iter().map(share).collect()
    }

    /// Takes lengths: prices of whole capacities, and so much of the cost for each bit/s.
    pub fn set_lengths(&mut self, prices: &[f64], cost: f64) {
        let capacities = prices.iter().zip(&self.capacity);
        let per_bps: Vec<f64> = capacities
            .map(|(&price, &capacity)| match capacity > 0.0 {
                true => price / capacity,
                false => 0.0,
            })
            .collect();
        let costs: Vec<f64> = self.cost.iter().map(|one| cost * one).collect();
        self.lengths
            .update(&self.graph, &costs, &per_bps, &self.usable);
    }

    /// Puts a source on its shortest paths, without the demands whose paths are as long as `worth`.
    pub fn route_one(&mut self, place: usize, worth: f64) -> TreeRouting {
        let (sources, terms, work) = self.parts(worth);
        sources[place].route(&terms, &mut work[0])
    }

    /// The same for every source, on all threads.
    pub fn route_all(&mut self, worth: f64) -> Vec<TreeRouting> {
        let (sources, terms, work) = self.parts(worth);
        let share = sources.len().div_ceil(work.len()).max(1);
        let parts = sources.chunks_mut(share).zip(work);
        std::thread::scope(|scope| {
            let threads: Vec<_> = parts
                .map(|(part, work)| {
                    let terms = &terms;
                    let route = move |source: &mut Source| source.route(terms, work);
                    scope.spawn(|| part.iter_mut().map(route).collect::<Vec<_>>())
                })
                .collect();
            let mut routed = Vec::new();
            for thread in threads {
                match thread.join() {
                    Ok(part) => routed.extend(part),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            routed
        })
    }

    fn parts(&mut self, worth: f64) -> (&mut [Source], RoutingView<'_>, &mut [Workspace]) {
        let terms = RoutingView {
            graph: &self.graph,
            capacity: &self.capacity,
            cost: &self.cost,
            lengths: &self.lengths,
            worth,
        };
        (&mut self.all, terms, &mut self.work)
    }

    /// The loads of a source's demands on a tree that is known.
    pub fn loads_on(&mut self, place: usize, on: &TreeRouting) -> SourceLoads {
        let source = &self.all[place];
        let ack_ratio = self.lengths.ratio(source.class);
        let work = &mut self.work[0];
        work.begin(&self.graph);
        let mut left_out = on.left_out.iter().copied().peekable();
        for (at, demand) in source.demands.iter().enumerate() {
            if left_out.next_if_eq(&(at as u32)).is_none() {
                work.through[demand.target as usize] += demand.rate_bps;
            }
        }
        work.loads(&self.graph, &self.capacity, ack_ratio, &on.parents)
    }
}

/// What all sources are routed by.
struct RoutingView<'a> {
    graph: &'a Graph,
    capacity: &'a [f64],
    cost: &'a [f64],
    lengths: &'a Lengths,
    worth: f64,
}

impl Source {
    fn route(&mut self, terms: &RoutingView<'_>, work: &mut Workspace) -> TreeRouting {
        let ack_ratio = terms.lengths.ratio(self.class);
        let lengths = terms.lengths.of(self.class);
        self.tree.update(terms.graph, lengths, &mut work.tree);
        self.tree.begin_measuring(&mut work.tree);
        work.begin(terms.graph);
        let mut on = TreeRouting {
            place: self.place,
            ..TreeRouting::default()
        };
        for (at, demand) in self.demands.iter().enumerate() {
            let length = self.tree.distance[demand.target as usize];
            if length >= terms.worth {
                on.left_out.push(at as u32);
                on.left_out_bps += demand.rate_bps;
                continue;
            }
            on.rate_bps += demand.rate_bps;
            on.length_bps += demand.rate_bps * length;
            let cost = self
                .tree
                .measure(terms.graph, terms.cost, demand.target, &mut work.tree);
            on.cost_bps += demand.rate_bps * cost;
            work.through[demand.target as usize] += demand.rate_bps;
        }
        on.parents = self.tree.parents().into();
        on.loads = work.loads(terms.graph, terms.capacity, ack_ratio, &on.parents);
        on
    }
}

impl Workspace {
    fn begin(&mut self, graph: &Graph) {
        self.through.clear();
        self.through.resize(graph.nodes, 0.0);
        self.load.resize(graph.arcs(), 0.0);
    }

    /// Sums what ends at each node up along a tree.
    fn loads(
        &mut self,
        graph: &Graph,
        capacity: &[f64],
        ack_ratio: f64,
        parents: &[u32],
    ) -> SourceLoads {
        self.children.clear();
        self.children.resize(graph.nodes, 0);
        let tail = |arc: u32| graph.tail[arc as usize] as usize;
        for &arc in parents.iter().filter(|&&arc| arc != NONE) {
            self.children[tail(arc)] += 1;
        }
        self.ready.clear();
        let leaves = (0..graph.nodes as u32).filter(|&node| self.children[node as usize] == 0);
        self.ready.extend(leaves);
        let mut loaded = Vec::new();
        let mut add = |arc: u32, bps: f64| {
            let load = &mut self.load[arc as usize];
            if *load == 0.0 {
                loaded.push(arc);
            }
            *load += bps / capacity[arc as usize];
        };
        while let Some(node) = self.ready.pop() {
            let arc = parents[node as usize];
            if arc == NONE {
                continue;
            }
            let bps = self.through[node as usize];
            if bps > 0.0 {
                add(arc, bps);
                let reverse = graph.reverse[arc as usize];
                if ack_ratio > 0.0 && reverse != NONE {
                    add(reverse, bps * ack_ratio);
                }
                self.through[tail(arc)] += bps;
            }
            self.children[tail(arc)] -= 1;
            if self.children[tail(arc)] == 0 {
                self.ready.push(tail(arc) as u32);
            }
        }
        let take = |arc: u32| (arc, std::mem::take(&mut self.load[arc as usize]));
        loaded.into_iter().map(take).collect()
    }
}
