//! What counts as rounding for each variable, where capacities are of very different sizes.
//!
//! Elsewhere one tolerance serves all. Beside a link of a million times its capacity, what is rounding for that one
//! is a good part of all that a link carries.

use super::master::{LeavingVariable, Master};

/// Part of the scale of all rates below which a capacity needs a tolerance of its own.
const UNEVEN: f64 = 1e-4;
/// Least size of a variable, beside the scale.
const MIN_SIZE: f64 = 1e-15;

/// Sizes of variables beside the scale of all rates, from `MIN_SIZE` to 1.
#[derive(Clone, Debug, Default)]
pub(crate) struct VariableSizes {
    arcs: Vec<f64>,
    groups: Vec<f64>,
    columns: Vec<f64>,
}

/// Measures all variables, where capacities differ so much that it matters; what is below `least` counts as much.
pub(crate) fn measure(master: &mut Master, least: f64) {
    master.sizes = None;
    let scale = master.scale;
    let open = master.capacity.iter().copied().filter(|&bps| bps > 0.0);
    if open.fold(f64::INFINITY, f64::min) >= UNEVEN * scale {
        return;
    }
    let size = |bps: f64| match bps > 0.0 {
        true => (bps / scale).clamp(least.max(MIN_SIZE), 1.0),
        false => 1.0,
    };
    master.sizes = Some(VariableSizes {
        arcs: master.capacity.iter().map(|&bps| size(bps)).collect(),
        groups: master.groups.iter().map(|g| size(g.request)).collect(),
        columns: Vec::new(),
    });
    measure_columns(master);
}

/// Whether capacities differ so much that variables have tolerances of their own.
pub(crate) fn is_uneven(master: &Master) -> bool {
    master.sizes.is_some()
}

/// Measures the columns that came since the last call.
pub(crate) fn measure_columns(master: &mut Master) {
    let Some(mut sizes) = master.sizes.take() else {
        return;
    };
    for column in sizes.columns.len() as u32..master.columns.len() as u32 {
        let group = master.columns[column as usize].group as usize;
        let request = sizes.groups.get(group).copied().unwrap_or(1.0);
        let widths = master.entries(column).map(|(arc, load)| match load > 0.0 {
            true => sizes.arcs[arc as usize] / load,
            false => 1.0,
        });
        sizes.columns.push(widths.fold(request, f64::min));
    }
    master.sizes = Some(sizes);
}

/// Measures the columns again, after they got other numbers.
pub(crate) fn measure_columns_again(master: &mut Master) {
    if let Some(sizes) = &mut master.sizes {
        sizes.columns.clear();
        measure_columns(master);
    }
}

/// Size of a variable beside the scale of all rates: its tolerance is that part of the largest.
#[inline]
pub(crate) fn size_of(master: &Master, variable: LeavingVariable) -> f64 {
    let Some(sizes) = &master.sizes else {
        return 1.0;
    };
    match variable {
        LeavingVariable::Slack(arc) => sizes.arcs[arc as usize],
        LeavingVariable::Key(group) => sizes.columns[master.keys[group as usize] as usize],
        LeavingVariable::Working(place) => sizes.columns[master.working[place] as usize],
    }
}
