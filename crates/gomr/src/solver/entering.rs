//! Which of some candidates enters the basis next.

use super::Solver;
use crate::lp::master::EnteringVariable;
use crate::objectives::max_min::rising;
use crate::pricing;

/// A column that may enter the basis, and what it gained when it was last looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EnteringCandidate {
    pub column: u32,
    pub gain: f64,
}

/// A variable that gains much, of slacks and `open` columns; by Bland's rule the first that gains. Columns
/// that do not gain are taken from `open`.
pub(crate) fn entering(
    solver: &mut Solver,
    open: &mut Vec<EnteringCandidate>,
    by_bland: bool,
) -> Option<(EnteringVariable, f64)> {
    if by_bland {
        return first_entering(solver, open);
    }
    let limit = pricing::gain_limit(solver);
    let mut best = best_slack(solver);
    let mut most = match best {
        Some((EnteringVariable::Slack(e), gain)) => limit
            .max(solver.settings.simplex.slack_weight * gain / solver.master.weights.of(e).sqrt()),
        _ => limit,
    };
    if let Some((enter, gain)) = rising::entering(solver, most) {
        (best, most) = (Some((enter, gain)), gain);
    }
    // Gains change little from pivot to pivot: the best of before is looked at first, and taken if it is
    // still as good as the others were.
    while let Some((at, second)) = two_largest(open, most) {
        let gain = gain_of(solver, open[at].column);
        open[at].gain = gain;
        if gain >= second && gain > most {
            return Some((EnteringVariable::Column(open[at].column), gain));
        }
    }
    // By now others may gain that did not before.
    best.or_else(|| best_column(solver, open, limit))
}

/// The column that gains most, each looked at again.
fn best_column(
    solver: &mut Solver,
    open: &mut Vec<EnteringCandidate>,
    limit: f64,
) -> Option<(EnteringVariable, f64)> {
    look_again(solver, open, limit);
    let top = open.iter().max_by(|a, b| a.gain.total_cmp(&b.gain))?;
    (top.gain > limit).then_some((EnteringVariable::Column(top.column), top.gain))
}

/// Takes those from `open` that do not gain; what is in the basis stays.
fn look_again(solver: &mut Solver, open: &mut Vec<EnteringCandidate>, limit: f64) {
    open.retain_mut(|candidate| {
        candidate.gain = gain_of(solver, candidate.column);
        candidate.gain > limit || candidate.gain == f64::NEG_INFINITY
    });
}

/// What a column gains; nothing at all while it is in the basis.
fn gain_of(solver: &mut Solver, column: u32) -> f64 {
    solver.master.work += 60;
    match solver.master.is_basic(column) {
        true => f64::NEG_INFINITY,
        false => solver.master.reduced_profit(column),
    }
}

/// The first variable that gains.
fn first_entering(
    solver: &mut Solver,
    open: &mut Vec<EnteringCandidate>,
) -> Option<(EnteringVariable, f64)> {
    let limit = pricing::gain_limit(solver);
    let slack = first_slack(solver);
    look_again(solver, open, limit);
    let gaining = open.iter().filter(|candidate| candidate.gain > limit);
    let first = gaining.min_by_key(|candidate| candidate.column);
    let column = first.map(|first| (EnteringVariable::Column(first.column), first.gain));
    slack.or_else(|| rising::entering(solver, limit)).or(column)
}

/// The slack that gains most for its Devex weight, and what a unit of it gains.
fn best_slack(solver: &Solver) -> Option<(EnteringVariable, f64)> {
    let limit = pricing::gain_limit(solver);
    let mut best = None;
    let mut most = 0.0;
    for &e in &solver.master.tight {
        let gain = -solver.master.price[e as usize];
        if gain <= limit {
            continue;
        }
        let squared = gain * gain / solver.master.weights.of(e);
        if squared > most {
            most = squared;
            best = Some((EnteringVariable::Slack(e), gain));
        }
    }
    best
}

/// The slack of the first arc with a price below zero.
fn first_slack(solver: &Solver) -> Option<(EnteringVariable, f64)> {
    let limit = pricing::gain_limit(solver);
    let gaining = solver.master.tight.iter().copied();
    let gaining = gaining.filter(|&e| -solver.master.price[e as usize] > limit);
    let first = gaining.min()?;
    Some((
        EnteringVariable::Slack(first),
        -solver.master.price[first as usize],
    ))
}

/// The place of the largest gain above `least`, the first of equal ones, and the largest of the others and `least`.
fn two_largest(open: &[EnteringCandidate], least: f64) -> Option<(usize, f64)> {
    let (mut first, mut second) = (None, least);
    let mut top = least;
    for (at, candidate) in open.iter().enumerate() {
        if candidate.gain > second {
            if candidate.gain > top {
                (first, second, top) = (Some(at), top, candidate.gain);
            } else {
                second = candidate.gain;
            }
        }
    }
    first.map(|at| (at, second))
}
