//! Every number that the column generation is run by, with what it bounds.
//!
//! Values without a source were chosen by `python -m benchmarks.gomr`, as those with the least work over its series.

/// All of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub simplex: SimplexSettings,
    pub pricing: PricingSettings,
    pub start: StartSettings,
    pub certificate: CertificateSettings,
}

/// The loop of pricing and pivots, and when it gives up.
#[derive(Clone, Debug)]
pub(crate) struct SimplexSettings {
    /// Reduced profit, in units of `M`, below which a path does not enter.
    pub least_gain: f64,
    /// The same where delays do not count: what gains less hardly ever admits more, and the certificate shows where it does.
    pub least_gain_first_only: f64,
    /// The same while a level is searched at costs drawn at random: more than any path gains by its cost.
    pub least_gain_of_level: f64,
    /// Weight of the first objective then, in its usual one.
    pub level_weight: f64,
    /// Most by which the costs drawn exceed the delays, in delays of the longest arc (perturbation of costs: A. Charnes, Econometrica 20, 1952).
    pub cost_spread: f64,
    /// Candidate columns among which each pivot chooses (partial pricing).
    pub window: usize,
    /// What the gain of a slack counts beside that of a column: several slacks gain after each column, most of them until the next one enters.
    pub slack_weight: f64,
    /// Steps of work for each known path that the dual simplex may take before a restart.
    pub dual_work: u64,
    /// Rounds of both simplexes, each from the true bounds, before a solve is given up.
    pub rounds: usize,
    /// The same for one level of `max_min`.
    pub level_rounds: usize,
    /// Rounds with a tolerance for each variable by its own size.
    pub strict_rounds: usize,
    /// Size, in those of the largest, below which variables are alike after these rounds,
    pub finest_size: f64,
    /// and what that is multiplied by in each further round.
    pub coarsening: f64,
    /// Tenths of the work of a solve from scratch after which the last basis is given up.
    pub hot_tenths: u64,
    /// The same where all requests changed at once: from matrix to matrix the last basis is mostly the quicker way.
    pub hot_tenths_of_series: u64,
    /// Degenerate pivots, less the others, before bounds are perturbed (P. Wolfe, J. SIAM 11, 1963).
    pub stall: usize,
    /// Pivots for each link and commodity before Bland's rule chooses (Math. of Operations Research 2, 1977),
    pub patience: usize,
    /// and after which the solve is given up.
    pub most_pivots: usize,
}

impl Default for SimplexSettings {
    fn default() -> Self {
        Self {
            least_gain: 1e-11,
            least_gain_first_only: 0.1,
            least_gain_of_level: 1e-5,
            level_weight: 1e6,
            cost_spread: 0.5,
            window: 256,
            slack_weight: 0.25,
            dual_work: 6000,
            rounds: 40,
            level_rounds: 4,
            strict_rounds: 10,
            finest_size: 1e-12,
            coarsening: 10.0,
            hot_tenths: 2,
            hot_tenths_of_series: 10,
            stall: 200,
            patience: 100,
            most_pivots: 1000,
        }
    }
}

/// Which paths are looked for, and how many at a time.
#[derive(Clone, Debug)]
pub(crate) struct PricingSettings {
    /// Commodities for each arc that are a crowd: prices move little with each of them, so earlier prices weigh more.
    pub crowd_per_arc: usize,
    /// Fewest candidates that end a pass,
    pub least_batch: usize,
    /// the most that one waits for,
    pub most_batch: usize,
    /// and the commodities for which it waits for one.
    pub commodities_per_candidate: usize,
    /// Candidates taken from a block of origins: prices move with each pivot, and later ones lose their gain.
    pub most_taken: usize,
    /// The same in a crowd.
    pub most_taken_of_crowd: usize,
    /// Origins priced between two looks at the candidates.
    pub block: usize,
    /// New commodities that are worth the trees of all origins.
    pub many_new: usize,
    /// Nodes and commodities that are worth more than one thread.
    pub parallel_work: usize,
    /// Weight of earlier prices in those that paths are looked for at (P. Wentges, Int. Trans. Operational Research 4, 1997),
    pub smoothing: f64,
    /// the same in a crowd,
    pub smoothing_of_crowd: f64,
    /// and the least, below which the present prices alone count.
    pub least_smoothing: f64,
    /// Fewest nodes for which paths are looked for over the priced arcs alone.
    pub priced_arc_nodes: usize,
    /// Paths looked at there for each candidate that is wanted.
    pub looked_at: usize,
    /// Commodities of an origin with a possible gain that are worth a tree,
    pub tree_members: usize,
    /// and commodities that are worth one whatever they gain.
    pub crowded_origin: usize,
    /// Loss, in units of `M`, above which paths are forgotten when there are many.
    pub kept_loss: f64,
}

impl Default for PricingSettings {
    fn default() -> Self {
        Self {
            crowd_per_arc: 16,
            least_batch: 16,
            most_batch: 200,
            commodities_per_candidate: 600,
            most_taken: 1000,
            most_taken_of_crowd: 4000,
            block: 64,
            many_new: 64,
            parallel_work: 20_000,
            smoothing: 0.9,
            smoothing_of_crowd: 0.97,
            least_smoothing: 0.2,
            priced_arc_nodes: 200,
            looked_at: 4,
            tree_members: 2,
            crowded_origin: 16,
            kept_loss: 0.02,
        }
    }
}

/// The first basis.
#[derive(Clone, Debug)]
pub(crate) struct StartSettings {
    /// Most that a path of the crash basis costs, in costs of the main path (and one longest arc).
    pub detour: f64,
    /// Share of its capacity left at which an arc is expected to get a price.
    pub narrow: f64,
    /// Fewest commodities whose rates are balanced first, since below a solve takes no longer without,
    pub least_balanced: usize,
    /// or fewest arcs, where these are alike.
    pub regular_arcs: usize,
    /// Nodes for each arc overloaded by shortest paths up to which rates are balanced first,
    pub congested_nodes: usize,
    /// and arcs for each node from which on: elsewhere the detours around priced arcs are found faster.
    pub meshed_arcs: usize,
    /// Pivots for each link and commodity after which rates are balanced all the same,
    pub late_pivots: usize,
    /// where no larger share of the requests is unserved.
    pub most_unserved: f64,
    /// Most sweeps over all commodities.
    pub most_sweeps: usize,
    /// First sweeps that look for new paths,
    pub tree_sweeps: usize,
    /// the same from a known optimum,
    pub tree_sweeps_again: usize,
    /// and the period of later ones: trees take most of a sweep.
    pub tree_sweep_period: usize,
    /// Mean requests moved in a sweep below which sweeps end,
    pub most_moved: f64,
    /// where arcs are overloaded by no more mean requests than this.
    pub most_overload: f64,
    /// From a known optimum they end as well after that many sweeps
    pub stuck_sweeps: usize,
    /// in which the overload did not fall below this share of its least,
    pub progress: f64,
    /// or where they took one in this many parts of the first solve's work.
    pub work_part: u64,
    /// Steps of work for each arc of a path that is looked at,
    pub step_work: u64,
    /// and for each node of a tree.
    pub node_work: usize,
    /// Share of a request below which a path gets nothing of its own.
    pub least_split: f64,
}

impl Default for StartSettings {
    fn default() -> Self {
        Self {
            detour: 3.0,
            narrow: 0.05,
            least_balanced: 1000,
            regular_arcs: 500,
            congested_nodes: 4,
            meshed_arcs: 3,
            late_pivots: 3,
            most_unserved: 0.25,
            most_sweeps: 200,
            tree_sweeps: 6,
            tree_sweeps_again: 3,
            tree_sweep_period: 4,
            most_moved: 50.0,
            most_overload: 1.0,
            stuck_sweeps: 12,
            progress: 0.8,
            work_part: 3,
            step_work: 5,
            node_work: 30,
            least_split: 0.01,
        }
    }
}

/// What counts as proven.
#[derive(Clone, Debug)]
pub(crate) struct CertificateSettings {
    /// Relative gap above which `M` is raised.
    pub gap: f64,
    /// Share that each arc and commodity may add to it where capacities differ much,
    pub each: f64,
    /// in this many attempts.
    pub strict_attempts: usize,
    /// Factor of the least gain where the first objective is not proven.
    pub finer: f64,
    /// Relative excess of the prices of a certificate: rounding of a distance must not count as a surplus.
    pub price_excess: f64,
}

impl Default for CertificateSettings {
    fn default() -> Self {
        Self {
            gap: 1e-10,
            each: 1e-9,
            strict_attempts: 16,
            finer: 0.01,
            price_excess: 1e-13,
        }
    }
}
