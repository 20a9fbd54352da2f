//! Where the simplex starts and what moves it on: other keys, an empty basis, perturbed bounds.

use super::inverse::Inverse;
use super::master::{Group, LeavingVariable, Master, KEY};
use crate::graph::NONE;
use crate::lp::{rise, sizes};

/// Makes the largest rate of each commodity its key, so that no small rate is the difference of
/// two large ones.
pub(crate) fn choose_largest_keys(master: &mut Master) {
    for g in 0..master.groups.len() {
        if master
            .rise
            .as_ref()
            .is_some_and(|level| level.group == g as u32)
        {
            continue;
        }
        let group = &master.groups[g];
        let mut largest = master.key_values[g].abs();
        let mut at = None;
        for &c in &group.working {
            let rate = master.rate(c).abs();
            if rate > 2.0 * largest {
                largest = rate;
                at = Some(master.columns[c as usize].place as usize);
            }
        }
        if let Some(p) = at {
            master.swap_key(g as u32, p);
        }
    }
}

/// Back to the basis where nothing is served.
pub(crate) fn reset(master: &mut Master) {
    for c in &mut master.columns {
        c.place = NONE;
    }
    for (g, key) in master.groups.iter_mut().zip(&mut master.keys) {
        g.key = g.unserved;
        *key = g.key;
        g.working.clear();
        master.columns[g.key as usize].place = KEY;
    }
    master.inverse = Inverse::default();
    master.working.clear();
    master.x.clear();
    master.tight.clear();
    master.tight_at.fill(NONE);
    restore_bounds(master);
    master.compute_prices();
    master.compute_values();
}

/// The usable path of a commodity with the largest rate, or the best one known.
pub(crate) fn main_path(master: &Master, group: &Group) -> u32 {
    let mut best = (f64::NEG_INFINITY, f64::NEG_INFINITY, NONE);
    for &c in group
        .columns
        .iter()
        .filter(|&&c| !master.columns[c as usize].banned)
    {
        let now = (master.rate(c), master.columns[c as usize].profit, c);
        if (now.0, now.1) > (best.0, best.1) && now.1 > 0.0 {
            best = now;
        }
    }
    best.2
}

/// Pushes basic variables that are zero slightly away from it and takes the bounds that this
/// basis then meets, so that a run of pivots without progress ends.
pub(crate) fn perturb(master: &mut Master, size: f64) {
    master.perturbed = true;
    let mut seed = 0x9e37_79b9_7f4a_7c15u64 ^ master.pivots as u64;
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
    for at in 0..master.x.len() {
        master.x[at] = push(
            master.x[at],
            sizes::size_of(master, LeavingVariable::Working(at)),
        );
    }
    for at in 0..master.key_values.len() {
        let own = sizes::size_of(master, LeavingVariable::Key(at as u32));
        master.key_values[at] = push(master.key_values[at], own);
        master.groups[at].rhs = master.key_values[at];
    }
    for (i, &column) in master.working.iter().enumerate() {
        master.groups[master.columns[column as usize].group as usize].rhs += master.x[i];
    }
    rise::lower_bounds(master, rise::value(master));
    for e in 0..master.slack.len() {
        if master.tight_at[e] == NONE {
            master.slack[e] = push(
                master.slack[e],
                sizes::size_of(master, LeavingVariable::Slack(e as u32)),
            );
        }
        master.rhs[e] = master.slack[e];
    }
    for column in 0..master.columns.len() as u32 {
        let rate = master.rate(column);
        if rate != 0.0 {
            let span = master.columns[column as usize].span;
            for (arc, load) in master.loads.entries(span) {
                master.rhs[arc as usize] += rate * load;
            }
        }
    }
}

/// Lets failed arcs keep the capacity that they had before until bounds are restored; returns whether there are
/// any.
pub(crate) fn keep_failed_capacity(master: &mut Master) -> bool {
    for &(arc, capacity) in &master.failed {
        master.rhs[arc as usize] = capacity;
    }
    master.perturbed |= !master.failed.is_empty();
    !master.failed.is_empty()
}

/// Forgets what failed arcs had: nothing is routed over them any more.
pub(crate) fn forget_failed(master: &mut Master) {
    master.failed.clear();
}

/// Takes the true bounds again; returns whether they had been perturbed.
pub(crate) fn restore_bounds(master: &mut Master) -> bool {
    master.rhs.copy_from_slice(&master.capacity);
    for g in &mut master.groups {
        g.rhs = g.request;
    }
    std::mem::take(&mut master.perturbed)
}
