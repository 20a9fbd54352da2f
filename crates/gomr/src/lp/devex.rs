//! How far the other basic variables move when the slack of a saturated arc enters: its Devex weight.
//!
//! After a column enters, prices of many saturated arcs fall below zero. The one that is furthest below is seldom the
//! one that gains most for the distance moved (P. Harris, "Pivot selection methods of the Devex LP code", Math.
//! Programming 5, 1973). The row of each pivot is at hand on the saturated arcs, so their weights cost next to nothing;
//! columns, of which few are looked at, count 1.

use super::master::{EnteringVariable, LeavingVariable};

/// Squares of lengths, in the space of the variables that were out of the basis at the last reset.
#[derive(Clone, Debug, Default)]
pub(crate) struct DevexWeights {
    arcs: Vec<f64>,
}

impl DevexWeights {
    pub fn new(arcs: usize) -> Self {
        Self {
            arcs: vec![1.0; arcs],
        }
    }

    /// The weight of an arc's slack, at least 1.
    pub fn of(&self, arc: u32) -> f64 {
        self.arcs[arc as usize]
    }

    /// Measures from the present basis on.
    pub fn reset(&mut self) {
        self.arcs.fill(1.0);
    }

    /// Follows a pivot on the entry `alpha`; `row` is that of `leave` on the arcs that are saturated before it.
    pub fn follow(
        &mut self,
        enter: EnteringVariable,
        leave: LeavingVariable,
        alpha: f64,
        saturated: &[u32],
        row: &[f64],
    ) {
        let entering = match enter {
            EnteringVariable::Slack(arc) => self.of(arc),
            EnteringVariable::Column(_) => 1.0,
        };
        let ratio = entering / (alpha * alpha);
        for (&arc, &entry) in saturated.iter().zip(row) {
            let weight = &mut self.arcs[arc as usize];
            *weight = weight.max(entry * entry * ratio);
        }
        if let LeavingVariable::Slack(arc) = leave {
            self.arcs[arc as usize] = ratio.max(1.0);
        }
    }
}
