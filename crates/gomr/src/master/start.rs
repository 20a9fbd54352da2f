//! Where the simplex starts and what moves it on: other keys, an empty basis, perturbed bounds.

use super::{Group, Leave, Master, KEY};
use crate::graph::NONE;

impl Master {
    /// Makes the largest rate of each commodity its key, so that no small rate is the difference of
    /// two large ones.
    pub fn choose_largest_keys(&mut self) {
        for g in 0..self.groups.len() {
            if self
                .level
                .as_ref()
                .is_some_and(|level| level.group == g as u32)
            {
                continue;
            }
            let group = &self.groups[g];
            let mut largest = self.key_values[g].abs();
            let mut at = None;
            for &c in &group.working {
                let rate = self.rate(c).abs();
                if rate > 2.0 * largest {
                    largest = rate;
                    at = Some(self.columns[c as usize].place as usize);
                }
            }
            if let Some(p) = at {
                self.swap_key(g as u32, p);
            }
        }
    }

    /// Back to the basis where nothing is served.
    pub fn reset(&mut self) {
        for c in &mut self.columns {
            c.place = NONE;
        }
        for (g, key) in self.groups.iter_mut().zip(&mut self.keys) {
            g.key = g.unserved;
            *key = g.key;
            g.working.clear();
            self.columns[g.key as usize].place = KEY;
        }
        self.inverse.clear();
        self.working.clear();
        self.x.clear();
        self.tight.clear();
        self.tight_at.fill(NONE);
        self.restore_bounds();
        self.compute_prices();
        self.compute_values();
    }

    /// The usable path of a commodity with the largest rate, or the best one known.
    pub fn main_path(&self, group: &Group) -> u32 {
        let mut best = (f64::NEG_INFINITY, f64::NEG_INFINITY, NONE);
        for &c in group
            .columns
            .iter()
            .filter(|&&c| !self.columns[c as usize].banned)
        {
            let now = (self.rate(c), self.columns[c as usize].profit, c);
            if (now.0, now.1) > (best.0, best.1) && now.1 > 0.0 {
                best = now;
            }
        }
        best.2
    }

    /// Pushes basic variables that are zero slightly away from it and takes the bounds that this
    /// basis then meets, so that a run of pivots without progress ends.
    pub fn perturb(&mut self, size: f64) {
        self.perturbed = true;
        let mut seed = 0x9e37_79b9_7f4a_7c15u64 ^ self.pivots as u64;
        let mut push = |value: f64, own: f64| {
            let size = size * own;
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let unit = (seed >> 11) as f64 / (1u64 << 53) as f64;
            if value < size {
                value.max(0.0) + size * (0.5 + unit)
            } else {
                value
            }
        };
        for at in 0..self.x.len() {
            self.x[at] = push(self.x[at], self.size_of(Leave::Working(at)));
        }
        for at in 0..self.key_values.len() {
            let own = self.size_of(Leave::Key(at as u32));
            self.key_values[at] = push(self.key_values[at], own);
            self.groups[at].rhs = self.key_values[at];
        }
        for (i, &column) in self.working.iter().enumerate() {
            self.groups[self.columns[column as usize].group as usize].rhs += self.x[i];
        }
        self.lower_bounds(self.level_value());
        for e in 0..self.slack.len() {
            if self.tight_at[e] == NONE {
                self.slack[e] = push(self.slack[e], self.size_of(Leave::Slack(e as u32)));
            }
            self.rhs[e] = self.slack[e];
        }
        for column in 0..self.columns.len() as u32 {
            let rate = self.rate(column);
            if rate != 0.0 {
                let span = self.columns[column as usize].span;
                for (arc, load) in self.loads.entries(span) {
                    self.rhs[arc as usize] += rate * load;
                }
            }
        }
    }

    /// Lets failed arcs keep the capacity that they had before until bounds are restored; returns whether there are
    /// any.
    pub fn lend_capacity(&mut self) -> bool {
        for &(arc, capacity) in &self.lent {
            self.rhs[arc as usize] = capacity;
        }
        self.perturbed |= !self.lent.is_empty();
        !self.lent.is_empty()
    }

    /// Forgets what failed arcs had: nothing is routed over them any more.
    pub fn forget_loans(&mut self) {
        self.lent.clear();
    }

    /// Takes the true bounds again; returns whether they had been perturbed.
    pub fn restore_bounds(&mut self) -> bool {
        self.rhs.copy_from_slice(&self.capacity);
        for g in &mut self.groups {
            g.rhs = g.request;
        }
        std::mem::take(&mut self.perturbed)
    }
}
