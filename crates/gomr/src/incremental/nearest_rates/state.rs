//! The basis of the search and what belongs to it: which variables and rows are where, and their values.

use super::pivot::Entering;
use crate::graph::NONE;
use crate::lp::inverse::Inverse;

/// A basis and what belongs to it.
#[derive(Clone, Debug, Default)]
pub(super) struct BasisState {
    pub inverse: Inverse,
    /// Variables of the working basis, by position, and their values.
    pub working: Vec<u32>,
    pub x: Vec<f64>,
    /// Position of each variable in the working basis, or `NONE`.
    pub place: Vec<u32>,
    /// Upper bound of each variable, and whether it is there.
    pub most: Vec<f64>,
    pub at_most: Vec<bool>,
    pub reduced: Vec<f64>,
    /// Rows at a bound, by position, and the position of each row, or `NONE`.
    pub tight: Vec<u32>,
    pub tight_at: Vec<u32>,
    pub row_at_most: Vec<bool>,
    /// Reduced cost of each row's activity.
    pub price: Vec<f64>,
    pub activity: Vec<f64>,
    /// Whether costs and values were solved for since the last pivot.
    pub settled: bool,
}

impl BasisState {
    /// A variable of the working basis goes to one of its bounds for the sake of what enters at a value.
    pub fn leave_variable(
        &mut self,
        p: usize,
        at_most: bool,
        enter: Entering,
        value: f64,
        direction: &[f64],
    ) {
        let out = self.working[p] as usize;
        self.place[out] = NONE;
        self.at_most[out] = at_most;
        match enter {
            Entering::Variable(v) => {
                self.inverse.replace_column(p, direction);
                self.working[p] = v;
                self.x[p] = value;
                self.place[v as usize] = p as u32;
                self.reduced[v as usize] = 0.0;
            }
            Entering::Row(t) => {
                self.inverse.remove(p, t, direction);
                self.working.swap_remove(p);
                self.x.swap_remove(p);
                if let Some(&moved) = self.working.get(p) {
                    self.place[moved as usize] = p as u32;
                }
                let row = self.tight.swap_remove(t);
                if let Some(&moved) = self.tight.get(t) {
                    self.tight_at[moved as usize] = t as u32;
                }
                self.free_row(row, value);
            }
        }
    }

    /// A row goes to one of its bounds. Given are how the working basis changes per unit of what enters, the row's entries
    /// there, and the change of the row itself.
    pub fn leave_row(
        &mut self,
        row: u32,
        at_most: bool,
        enter: Entering,
        value: f64,
        (direction, row_entries, schur): (&[f64], &[(usize, f64)], f64),
    ) {
        match enter {
            Entering::Variable(v) => {
                self.inverse.append(direction, row_entries, schur);
                self.place[v as usize] = self.working.len() as u32;
                self.reduced[v as usize] = 0.0;
                self.working.push(v);
                self.x.push(value);
                self.tight_at[row as usize] = self.tight.len() as u32;
                self.tight.push(row);
            }
            Entering::Row(t) => {
                self.inverse.replace_row(t, direction, row_entries, -schur);
                let freed = std::mem::replace(&mut self.tight[t], row);
                self.tight_at[row as usize] = t as u32;
                self.free_row(freed, value);
            }
        }
        self.row_at_most[row as usize] = at_most;
    }

    /// A row is not at a bound any more.
    fn free_row(&mut self, row: u32, activity: f64) {
        self.tight_at[row as usize] = NONE;
        self.price[row as usize] = 0.0;
        self.activity[row as usize] = activity;
    }
}
