//! Which of some candidates enters the basis next.

use super::Solver;
use crate::master::Enter;

/// What a slack's gain counts beside a column's: after each column several slacks gain, most of them until the next one
/// enters.
const SLACK_WORTH: f64 = 0.25;

/// A column that may enter the basis, and what it gained when it was last looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub column: u32,
    pub gain: f64,
}

impl Solver {
    /// A variable that gains much, of slacks and `open` columns; by Bland's rule the first that gains. Columns
    /// that do not gain are taken from `open`.
    pub(super) fn entering(
        &mut self,
        open: &mut Vec<Candidate>,
        by_bland: bool,
    ) -> Option<(Enter, f64)> {
        if by_bland {
            return self.first_entering(open);
        }
        let limit = self.gain_limit();
        let mut best = self.best_slack();
        let mut most = match best {
            Some((Enter::Slack(e), gain)) => {
                limit.max(SLACK_WORTH * gain / self.master.weights.of(e).sqrt())
            }
            _ => limit,
        };
        if let Some((enter, gain)) = self.level_entering(most) {
            (best, most) = (Some((enter, gain)), gain);
        }
        // Gains change little from pivot to pivot: the best of before is looked at first, and taken if it is
        // still as good as the others were.
        while let Some((at, second)) = two_largest(open, most) {
            let gain = self.gain_of(open[at].column);
            open[at].gain = gain;
            if gain >= second && gain > most {
                return Some((Enter::Column(open[at].column), gain));
            }
        }
        // By now others may gain that did not before.
        best.or_else(|| self.best_column(open, limit))
    }

    /// The column that gains most, each looked at again.
    fn best_column(&mut self, open: &mut Vec<Candidate>, limit: f64) -> Option<(Enter, f64)> {
        self.look_again(open, limit);
        let top = open.iter().max_by(|a, b| a.gain.total_cmp(&b.gain))?;
        (top.gain > limit).then_some((Enter::Column(top.column), top.gain))
    }

    /// Takes those from `open` that do not gain; what is in the basis stays.
    fn look_again(&mut self, open: &mut Vec<Candidate>, limit: f64) {
        open.retain_mut(|candidate| {
            candidate.gain = self.gain_of(candidate.column);
            candidate.gain > limit || candidate.gain == f64::NEG_INFINITY
        });
    }

    /// What a column gains; nothing at all while it is in the basis.
    fn gain_of(&mut self, column: u32) -> f64 {
        self.master.work += 60;
        match self.master.is_basic(column) {
            true => f64::NEG_INFINITY,
            false => self.master.reduced_profit(column),
        }
    }

    /// The first variable that gains.
    fn first_entering(&mut self, open: &mut Vec<Candidate>) -> Option<(Enter, f64)> {
        let limit = self.gain_limit();
        let slack = self.first_slack();
        self.look_again(open, limit);
        let gaining = open.iter().filter(|candidate| candidate.gain > limit);
        let first = gaining.min_by_key(|candidate| candidate.column);
        let column = first.map(|first| (Enter::Column(first.column), first.gain));
        slack.or_else(|| self.level_entering(limit)).or(column)
    }
}

/// The place of the largest gain above `least`, the first of equal ones, and the largest of the others and `least`.
fn two_largest(open: &[Candidate], least: f64) -> Option<(usize, f64)> {
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
