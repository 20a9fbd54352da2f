//! Rates and prices near the optimum, before the first pivot.
//!
//! Every arc has a price that rises with its load: `max(0, m + s·(load − capacity))`. Each commodity moves rate from its
//! longer paths to its shortest one until both are as long, one commodity after the other (S. Dafermos and F. Sparrow,
//! "The traffic assignment problem for a general network", J. Res. National Bureau of Standards 73B, 1969), and
//! not being served is one more path, as long as the commodity is worth. After each sweep over all commodities the
//! price becomes the multiplier `m` (M. Hestenes, "Multiplier and gradient methods", J. Optimization Theory and
//! Applications 4, 1969), so that loads approach the capacities whatever the steepness `s`.

/// By how much prices rise when the load grows by the whole capacity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Penalty {
    /// At first.
    pub first: f64,
    /// Least that it becomes, and most.
    pub least: f64,
    pub most: f64,
    /// A path shorter by less than this is not new.
    pub least_saving: f64,
    /// Rounds over the commodities with several paths that each sweep ends with. They are cheap beside trees.
    pub settling_rounds: usize,
}

impl Penalty {
    /// Where costs are in those of the longest arc.
    pub const OF_COSTS: Self = Self {
        first: 3.0,
        least: 1.0,
        most: 200.0,
        least_saving: 1e-9,
        settling_rounds: 3,
    };
}

/// Where an overload keeps its sign and more than `PERSISTENT_OVERLOAD` of its size, its price follows faster; where the sign
/// changes, more slowly.
const PERSISTENT_OVERLOAD: f64 = 0.5;
const PENALTY_GROWTH: f64 = 1.3;
const PENALTY_REDUCTION: f64 = 0.7;

/// A path of a commodity, and its rate.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    start: u32,
    len: u32,
    pub rate: f64,
    length: f64,
}

impl Route {
    fn arcs<'a>(&self, all: &'a [u32]) -> &'a [u32] {
        &all[self.start as usize..(self.start + self.len) as usize]
    }
}

/// How the request of a commodity is shared out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Split {
    pub routes: Vec<Route>,
    pub unserved: f64,
    /// Length from which on a path is not worth taking.
    worth: f64,
}

impl Split {
    fn is_unsplit(&self) -> bool {
        self.routes.len() + usize::from(self.unserved > 0.0) <= 1
    }
}

/// Load of an arc, and the price that follows from it.
#[derive(Clone, Copy, Debug)]
struct LoadedArc {
    cost: f64,
    capacity: f64,
    load: f64,
    multiplier: f64,
    /// Price of one bit/s more, where there is a price.
    slope: f64,
    /// Part of the capacity by which the arc was overloaded in the sweep before; below zero where its price is too high.
    overload: f64,
}

impl LoadedArc {
    fn new(cost: f64, capacity: f64, penalty: &Penalty) -> Self {
        let slope = penalty.first / capacity;
        Self {
            cost,
            capacity,
            load: 0.0,
            multiplier: 0.0,
            slope: if capacity > 0.0 { slope } else { 0.0 },
            overload: 0.0,
        }
    }

    /// The price with so much more load, below zero where there is none.
    #[inline]
    fn unclipped(&self, more: f64) -> f64 {
        self.multiplier + self.slope * (self.load + more - self.capacity)
    }

    fn price(&self) -> f64 {
        self.unclipped(0.0).max(0.0)
    }

    /// How fast the price grows while the arc gets up to `more`.
    #[inline]
    fn slope(&self, more: f64) -> f64 {
        match self.unclipped(more) > 0.0 {
            true => self.slope,
            false => 0.0,
        }
    }

    /// Makes the price the multiplier.
    fn follow(&mut self, penalty: &Penalty) {
        let price = self.price();
        let overload = (self.load - self.capacity) / self.capacity;
        let overload = match price > 0.0 {
            true => overload,
            false => overload.max(0.0),
        };
        let before = std::mem::replace(&mut self.overload, overload);
        if overload * before < 0.0 {
            self.slope = (PENALTY_REDUCTION * self.slope).max(penalty.least / self.capacity);
        } else if overload * before > 0.0 && overload.abs() > PERSISTENT_OVERLOAD * before.abs() {
            self.slope = (PENALTY_GROWTH * self.slope).min(penalty.most / self.capacity);
        }
        self.multiplier = price;
    }
}

/// All arcs.
#[derive(Debug)]
struct ArcPrices {
    arcs: Vec<LoadedArc>,
    /// Cost and price of each arc; infinite where it cannot be used.
    length: Vec<f64>,
}

impl ArcPrices {
    #[inline]
    fn add(&mut self, arc: usize, rate: f64) {
        let priced = &mut self.arcs[arc];
        priced.load += rate;
        self.length[arc] = priced.cost + priced.price();
    }

    fn follow(&mut self, penalty: &Penalty) {
        for arc in 0..self.arcs.len() {
            if self.arcs[arc].capacity > 0.0 {
                self.arcs[arc].follow(penalty);
                self.add(arc, 0.0);
            }
        }
    }
}

/// Arcs of the two paths between which rate is moved.
#[derive(Debug)]
struct Marks {
    to: Vec<u64>,
    from: Vec<u64>,
    now: u64,
}

/// Commodities that split a network at prices that follow from their rates.
#[derive(Debug)]
pub(crate) struct Balance {
    prices: ArcPrices,
    /// Arcs of all routes.
    arcs: Vec<u32>,
    pub splits: Vec<Split>,
    marks: Marks,
    penalty: Penalty,
    /// Rate moved since the last sweep began.
    pub moved: f64,
    /// Arcs looked at.
    pub steps: u64,
}

impl Balance {
    /// Nothing is served yet; `requests` has what each commodity asks for and how long a path of it may be.
    pub fn new(
        cost: &[f64],
        capacity: &[f64],
        penalty: Penalty,
        requests: impl Iterator<Item = (f64, f64)>,
    ) -> Self {
        let arcs = cost.len();
        let length = |(&cost, &capacity): (&f64, &f64)| match capacity > 0.0 {
            true => cost,
            false => f64::INFINITY,
        };
        let split = |(unserved, worth): (f64, f64)| Split {
            routes: Vec::new(),
            unserved,
            worth,
        };
        let ends = || cost.iter().zip(capacity);
        Self {
            prices: ArcPrices {
                arcs: ends()
                    .map(|(&cost, &capacity)| LoadedArc::new(cost, capacity, &penalty))
                    .collect(),
                length: ends().map(length).collect(),
            },
            arcs: Vec::new(),
            splits: requests.map(split).collect(),
            marks: Marks {
                to: vec![0; arcs],
                from: vec![0; arcs],
                now: 0,
            },
            penalty,
            moved: 0.0,
            steps: 0,
        }
    }

    /// Begins with these prices.
    pub fn set_prices(&mut self, price: &[f64]) {
        for (arc, &price) in price.iter().enumerate() {
            self.prices.arcs[arc].multiplier = price.max(0.0);
        }
    }

    /// Gives all arcs other capacities, none of which becomes 0 or was; prices and how they rise with a share stay.
    pub fn set_capacities(&mut self, capacity: impl Iterator<Item = f64>) {
        for (priced, capacity) in self.prices.arcs.iter_mut().zip(capacity) {
            if capacity > 0.0 {
                priced.slope *= priced.capacity / capacity;
                priced.capacity = capacity;
            }
        }
        self.update_lengths();
    }

    /// Serves so much of a commodity's request over a path, as far as there is a request left.
    pub fn serve(&mut self, commodity: usize, path: &[u32], rate: f64) {
        let rate = rate.min(self.splits[commodity].unserved);
        if rate > 0.0 {
            self.add_route(commodity, path, rate);
            self.splits[commodity].unserved -= rate;
            for &arc in path {
                self.prices.arcs[arc as usize].load += rate;
            }
        }
    }

    /// Makes lengths what prices and loads say.
    pub fn update_lengths(&mut self) {
        for arc in 0..self.prices.arcs.len() {
            if self.prices.arcs[arc].capacity > 0.0 {
                self.prices.add(arc, 0.0);
            }
        }
    }

    /// Cost and price of each arc; infinite where one cannot be used.
    pub fn lengths(&self) -> &[f64] {
        &self.prices.length
    }

    /// Price of each arc.
    pub fn prices(&self) -> Vec<f64> {
        let price = |priced: &LoadedArc| match priced.capacity > 0.0 {
            true => priced.price(),
            false => 0.0,
        };
        self.prices.arcs.iter().map(price).collect()
    }

    /// Forgets the arcs of routes that are gone.
    pub fn forget_gone(&mut self) {
        let mut kept = Vec::new();
        for route in self.splits.iter_mut().flat_map(|split| &mut split.routes) {
            let start = kept.len() as u32;
            kept.extend_from_slice(route.arcs(&self.arcs));
            route.start = start;
        }
        self.arcs = kept;
    }

    /// Rate of all that is not served.
    pub fn unserved(&self) -> f64 {
        self.splits.iter().map(|split| split.unserved).sum()
    }

    /// Load of each arc.
    pub fn loads(&self) -> impl Iterator<Item = f64> + '_ {
        self.prices.arcs.iter().map(|priced| priced.load)
    }

    /// The arcs of a route.
    pub fn path(&self, route: &Route) -> &[u32] {
        route.arcs(&self.arcs)
    }

    /// Sum of the loads beyond the capacities.
    pub fn overload(&self) -> f64 {
        let arcs = self.prices.arcs.iter();
        arcs.map(|priced| (priced.load - priced.capacity).max(0.0))
            .sum()
    }

    /// Visits a commodity to which the least distance is known; `path` writes a path of that length.
    pub fn visit<'p>(
        &mut self,
        commodity: usize,
        distance: f64,
        path: impl FnOnce() -> Option<&'p [u32]>,
    ) {
        let split = &self.splits[commodity];
        let mut least = f64::INFINITY;
        for route in &split.routes {
            self.steps += u64::from(route.len);
            least = least.min(length_of(route, &self.arcs, &self.prices.length));
        }
        let has_choice = !split.is_unsplit() || (least > split.worth && !split.routes.is_empty());
        let is_shorter = distance < least.min(split.worth) - self.penalty.least_saving;
        let new = if is_shorter { path() } else { None };
        if let Some(path) = new {
            self.add_route(commodity, path, 0.0);
        }
        if new.is_some() || has_choice {
            self.equilibrate(commodity);
        }
    }

    fn add_route(&mut self, commodity: usize, path: &[u32], rate: f64) {
        let start = self.arcs.len() as u32;
        self.arcs.extend_from_slice(path);
        self.splits[commodity].routes.push(Route {
            start,
            len: path.len() as u32,
            rate,
            length: 0.0,
        });
    }

    /// Moves rate to the shortest path of a commodity.
    fn equilibrate(&mut self, commodity: usize) {
        let mut split = std::mem::take(&mut self.splits[commodity]);
        let (mut least, mut to) = (split.worth, None);
        for (at, route) in split.routes.iter_mut().enumerate() {
            route.length = length_of(route, &self.arcs, &self.prices.length);
            self.steps += u64::from(route.len);
            if route.length < least {
                (least, to) = (route.length, Some(at));
            }
        }
        self.marks.now += 1;
        if let Some(at) = to {
            for &arc in split.routes[at].arcs(&self.arcs) {
                self.marks.to[arc as usize] = self.marks.now;
            }
        }
        let marked = self.marks.now;
        for from in 0..split.routes.len() {
            let Route { rate, length, .. } = split.routes[from];
            if Some(from) != to && rate > 0.0 && length > least {
                let step = self.shift(&split, (Some(from), to), rate, length - least, marked);
                split.routes[from].rate -= step;
                add_rate(&mut split, to, step);
            }
        }
        if split.unserved > 0.0 && to.is_some() {
            let step = self.shift(
                &split,
                (None, to),
                split.unserved,
                split.worth - least,
                marked,
            );
            split.unserved -= step;
            add_rate(&mut split, to, step);
        }
        let mut at = 0;
        split.routes.retain(|route| {
            at += 1;
            route.rate > 0.0 || Some(at - 1) == to
        });
        self.splits[commodity] = split;
    }

    /// Moves up to `rate` from a path to one that is shorter by `excess`, until that is made up for; returns how much.
    /// The arcs of the latter are `marked`.
    fn shift(
        &mut self,
        split: &Split,
        (from, to): (Option<usize>, Option<usize>),
        rate: f64,
        excess: f64,
        marked: u64,
    ) -> f64 {
        let arcs_of =
            |at: Option<usize>| at.map_or(&[][..], |at| split.routes[at].arcs(&self.arcs));
        let (from, to) = (arcs_of(from), arcs_of(to));
        let Self { prices, marks, .. } = self;
        marks.now += 1;
        let mut slope = 0.0;
        for arc in from.iter().map(|&arc| arc as usize) {
            marks.from[arc] = marks.now;
            if marks.to[arc] != marked {
                slope += prices.arcs[arc].slope(0.0);
            }
        }
        for arc in to.iter().map(|&arc| arc as usize) {
            if marks.from[arc] != marks.now {
                slope += prices.arcs[arc].slope(rate);
            }
        }
        let step = if excess < slope * rate {
            excess / slope
        } else {
            rate
        };
        for arc in from.iter().map(|&arc| arc as usize) {
            if marks.to[arc] != marked {
                prices.add(arc, -step);
            }
        }
        for arc in to.iter().map(|&arc| arc as usize) {
            if marks.from[arc] != marks.now {
                prices.add(arc, step);
            }
        }
        self.steps += 2 * (from.len() + to.len()) as u64;
        self.moved += step;
        step
    }

    /// Ends a sweep: further rounds over the commodities that have a choice, and the prices become multipliers.
    pub fn end_sweep(&mut self, is_first: bool) {
        for _ in 0..self.penalty.settling_rounds {
            for commodity in 0..self.splits.len() {
                if !self.splits[commodity].is_unsplit() {
                    self.equilibrate(commodity);
                }
            }
        }
        // Where all is still on its way into an empty network, prices say little.
        if !is_first {
            self.prices.follow(&self.penalty);
        }
    }

    /// Gives rates below a part of the request to the commodity's largest one.
    pub fn merge_small_rates(&mut self, commodity: usize, least: f64) {
        let split = &mut self.splits[commodity];
        split.routes.sort_by(|a, b| b.rate.total_cmp(&a.rate));
        let Some(first) = split.routes.first() else {
            return;
        };
        let is_served = first.rate >= split.unserved;
        let mut small_rates = 0.0;
        if is_served && split.unserved < least {
            small_rates += std::mem::take(&mut split.unserved);
        }
        let kept = split.routes.iter().filter(|route| route.rate >= least);
        let kept = kept.count().max(usize::from(is_served));
        for route in split.routes.drain(kept..) {
            small_rates += route.rate;
            for &arc in route.arcs(&self.arcs) {
                self.prices.arcs[arc as usize].load -= route.rate;
            }
        }
        if !is_served {
            split.unserved += small_rates;
            return;
        }
        split.routes[0].rate += small_rates;
        for &arc in split.routes[0].arcs(&self.arcs) {
            self.prices.arcs[arc as usize].load += small_rates;
        }
    }

    /// Serves so much less that no arc carries more than its capacity: first of the commodities that have several
    /// paths, for they are in the basis already.
    pub fn keep_within_capacity(&mut self) {
        let (split, whole): (Vec<usize>, Vec<usize>) =
            (0..self.splits.len()).partition(|&commodity| !self.splits[commodity].is_unsplit());
        for commodity in split.into_iter().chain(whole) {
            let split = &mut self.splits[commodity];
            for route in split.routes.iter_mut().rev() {
                let arcs = route.arcs(&self.arcs).iter().map(|&arc| arc as usize);
                let over = |arc: usize| self.prices.arcs[arc].load - self.prices.arcs[arc].capacity;
                let less = arcs.clone().map(over).fold(0.0, f64::max).min(route.rate);
                if less > 0.0 {
                    route.rate -= less;
                    split.unserved += less;
                    arcs.for_each(|arc| self.prices.arcs[arc].load -= less);
                }
            }
            split.routes.retain(|route| route.rate > 0.0);
        }
    }
}

fn length_of(route: &Route, arcs: &[u32], length: &[f64]) -> f64 {
    let arcs = route.arcs(arcs).iter();
    arcs.map(|&arc| length[arc as usize]).sum()
}

fn add_rate(split: &mut Split, to: Option<usize>, rate: f64) {
    match to {
        Some(at) => split.routes[at].rate += rate,
        None => split.unserved += rate,
    }
}
