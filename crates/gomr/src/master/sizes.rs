//! What counts as rounding for each variable, where capacities are of very different sizes.
//!
//! Elsewhere one tolerance serves all. Beside a link of a million times its capacity, what is rounding for that one
//! is a good part of all that a link carries.

use super::{Leave, Master};

/// Part of the scale of all rates below which a capacity needs a tolerance of its own.
const UNEVEN: f64 = 1e-4;
/// Least size of a variable, beside the scale.
const LEAST: f64 = 1e-15;

/// Sizes of variables beside the scale of all rates, from `LEAST` to 1.
#[derive(Clone, Debug, Default)]
pub(super) struct Sizes {
    arcs: Vec<f64>,
    groups: Vec<f64>,
    columns: Vec<f64>,
}

impl Master {
    /// Measures all variables, where capacities differ so much that it matters; what is below `least` counts as much.
    pub fn measure_sizes(&mut self, least: f64) {
        self.sizes = None;
        let scale = self.scale;
        let open = self.capacity.iter().copied().filter(|&bps| bps > 0.0);
        if open.fold(f64::INFINITY, f64::min) >= UNEVEN * scale {
            return;
        }
        let size = |bps: f64| match bps > 0.0 {
            true => (bps / scale).clamp(least.max(LEAST), 1.0),
            false => 1.0,
        };
        self.sizes = Some(Sizes {
            arcs: self.capacity.iter().map(|&bps| size(bps)).collect(),
            groups: self.groups.iter().map(|g| size(g.request)).collect(),
            columns: Vec::new(),
        });
        self.measure_columns();
    }

    /// Whether capacities differ so much that variables have tolerances of their own.
    pub fn is_uneven(&self) -> bool {
        self.sizes.is_some()
    }

    /// Measures the columns that came since the last call.
    pub(super) fn measure_columns(&mut self) {
        let Some(mut sizes) = self.sizes.take() else {
            return;
        };
        for column in sizes.columns.len() as u32..self.columns.len() as u32 {
            let group = self.columns[column as usize].group as usize;
            let request = sizes.groups.get(group).copied().unwrap_or(1.0);
            let widths = self.entries(column).map(|(arc, load)| match load > 0.0 {
                true => sizes.arcs[arc as usize] / load,
                false => 1.0,
            });
            sizes.columns.push(widths.fold(request, f64::min));
        }
        self.sizes = Some(sizes);
    }

    /// Measures the columns again, after they got other numbers.
    pub(super) fn measure_columns_again(&mut self) {
        if let Some(sizes) = &mut self.sizes {
            sizes.columns.clear();
            self.measure_columns();
        }
    }

    /// Size of a variable beside the scale of all rates: its tolerance is that part of the largest.
    #[inline]
    pub fn size_of(&self, variable: Leave) -> f64 {
        let Some(sizes) = &self.sizes else { return 1.0 };
        match variable {
            Leave::Slack(arc) => sizes.arcs[arc as usize],
            Leave::Key(group) => sizes.columns[self.keys[group as usize] as usize],
            Leave::Working(place) => sizes.columns[self.working[place] as usize],
        }
    }
}
