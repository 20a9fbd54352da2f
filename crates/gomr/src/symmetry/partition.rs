//! Colour refinement: the coarsest equitable partition of what sources see.
//!
//! A node has a colour for each source, an arc one for all. Colours are hashes, so that they compare across sources; two that
//! are equal by accident make an answer that the auditor refuses.

use crate::graph::NONE;
use crate::problem::{Flow, Problem};

/// Demands and arcs for each class, at least: with fewer the plain programme is as quick, and its answer has fewer paths.
const MIN_REDUCTION: usize = 8;
/// Sources times arcs, at most.
const MAX_PAIRS: usize = 1 << 24;

/// Classes of arcs, and of nodes as sources see them.
pub(super) struct Partition {
    /// Class of each arc; `NONE` where it has no capacity.
    pub class: Vec<u32>,
    /// Number of arcs of each class.
    pub sizes: Vec<usize>,
    /// Nodes that flows begin at.
    pub sources: Vec<u32>,
    /// Flows by source, destination, rate and weight.
    pub order: Vec<u32>,
    /// Colour of each arc.
    arcs: Vec<u64>,
    /// Colour of each node, source by source.
    colours: Vec<u64>,
    nodes: usize,
}

/// A number for some numbers in their order (finaliser of SplitMix64).
pub(super) fn hash(parts: &[u64]) -> u64 {
    parts.iter().fold(parts.len() as u64, |hash, part| {
        let mut z = (hash.rotate_left(23) ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

fn distinct(of: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut colours: Vec<u64> = of.collect();
    colours.sort_unstable();
    colours.dedup();
    colours
}

/// What a flow asks for.
pub(super) fn asked(flow: &Flow) -> [u64; 2] {
    [flow.rate_bps.to_bits(), flow.weight.to_bits()]
}

fn is_plain(flow: &Flow) -> bool {
    let is_free = flow.fixed_paths.is_none() && flow.max_delay_s.is_none();
    is_free && flow.ack_ratio == 0.0 && flow.source != flow.destination
}

impl Partition {
    /// The partition; `None` where it has too many classes, and as soon as that shows.
    pub fn new(problem: &Problem) -> Option<Self> {
        let most = (problem.arcs.len() + problem.flows.len()) / MIN_REDUCTION;
        let arcs = first_colours(problem);
        let is_open = |&(at, _): &(usize, &u64)| problem.arcs[at].capacity_bps > 0.0;
        let open = arcs.iter().enumerate().filter(is_open);
        let is_alike = distinct(open.map(|(_, &colour)| colour)).len() <= most;
        if !is_alike || !problem.flows.iter().all(is_plain) {
            return None;
        }
        let mut order: Vec<u32> = (0..problem.flows.len() as u32).collect();
        order.sort_unstable_by_key(|&at| {
            let flow = &problem.flows[at as usize];
            (flow.source, flow.destination, asked(flow))
        });
        let source = |&at: &u32| problem.flows[at as usize].source as u32;
        let mut sources: Vec<u32> = order.iter().map(source).collect();
        sources.dedup();
        if sources.len() * problem.arcs.len() > MAX_PAIRS {
            return None;
        }
        let mut partition = Self {
            class: Vec::new(),
            sizes: Vec::new(),
            colours: vec![0; sources.len() * problem.nodes],
            nodes: problem.nodes,
            sources,
            order,
            arcs,
        };
        partition.colour_demands(problem);
        partition.refine(problem, most)?;
        partition.number(problem);
        Some(partition)
    }

    fn colour_demands(&mut self, problem: &Problem) {
        let mut place = 0;
        for &at in &self.order {
            let flow = &problem.flows[at as usize];
            while (self.sources[place] as usize) < flow.source {
                place += 1;
            }
            let colour = &mut self.colours[place * self.nodes + flow.destination];
            let [rate, weight] = asked(flow);
            *colour = hash(&[*colour, rate, weight]);
        }
        for (place, &source) in self.sources.iter().enumerate() {
            self.colours[place * self.nodes + source as usize] = 1;
        }
    }

    /// Tells colours apart until no further ones differ.
    fn refine(&mut self, problem: &Problem, most: usize) -> Option<()> {
        let mut before = (0, 0);
        loop {
            self.refine_once(problem);
            let arcs = distinct(self.arcs.iter().copied()).len();
            if arcs > most {
                return None;
            }
            let now = (arcs, distinct(self.colours.iter().copied()).len());
            if now == before {
                return Some(());
            }
            before = now;
        }
    }

    fn refine_once(&mut self, problem: &Problem) {
        let mut seen = vec![0u64; self.arcs.len()];
        let mut around = vec![0u64; self.nodes];
        for colours in self.colours.chunks_mut(self.nodes) {
            around.fill(0);
            for (at, arc) in problem.arcs.iter().enumerate() {
                if arc.capacity_bps > 0.0 {
                    let (tail, head) = (colours[arc.tail], colours[arc.head]);
                    let add = |sum: &mut u64, hash: u64| *sum = sum.wrapping_add(hash);
                    add(&mut around[arc.tail], hash(&[self.arcs[at], head]));
                    add(&mut around[arc.head], hash(&[tail, self.arcs[at], tail]));
                    add(&mut seen[at], hash(&[tail, head]));
                }
            }
            for (colour, around) in colours.iter_mut().zip(&around) {
                *colour = hash(&[*colour, *around]);
            }
        }
        for (colour, seen) in self.arcs.iter_mut().zip(seen) {
            *colour = hash(&[*colour, seen]);
        }
    }

    fn number(&mut self, problem: &Problem) {
        let is_open = |at: &usize| problem.arcs[*at].capacity_bps > 0.0;
        let open = (0..self.arcs.len()).filter(is_open);
        let colours = distinct(open.map(|at| self.arcs[at]));
        self.sizes = vec![0; colours.len()];
        for (at, colour) in self.arcs.iter().enumerate() {
            let class = colours.binary_search(colour).ok().filter(|_| is_open(&at));
            self.class.push(class.map_or(NONE, |class| class as u32));
            class.iter().for_each(|&class| self.sizes[class] += 1);
        }
    }

    /// Colour of a node as the source at this place sees it.
    pub fn colour(&self, place: usize, node: usize) -> u64 {
        self.colours[place * self.nodes + node]
    }

    /// Colour of an arc as the source at this place sees it.
    pub fn arc_colour(&self, place: usize, problem: &Problem, at: usize) -> u64 {
        let arc = &problem.arcs[at];
        let ends = [arc.tail, arc.head].map(|node| self.colour(place, node));
        hash(&[ends[0], self.arcs[at], ends[1]])
    }

    /// Gives each arc what its class has.
    pub fn of_arcs(&self, of_classes: &[f64]) -> Vec<f64> {
        let of = |&class: &u32| of_classes.get(class as usize).copied().unwrap_or(0.0);
        self.class.iter().map(of).collect()
    }
}

/// Colours of arcs by what they are and what their ends ask for: on most networks they differ already.
fn first_colours(problem: &Problem) -> Vec<u64> {
    let mut ends = vec![[0u64; 2]; problem.nodes];
    for flow in &problem.flows {
        let asked = hash(&asked(flow));
        let add = |sum: &mut u64| *sum = sum.wrapping_add(asked);
        add(&mut ends[flow.source][0]);
        add(&mut ends[flow.destination][1]);
    }
    let colour = |arc: &crate::problem::Arc| {
        let [tail, head] = [ends[arc.tail], ends[arc.head]].map(|end| hash(&end));
        let (capacity, delay) = (arc.capacity_bps.to_bits(), arc.delay_s.to_bits());
        hash(&[capacity, delay, tail, head])
    };
    problem.arcs.iter().map(colour).collect()
}
