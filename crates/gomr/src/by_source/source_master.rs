//! The linear programme by source: a commodity for each source, a column for each of its trees.
//!
//! Only arcs that may fill up have a row. The others are looked at after each solve, and get one when they are
//! overloaded after all.

use super::sources::{SourceLoads, Sources, TreeRouting};
use super::sweeps::SourceRouting;
use crate::graph::{Graph, NONE};
use crate::halt::Halt;
use crate::problem::Error;
use crate::solver::{Commodity, Solver};

/// Arcs with such a utilisation, over the largest allowed, may fill up.
pub(super) const ROW_UTILISATION: f64 = 0.7;
/// Utilisation over the largest allowed that is no rounding.
const OVERLOAD_TOLERANCE: f64 = 1e-11;
/// Trees of a source are much alike, so the pivots between them can be tiny: they are avoided where the rates that
/// are passed over are so small, in tolerances. Bounds are kept in the end.
const RATIO_TEST_TOLERANCES: f64 = 100.0;
/// Candidates looked at for each that is wanted: columns are known, so that more of them save pivots.
const CANDIDATES_PER_COLUMN: usize = 64;
/// Trees of each source to begin with, of those that it was spread over.
const FIRST_TREES_PER_SOURCE: usize = 4;
/// Columns for each source from where on the worst are forgotten.
const MAX_COLUMNS_PER_SOURCE: usize = 30;

/// What a column is worth in the first objective and costs in the second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coefficients {
    pub value: f64,
    pub cost: f64,
}

/// Row of the rate that may be left out, where there is one.
const LEFT_OUT: u32 = 0;

/// What the programme counts in. Entries near 1 keep its pivots well above rounding.
#[derive(Clone, Debug)]
pub(super) struct Scaling {
    /// What the whole of each source counts.
    pub sources: Vec<f64>,
    /// What a share of 1 of each arc's capacity counts.
    pub arcs: Vec<f64>,
    /// Share of its capacity that each arc may carry.
    pub most: f64,
}

/// The restricted master problem.
pub(super) struct SourceMaster {
    pub sources: Sources,
    pub solver: Solver,
    units: Scaling,
    /// Arc of each row, and row of each arc.
    rows: Vec<u32>,
    row_of: Vec<u32>,
    /// The routing of each source that all began with, and its worth.
    start: Vec<(SourceRouting, Coefficients)>,
    /// The tree of each column, where it has one, with its loads of arcs without a row.
    trees: Vec<Option<(TreeRouting, Coefficients)>>,
    /// A source more, whose column takes load off every arc; see [`super::concurrent`].
    relief: Option<f64>,
    /// Rate that trees may leave out, bit/s; it has the first row.
    most_left_out: Option<f64>,
}

impl SourceMaster {
    /// Starts with a routing of each source, in an empty programme: [`SourceMaster::give_rows`] and
    /// [`SourceMaster::build`] come first. With a `relief` every arc may carry up to this many times as much more, at a
    /// cost of 1 for each time.
    pub fn new(
        sources: Sources,
        start: Vec<(SourceRouting, Coefficients)>,
        units: Scaling,
        relief: Option<f64>,
        halt: Halt,
    ) -> Self {
        let arcs = sources.graph.arcs();
        let mut blocks = Self {
            solver: Solver::new(sources.graph.clone(), Vec::new()),
            sources,
            units,
            rows: Vec::new(),
            row_of: vec![NONE; arcs],
            start,
            trees: Vec::new(),
            relief,
            most_left_out: None,
        };
        blocks.solver.master.halt = halt;
        blocks
    }

    /// Lets trees leave out so much of all demands together, bit/s; before any arc has a row.
    pub fn limit_left_out(&mut self, most_bps: f64) {
        self.most_left_out = Some(most_bps);
        self.rows.push(NONE);
    }

    /// Whether an arc without a row has more than `most` of a utilisation.
    pub fn misses_row(&self, utilisation: &[f64], most: f64) -> bool {
        let mut arcs = self.row_of.iter().zip(utilisation);
        arcs.any(|(&row, &used)| row == NONE && used > most * (1.0 + OVERLOAD_TOLERANCE))
    }

    /// Gives a row to every arc with more than `least` of a utilisation.
    pub fn give_rows(&mut self, utilisation: &[f64], least: f64) {
        for (arc, &used) in utilisation.iter().enumerate() {
            if self.row_of[arc] == NONE && used > least {
                self.row_of[arc] = self.rows.len() as u32;
                self.rows.push(arc as u32);
            }
        }
    }

    /// Begins again at the start, with all trees that are known and `big_m` the weight of the first objective.
    pub fn build(&mut self, big_m: f64, stage: &'static str) {
        let graph = &self.sources.graph;
        // What may be left out has no ends.
        let end = |of: &[u32], arc: u32| of.get(arc as usize).copied().unwrap_or(0);
        let of_rows = |of: &[u32]| self.rows.iter().map(|&arc| end(of, arc)).collect();
        let count = self.rows.len();
        let rows = Graph::new(
            graph.nodes,
            of_rows(&graph.tail),
            of_rows(&graph.head),
            vec![0.0; count],
            vec![NONE; count],
        );
        let units = &self.units;
        let capacity = |&arc: &u32| {
            units
                .arcs
                .get(arc as usize)
                .map_or(1.0, |unit| unit * units.most)
        };
        let capacities = self.rows.iter().map(capacity).collect();
        let mut solver = Solver::new(rows, capacities);
        solver.master.halt = self.solver.master.halt.clone();
        solver.master.set_big_m(big_m);
        solver.master.expect_dense_columns();
        solver.master.leeway = RATIO_TEST_TOLERANCES;
        solver.run.stage = stage;
        solver.settings.pricing.looked_at = CANDIDATES_PER_COLUMN;
        self.solver = solver;
        let known = std::mem::take(&mut self.trees);
        for place in 0..self.start.len() {
            let group = self.add_group(self.units.sources[place]);
            let (share, worth) = self.start[place].clone();
            let column = self.add_column(group, &share.loads, share.left_out_bps, worth, None);
            self.solver.master.set_key(column);
        }
        if let Some(most) = self.relief {
            let group = self.add_group(most);
            let arcs = self.rows.iter().filter(|&&arc| arc != NONE);
            let loads: SourceLoads = arcs.map(|&arc| (arc, -self.units.most)).collect();
            let worth = Coefficients {
                value: 0.0,
                cost: 1.0,
            };
            let column = self.add_column(group, &loads, 0.0, worth, None);
            self.solver.master.set_key(column);
        }
        for (mut tree, worth) in known.into_iter().flatten() {
            let loads = self.sources.loads_on(tree.place, &tree);
            tree.loads = loads;
            self.add_tree(tree, worth);
        }
    }

    fn add_group(&mut self, request: f64) -> u32 {
        let spec = Commodity::of_columns(1.0);
        let group = self.solver.add_commodity(spec, request);
        self.trees.push(None);
        group
    }

    /// Adds the trees that have the largest parts of what all began with.
    pub fn add_first_trees(&mut self, worth: impl Fn(&TreeRouting) -> Coefficients) {
        for place in 0..self.start.len() {
            let mut trees = self.start[place].0.trees.clone();
            trees.sort_by(|(_, one), (_, other)| other.total_cmp(one));
            for (mut tree, _) in trees.into_iter().take(FIRST_TREES_PER_SOURCE) {
                tree.loads = self.sources.loads_on(place, &tree);
                let worth = worth(&tree);
                self.add_tree(tree, worth);
            }
        }
    }

    /// Adds a tree of its source.
    pub fn add_tree(&mut self, mut tree: TreeRouting, worth: Coefficients) {
        let mut loads = std::mem::take(&mut tree.loads);
        let is_limited = |arc: u32| self.row_of[arc as usize] != NONE;
        let others = loads.iter().filter(|(arc, _)| !is_limited(*arc));
        tree.loads = others.copied().collect();
        loads.retain(|&(arc, _)| is_limited(arc));
        let left_out_bps = tree.left_out_bps;
        let group = tree.place as u32;
        self.add_column(group, &loads, left_out_bps, worth, Some((tree, worth)));
    }

    fn add_column(
        &mut self,
        group: u32,
        loads: &SourceLoads,
        left_out_bps: f64,
        worth: Coefficients,
        tree: Option<(TreeRouting, Coefficients)>,
    ) -> u32 {
        let size = self.size(group as usize);
        let units = &self.units.arcs;
        let row = |&(arc, load): &(u32, f64)| {
            let arc = arc as usize;
            (self.row_of[arc], load * units[arc] / size)
        };
        let rows = loads.iter().map(row).filter(|&(row, _)| row != NONE);
        let mut rows: Vec<(u32, f64)> = rows.collect();
        if let Some(most_bps) = self.most_left_out {
            if left_out_bps > 0.0 {
                rows.push((LEFT_OUT, left_out_bps / (most_bps * size)));
            }
        }
        self.trees.push(tree);
        self.solver
            .master
            .add_loads(group, worth.value / size, worth.cost / size, &rows)
    }

    /// What the whole of a group counts.
    fn size(&self, group: usize) -> f64 {
        self.units.sources.get(group).copied().unwrap_or(1.0)
    }

    /// Solves over the trees that are known, and forgets the worst where there are many.
    ///
    /// # Errors
    /// As [`Solver::optimise`].
    pub fn solve(&mut self) -> Result<(), Error> {
        self.solver.optimise(false)?;
        if self.trees.len() > MAX_COLUMNS_PER_SOURCE * self.start.len() + 1000 {
            self.forget_worst();
        }
        Ok(())
    }

    fn forget_worst(&mut self) {
        let master = &self.solver.master;
        let count = master.columns.len() as u32;
        let gains: Vec<f64> = (0..count)
            .map(|column| master.reduced_profit(column))
            .collect();
        let mut ranked = gains.clone();
        let middle = ranked.len() / 2;
        let (_, &mut least, _) = ranked.select_nth_unstable_by(middle, f64::total_cmp);
        let kept = |column: u32| {
            let unserved = master.groups[master.columns[column as usize].group as usize].unserved;
            master.is_basic(column) || column == unserved || gains[column as usize] >= least
        };
        let keep: Vec<bool> = (0..count).map(kept).collect();
        let mut order = keep.iter();
        self.trees.retain(|_| order.next().copied().unwrap_or(true));
        self.solver.master.purge(|column| keep[column as usize]);
    }

    /// The columns in use of a source with their shares: trees, or what it began with.
    fn used(&self, place: usize) -> impl Iterator<Item = (Option<&TreeRouting>, f64)> + '_ {
        let master = &self.solver.master;
        let used = master.used_paths(&master.groups[place]);
        used.map(move |(column, share)| {
            let tree = self.trees[column as usize].as_ref();
            (tree.map(|(tree, _)| tree), share / self.size(place))
        })
    }

    /// The trees that a source is on, with their shares.
    pub fn trees_of(&self, place: usize) -> Vec<(&TreeRouting, f64)> {
        let mut trees = Vec::new();
        for (tree, share) in self.used(place).filter(|&(_, share)| share > 1e-13) {
            match tree {
                Some(tree) => trees.push((tree, share)),
                None => {
                    let began = self.start[place].0.trees.iter();
                    trees.extend(began.map(|(tree, part)| (tree, share * part)));
                }
            }
        }
        trees
    }

    /// Totals of the first and the second objective.
    pub fn totals(&self) -> Coefficients {
        let master = &self.solver.master;
        let mut totals = Coefficients {
            value: 0.0,
            cost: 0.0,
        };
        for group in &master.groups[..self.start.len()] {
            for (column, count) in master.used_paths(group) {
                totals.value += count * master.columns[column as usize].value;
                totals.cost += count * master.columns[column as usize].cost;
            }
        }
        totals
    }

    /// Rate of the relief.
    pub fn relief(&self) -> f64 {
        self.solver.served(self.start.len())
    }

    /// Utilisation of the arcs without a row, as a share of their capacity.
    pub fn utilisation_without_rows(&self) -> Vec<f64> {
        let mut utilisation = vec![0.0; self.row_of.len()];
        for (place, start) in self.start.iter().enumerate() {
            for (tree, share) in self.used(place) {
                for &(arc, load) in tree.map_or(&start.0.loads, |tree| &tree.loads) {
                    utilisation[arc as usize] += share * load;
                }
            }
        }
        utilisation
    }

    /// Prices of rows as prices of all arcs' whole capacities, none below 0.
    pub fn by_arc(&self, of_rows: &[f64]) -> Vec<f64> {
        let price = |row: u32| of_rows.get(row as usize).map_or(0.0, |p| p.max(0.0));
        let arcs = self.row_of.iter().zip(&self.units.arcs);
        arcs.map(|(&row, unit)| unit * price(row)).collect()
    }

    /// What a tree would gain under the present prices, in what its source counts.
    pub fn gain(&self, tree: &TreeRouting, worth: Coefficients) -> f64 {
        let master = &self.solver.master;
        let price = |arc: u32| match self.row_of[arc as usize] {
            NONE => 0.0,
            row => master.price[row as usize] * self.units.arcs[arc as usize],
        };
        let paid: f64 = tree
            .loads
            .iter()
            .map(|&(arc, load)| load * price(arc))
            .sum();
        let profit = master.big_m * worth.value - worth.cost;
        let left_out = tree.left_out_bps * self.left_out_price();
        (profit - paid - left_out) / self.size(tree.place) - master.sigma(tree.place as u32)
    }

    /// Price of a bit/s that is left out.
    pub fn left_out_price(&self) -> f64 {
        let price = |most_bps: f64| self.solver.master.price[LEFT_OUT as usize].max(0.0) / most_bps;
        self.most_left_out.map_or(0.0, price)
    }
}
