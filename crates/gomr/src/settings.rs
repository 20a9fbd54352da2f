//! Every number that the column generation is run by, with what it bounds.
//!
//! Values without a source were chosen by `python -m benchmarks.gomr`, as those with the least work over its series.

/// Declares settings, each with what it bounds and the value that it has at first.
macro_rules! settings {
    ($(#[$about:meta])* $name:ident { $($(#[$bounds:meta])* $field:ident: $kind:ty = $value:expr,)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug)]
        pub(crate) struct $name {
            $($(#[$bounds])* pub $field: $kind,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $value,)* }
            }
        }
    };
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub simplex: SimplexSettings,
    pub pricing: PricingSettings,
    pub start: StartSettings,
    pub certificate: CertificateSettings,
}

settings! {
    /// The loop of pricing and pivots, and when it gives up.
    SimplexSettings {
        /// Reduced profit, in units of `M`, below which a path does not enter.
        least_gain: f64 = 1e-11,
        /// The same where delays do not count: what gains less hardly ever admits more, and the certificate shows where it does.
        least_gain_first_only: f64 = 0.1,
        /// The same while a level is searched at costs drawn at random: more than any path gains by its cost.
        least_gain_of_level: f64 = 1e-5,
        /// Weight of the first objective then, in its usual one.
        level_weight: f64 = 1e6,
        /// Most by which the costs drawn exceed the delays, in delays of the longest arc (perturbation of costs: A. Charnes, Econometrica 20, 1952).
        cost_spread: f64 = 0.5,
        /// Candidate columns among which each pivot chooses (partial pricing).
        window: usize = 256,
        /// What the gain of a slack counts beside that of a column: several slacks gain after each column, most of them until the next one enters.
        slack_weight: f64 = 0.25,
        /// Steps of work for each known path that the dual simplex may take before a restart.
        dual_work: u64 = 6000,
        /// Rounds of both simplexes, each from the true bounds, before a solve is given up.
        rounds: usize = 40,
        /// The same for one level of `max_min`.
        level_rounds: usize = 4,
        /// Rounds with a tolerance for each variable by its own size.
        strict_rounds: usize = 10,
        /// Size, in those of the largest, below which variables are alike after these rounds,
        finest_size: f64 = 1e-12,
        /// and what that is multiplied by in each further round.
        coarsening: f64 = 10.0,
        /// Tenths of the work of a solve from scratch after which the last basis is given up.
        hot_tenths: u64 = 2,
        /// The same where all requests changed at once: from matrix to matrix the last basis is mostly the quicker way.
        hot_tenths_of_series: u64 = 10,
        /// Solves from scratch whose work the climb to a level of `max_min` may take before levels are looked for from above,
        rise_solves: u64 = 100,
        /// and the same where links and demands are alike: there a solve from balanced rates takes a few pivots, and a climb
        /// hundreds of thousands.
        rise_solves_of_uniform: u64 = 4,
        /// Degenerate pivots, less the others, before bounds are perturbed (P. Wolfe, J. SIAM 11, 1963).
        stall: usize = 200,
        /// Pivots for each link and commodity before Bland's rule chooses (Math. of Operations Research 2, 1977),
        patience: usize = 100,
        /// and after which the solve is given up.
        most_pivots: usize = 1000,
    }
}

settings! {
    /// Which paths are looked for, and how many at a time.
    PricingSettings {
        /// Commodities for each arc that are a crowd: prices move little with each of them, so earlier prices weigh more.
        crowd_per_arc: usize = 16,
        /// Fewest candidates that end a pass,
        least_batch: usize = 16,
        /// the most that one waits for,
        most_batch: usize = 200,
        /// and the commodities for which it waits for one.
        commodities_per_candidate: usize = 600,
        /// Candidates taken from a block of origins: prices move with each pivot, and later ones lose their gain.
        most_taken: usize = 1000,
        /// The same in a crowd.
        most_taken_of_crowd: usize = 4000,
        /// Origins priced between two looks at the candidates.
        block: usize = 64,
        /// New commodities that are worth the trees of all origins.
        many_new: usize = 64,
        /// Nodes and commodities that are worth more than one thread.
        parallel_work: usize = 20_000,
        /// Weight of earlier prices in those that paths are looked for at (P. Wentges, Int. Trans. Operational Research 4, 1997),
        smoothing: f64 = 0.9,
        /// the same in a crowd,
        smoothing_of_crowd: f64 = 0.97,
        /// and the least, below which the present prices alone count.
        least_smoothing: f64 = 0.2,
        /// Fewest nodes for which paths are looked for over the priced arcs alone.
        priced_arc_nodes: usize = 200,
        /// Paths looked at there for each candidate that is wanted.
        looked_at: usize = 4,
        /// Commodities of an origin with a possible gain that are worth a tree,
        tree_members: usize = 2,
        /// and commodities that are worth one whatever they gain.
        crowded_origin: usize = 16,
        /// Loss, in units of `M`, above which paths are forgotten when there are many.
        kept_loss: f64 = 0.02,
    }
}

settings! {
    /// The first basis.
    StartSettings {
        /// Most that a path of the crash basis costs, in costs of the main path (and one longest arc).
        detour: f64 = 3.0,
        /// Share of its capacity left at which an arc is expected to get a price.
        narrow: f64 = 0.05,
        /// Fewest commodities whose rates are balanced first, since below a solve takes no longer without,
        least_balanced: usize = 1000,
        /// or fewest arcs, where these are alike.
        regular_arcs: usize = 500,
        /// Nodes for each arc overloaded by shortest paths up to which rates are balanced first,
        congested_nodes: usize = 4,
        /// and arcs for each node from which on: elsewhere the detours around priced arcs are found faster.
        meshed_arcs: usize = 3,
        /// Pivots for each link and commodity after which rates are balanced all the same,
        late_pivots: usize = 3,
        /// where no larger share of the requests is unserved.
        most_unserved: f64 = 0.25,
        /// Most sweeps over all commodities.
        most_sweeps: usize = 200,
        /// First sweeps that look for new paths,
        tree_sweeps: usize = 6,
        /// the same from a known optimum,
        tree_sweeps_again: usize = 3,
        /// and the period of later ones: trees take most of a sweep.
        tree_sweep_period: usize = 4,
        /// Mean requests moved in a sweep below which sweeps end,
        most_moved: f64 = 50.0,
        /// where arcs are overloaded by no more mean requests than this.
        most_overload: f64 = 1.0,
        /// From a known optimum they end as well after that many sweeps
        stuck_sweeps: usize = 12,
        /// in which the overload did not fall below this share of its least,
        progress: f64 = 0.8,
        /// or where they took one in this many parts of the first solve's work.
        work_part: u64 = 3,
        /// Steps of work for each arc of a path that is looked at,
        step_work: u64 = 5,
        /// and for each node of a tree.
        node_work: usize = 30,
        /// Share of a request below which a path gets nothing of its own.
        least_split: f64 = 0.01,
    }
}

settings! {
    /// What counts as proven.
    CertificateSettings {
        /// Relative gap above which `M` is raised.
        gap: f64 = 1e-10,
        /// Share that each arc and commodity may add to it where capacities differ much,
        each: f64 = 1e-9,
        /// in this many attempts.
        strict_attempts: usize = 16,
        /// Factor of the least gain where the first objective is not proven.
        finer: f64 = 0.01,
        /// Relative excess of the prices of a certificate: rounding of a distance must not count as a surplus.
        price_excess: f64 = 1e-13,
    }
}
