//! Primal simplex steps: a variable with a gain enters until another reaches its bound.

use crate::graph::NONE;
use crate::lp::master::{EnteringVariable, LeavingVariable, Master, MIN_PIVOT};
use crate::lp::{rise, sizes};

/// Lets `enter` into the basis; returns its value there, or `None` when no variable blocks it
/// (which a bounded problem shows only through rounding).
pub(crate) fn step(
    master: &mut Master,
    enter: EnteringVariable,
    gain: f64,
    tolerance: f64,
    by_bland: bool,
) -> Option<f64> {
    master.compute_direction(enter);
    let leave = match by_bland {
        true => first_blocking(master, tolerance)?,
        false => blocking(master, tolerance)?,
    };
    if rise::leaves_gap(master, enter, leave) {
        return None;
    }
    let alpha = master.pivot_entry(leave);
    let theta = (master.leaving_value(leave) / alpha).max(0.0);
    let mut rho = Vec::new();
    master.leaving_row(leave, &mut rho);
    master.pivot(enter, leave, theta, gain, &rho);
    Some(theta)
}

/// Harris' ratio test: of the variables that reach zero within the tolerance first, the one with
/// the largest pivot (P. Harris, Math. Programming 5, 1973).
pub(crate) fn blocking(master: &mut Master, tolerance: f64) -> Option<LeavingVariable> {
    let leeway = master.leeway * tolerance;
    let mut limit = f64::INFINITY;
    let mut falling = std::mem::take(&mut master.falling);
    falling.clear();
    each_decrease(master, |leave, value, alpha| {
        let until = value.max(0.0) + leeway * sizes::size_of(master, leave);
        // Those that were far behind when they came need no second look.
        if until < limit * alpha {
            limit = until / alpha;
        }
        if value <= limit * alpha {
            falling.push((leave, value, alpha));
        }
    });
    let mut best = None;
    let mut largest = 0.0;
    let mut is_preferred = false;
    for &(leave, value, alpha) in &falling {
        if value > limit * alpha {
            continue;
        }
        let prefers = match leave {
            LeavingVariable::Slack(arc) => master.preferred.get(arc as usize) == Some(&true),
            _ => false,
        };
        if (prefers, alpha) > (is_preferred, largest) {
            (is_preferred, largest) = (prefers, alpha);
            best = Some(leave);
        }
    }
    master.falling = falling;
    best
}

/// Bland's rule: of the variables that reach zero first, the one with the lowest number, slacks before columns
/// (R. Bland, Math. of Operations Research 2, 1977).
fn first_blocking(master: &Master, tolerance: f64) -> Option<LeavingVariable> {
    let mut limit = f64::INFINITY;
    each_decrease(master, |_, value, alpha| {
        limit = limit.min(value.max(0.0) / alpha)
    });
    let number = |leave: LeavingVariable| match leave {
        LeavingVariable::Slack(e) => (0, e),
        LeavingVariable::Key(g) => (1, master.keys[g as usize]),
        LeavingVariable::Working(p) => (1, master.working[p]),
    };
    let mut first = None;
    each_decrease(master, |leave, value, alpha| {
        let ties =
            value.max(0.0) / alpha <= limit + 1e-3 * tolerance * sizes::size_of(master, leave);
        if ties && first.map_or(true, |other| number(leave) < number(other)) {
            first = Some(leave);
        }
    });
    first
}

fn each_decrease(master: &Master, mut f: impl FnMut(LeavingVariable, f64, f64)) {
    let d = &master.direction;
    for (p, &alpha) in d.y.iter().enumerate() {
        if alpha > MIN_PIVOT {
            f(LeavingVariable::Working(p), master.x[p], alpha);
        }
    }
    for &g in &d.key.touched {
        let alpha = d.key.values[g as usize];
        if alpha > MIN_PIVOT {
            f(
                LeavingVariable::Key(g),
                master.key_values[g as usize],
                alpha,
            );
        }
    }
    for &e in &d.load.touched {
        let alpha = d.load.values[e as usize];
        if alpha > MIN_PIVOT && master.tight_at[e as usize] == NONE {
            f(LeavingVariable::Slack(e), master.slack[e as usize], alpha);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::random::{congested, Rng};
    use crate::{Engine, Objective};

    #[test]
    fn blands_rule_ends_at_the_same_optimum() {
        let problem = congested(14, 200, &mut Rng(2));
        for (name, objective) in Objective::ALL {
            let mut usual = Engine::new(&problem, objective).expect("valid");
            let mut by_bland = usual.clone();
            by_bland.solver.settings.simplex.patience = 0;
            let (one, other) = (usual.solve().expect(name), by_bland.solve().expect(name));
            let values = (one.certificate.value, other.certificate.value);
            assert!((values.0 - values.1).abs() < 1e-9 * values.0, "{name}");
            assert!(other.certificate.gap < 1e-9, "{name}");
        }
    }
}
