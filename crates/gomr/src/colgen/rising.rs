//! Solves that raise many requests together as far as they fit.
//!
//! One column raises them ([`crate::master`]), and nothing else is worth anything. The basis is feasible all along,
//! so what is known at one level is where the search for the next begins.

use super::{Commodity, Solver, SMOOTHING};
use crate::graph::NONE;
use crate::master::Enter;
use crate::problem::Error;

/// What stopped the requests.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Risen {
    /// Units by which they rose.
    pub units: f64,
    /// Whether that is all they were to rise by.
    pub is_all: bool,
}

/// Rounds of the simplex, each from where the last one left the true bounds, before a level is given up.
const ROUNDS: usize = 4;

impl Solver {
    /// Prepares to raise requests from zero: every commodity that has a path gets one as its key.
    pub fn begin_rising(&mut self) {
        let spec = Commodity {
            source: 0,
            target: 0,
            value: 0.0,
            ack_ratio: 0.0,
            acks: Vec::new(),
            max_delay_s: None,
            fixed: true,
            class: 0,
        };
        let own = self.place_commodity(spec, 0.0);
        let groups = self.master.groups.iter();
        let main: Vec<u32> = groups.map(|g| self.master.main_path(g)).collect();
        for id in 0..self.master.groups.len() as u32 {
            self.master.set_request(id, 0.0);
        }
        self.master.reset();
        self.update_lengths();
        for (id, main) in main.into_iter().enumerate() {
            let start = if main == NONE {
                self.first_path(id as u32)
            } else {
                main
            };
            if start != NONE {
                self.master.set_key(start);
            }
        }
        self.ban_unserved(true);
        self.master.columns[self.master.groups[own as usize].unserved as usize].banned = false;
        self.master.add_level(own);
        self.master.compute_values();
        self.smoothing = SMOOTHING;
        self.last_prices.clear();
    }

    /// A path of a commodity of which none is known; `NONE` where there is none.
    fn first_path(&mut self, id: u32) -> u32 {
        let mut path = Vec::new();
        let may = self.master.groups[id as usize].active && !self.commodities[id as usize].fixed;
        if !may
            || self
                .best_path(id as usize, f64::INFINITY, &mut path)
                .is_none()
        {
            return NONE;
        }
        let column = self.add_path(id, &path);
        match self.master.columns[column as usize].banned {
            true => NONE,
            false => column,
        }
    }

    /// Ends what [`Solver::begin_rising`] began.
    pub fn end_rising(&mut self) {
        let Some(own) = self.master.level_group() else {
            return;
        };
        self.master.remove_level();
        self.master.set_request(own, 0.0);
        self.master.groups[own as usize].active = false;
        self.ban_unserved(false);
        self.accurate();
    }

    fn ban_unserved(&mut self, banned: bool) {
        for group in &self.master.groups {
            self.master.columns[group.unserved as usize].banned = banned;
        }
    }

    /// Whether a path of the commodity can carry something.
    pub fn has_path(&self, id: u32) -> bool {
        let group = &self.master.groups[id as usize];
        group.key != group.unserved
    }

    /// Raises the request of each commodity by `rise` a unit, as far as that fits but not beyond `most` units.
    ///
    /// # Errors
    /// [`Error::NotSolved`] when rounding defeats it.
    pub fn rise(&mut self, rise: &[f64], most: f64) -> Result<Risen, Error> {
        let value = rise.iter().map(|rise| rise.abs()).sum();
        self.bland_from = self.master.pivots + self.patience * self.size();
        self.master.set_level(rise.to_vec(), most, value);
        self.accurate();
        let column = self.master.level_column;
        self.improve(&[column])?;
        self.smoothing = SMOOTHING;
        for _ in 0..ROUNDS {
            if !self.master.is_level_full() {
                self.generate(u64::MAX)?;
            }
            if self.master.restore_bounds() {
                self.master.compute_values();
            }
            if self.accurate() && self.master.infeasibility() <= self.feasibility() {
                return Ok(Risen {
                    units: self.master.level_value().clamp(0.0, most),
                    is_all: self.master.is_level_full(),
                });
            }
        }
        Err(self.not_solved("the level does not settle"))
    }

    /// Gives the commodities these requests, and takes what raised them out of the basis.
    pub fn settle_requests(&mut self, requests: &[f64]) {
        self.master.drop_level();
        for (id, &request) in requests.iter().enumerate() {
            if self.master.groups[id].active {
                self.master.set_request(id as u32, request);
            }
        }
    }

    /// The column that raises requests, where it is worth entering.
    pub(super) fn level_entering(&self, limit: f64) -> Option<(Enter, f64)> {
        let column = self.master.level_column;
        if column == NONE || self.master.is_basic(column) {
            return None;
        }
        let gain = self.master.reduced_profit(column);
        (gain > limit).then_some((Enter::Column(column), gain))
    }
}
