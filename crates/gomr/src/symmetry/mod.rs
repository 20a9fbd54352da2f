//! Networks that look alike from many nodes: a programme over classes of arcs and demands.
//!
//! The arc-flow programme by source has a variable for each source and arc. Where its rows and variables fall into classes
//! such that each row of a class meets equally many variables of each class (an equitable partition), the mean over
//! the classes of any solution is a solution as good: one variable for each class is enough (M. Grohe, K. Kersting,
//! M. Mladenov and E. Selman, "Dimension reduction via colour refinement", ESA 2014; R. Bödi, K. Herr and M. Joswig,
//! Mathematical Programming 137, 2013). [`partition`] finds the coarsest one, [`reduced`] solves for one demand of each
//! class, and [`lift`] gives the answer to all. The auditor checks it there, so that no answer depends on this theory.

mod lift;
mod partition;
mod reduced;

use crate::by_source::ConcurrentFlow;
use crate::certificate::audit::{audit, Cut, PathRates};
use crate::halt::{Halt, HaltTest};
use crate::objectives::concurrent::largest_factor_of;
use crate::objectives::Objective;
use crate::problem::{Error, Problem};
use partition::Partition;
use reduced::ReducedProblem;

/// Gap, and excess over the largest capacity, above which an answer is not this one.
const MAX_GAP: f64 = 1e-9;

/// An optimum with what proves it.
#[derive(Clone, Debug)]
pub struct Symmetric {
    /// The paths of each flow: those of a source's flows together are at most as many as these and the arcs.
    pub answer: PathRates,
    /// Price of each arc for the first objective.
    pub prices: Vec<f64>,
    /// Under `max_min`, what stopped the flows.
    pub cuts: Vec<Cut>,
}

/// Solves a problem whose demands and arcs fall into few classes; `None` where they do not, where flows have limits on
/// their paths or load arcs with acknowledgements, when the time is up, or where the auditor does not confirm the answer.
///
/// # Errors
/// [`Error::Invalid`].
pub fn solve_by_symmetry(
    problem: &Problem,
    objective: Objective,
    halt: Option<HaltTest>,
) -> Result<Option<Symmetric>, Error> {
    problem.validate()?;
    Ok(solve(problem, objective, Halt(halt)))
}

fn solve(problem: &Problem, objective: Objective, halt: Halt) -> Option<Symmetric> {
    let partition = Partition::new(problem)?;
    let mut reduced = ReducedProblem::new(problem, &partition, objective, halt)?;
    reduced.engine.solve().ok()?;
    let (prices, cuts) = reduced.engine.prices_so_far();
    let of_arcs = |of_classes: &[f64]| partition.of_arcs(of_classes);
    let lifted = Symmetric {
        answer: lift::lift(problem, &partition, &reduced)?,
        prices: of_arcs(&prices),
        cuts: cuts
            .iter()
            .map(|cut| Cut {
                prices: of_arcs(&cut.prices),
                stopped: reduced.members_of(&cut.stopped),
            })
            .collect(),
    };
    let Symmetric {
        answer,
        prices,
        cuts,
    } = &lifted;
    let audited = audit(problem, answer, objective, prices, cuts).ok()?;
    let largest = problem.arcs.iter().map(|arc| arc.capacity_bps);
    let is_within = audited.max_violation_bps <= MAX_GAP * largest.fold(0.0, f64::max);
    let is_optimal = audited.value >= audited.upper_bound * (1.0 - MAX_GAP);
    (is_within && is_optimal).then_some(lifted)
}

/// Returns the largest factor by which all demands can be multiplied so that they fit ([`crate::max_concurrent`]); `None` as
/// for [`solve_by_symmetry`].
///
/// # Errors
/// [`Error::Invalid`].
pub fn max_concurrent_by_symmetry(
    problem: &Problem,
    halt: Option<HaltTest>,
) -> Result<Option<ConcurrentFlow>, Error> {
    problem.validate()?;
    let objective = Objective::MaxThroughputMinDelay;
    let found = Partition::new(problem).and_then(|partition| {
        let mut reduced = ReducedProblem::new(problem, &partition, objective, Halt(halt))?;
        largest_factor_of(reduced.solver(), u64::MAX)
    });
    Ok(found.filter(|found| found.complete))
}
