//! Every call, halted at any look: what is known then is within all limits and has a bound, and the next call goes on.
#![allow(missing_docs)]

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use common::{all_pairs, close, largest_bps, random_problem, without_limits, Kind, Rng, KINDS};
use gomr::{audit, max_concurrent, route_by_source, Engine, Error, HaltTest, Objective, Problem};

/// Looks after which calls are halted.
const LOOKS: [usize; 10] = [0, 1, 2, 3, 5, 8, 13, 21, 55, 200];

fn halt_after(looks: usize) -> Option<HaltTest> {
    let seen = AtomicUsize::new(0);
    Some(Arc::new(move || {
        seen.fetch_add(1, Ordering::Relaxed) >= looks
    }))
}

type Call = fn(&mut Engine) -> Result<(), Error>;

const CALLS: [Call; 5] = [
    |engine| engine.changes().map(|_| ()),
    |engine| engine.allocation().map(|_| ()),
    |engine| engine.path_rates().map(|_| ()),
    |engine| engine.prices().map(|_| ()),
    |engine| engine.minimum_reallocation(&[]).map(|_| ()),
];

#[test]
fn an_engine_has_rates_and_a_bound_and_the_next_solve_ends_at_the_optimum() {
    let mut midway = 0;
    for seed in 0..40 {
        let mut problem = random_problem(KINDS[seed as usize % KINDS.len()], &mut Rng(seed));
        problem.flows.retain(|flow| flow.source != flow.destination);
        for (name, objective) in Objective::ALL {
            let fresh = Engine::new(&problem, objective).expect("valid");
            let best = fresh.clone().solve().expect(name).certificate.value;
            for (looks, call) in LOOKS.into_iter().flat_map(|l| CALLS.map(|call| (l, call))) {
                let what = format!("seed {seed}, {name}, {looks} looks");
                let mut engine = fresh.clone();
                engine.set_halt(halt_after(looks));
                let stage = match call(&mut engine) {
                    Ok(()) => continue,
                    Err(Error::Halted { effort, stage }) => {
                        midway += usize::from(effort.pivots > 0);
                        stage
                    }
                    Err(other) => panic!("{what}: {other}"),
                };
                let known = engine.changes_so_far().expect(&what).summary.certificate;
                let noise = 1e-9 * largest_bps(&problem);
                // Rates that are not as fair as can be may have a larger sum.
                let most = match objective {
                    Objective::MaxMin => known.upper_bound,
                    _ => best.min(known.upper_bound),
                };
                assert!(known.value <= most * (1.0 + 1e-9) + noise, "{what}");
                let is_bound = known.upper_bound >= best * (1.0 - 1e-9);
                assert!(is_bound || objective == Objective::MaxMin, "{what}");
                if objective == Objective::MinMaxUtilisation && stage == "utilisation" {
                    assert!(close(known.value, best, 0.0), "{what}: of the first stage");
                }
                assert!(known.max_violation_bps <= noise, "{what}");
                engine.set_halt(None);
                let now = engine.solve().expect(&what).certificate;
                assert!(close(now.value, best, 0.0), "{what}: {now:?}, not {best}");
                assert!(now.gap <= 1e-9, "{what}: {now:?}");
            }
        }
    }
    assert!(midway > 0);
}

#[test]
fn a_factor_lies_between_its_bounds() {
    let mut rng = Rng(9);
    for case in 0..12 {
        let mut problem = random_problem([Kind::Ties, Kind::Acks][case % 2], &mut rng);
        without_limits(&mut problem);
        if case % 3 > 0 {
            problem = all_pairs(problem, &mut rng);
        }
        for load in [1.0, 1.3, 3.0] {
            let factor = |halt| max_concurrent(&problem, load, 1, halt).unwrap().unwrap();
            let most = factor(None).factor;
            let by_hops = most_by_hops(&problem, load);
            for looks in LOOKS {
                let what = format!("case {case}, load {load}, {looks} looks");
                let found = factor(halt_after(looks));
                assert!(found.factor <= most * (1.0 + 1e-9), "{what}: {found:?}");
                assert!(found.upper_bound >= most * (1.0 - 1e-9), "{what}");
                assert!(
                    found.upper_bound <= by_hops * (1.0 + 1e-9),
                    "{what}: {found:?}"
                );
            }
        }
    }
}

/// The factor at which the nearest demands that add up to a share of `1 / load` take all capacity on paths of fewest hops.
fn most_by_hops(problem: &Problem, load: f64) -> f64 {
    let mut hops = vec![vec![f64::INFINITY; problem.nodes]; problem.nodes];
    for (node, own) in hops.iter_mut().enumerate() {
        own[node] = 0.0;
        for _ in 0..problem.nodes {
            for arc in problem.arcs.iter().filter(|arc| arc.capacity_bps > 0.0) {
                own[arc.head] = own[arc.head].min(own[arc.tail] + 1.0);
            }
        }
    }
    let flows = problem.flows.iter().filter(|flow| flow.rate_bps > 0.0);
    let far = flows.map(|flow| (hops[flow.source][flow.destination], flow.rate_bps));
    let mut far: Vec<(f64, f64)> = far.filter(|&(hops, _)| hops > 0.0).collect();
    far.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut left_bps = far.iter().map(|(_, rate)| rate).sum::<f64>() / load;
    let mut taken = 0.0;
    for (hops, rate) in far {
        let rate_bps = rate.min(left_bps).max(0.0);
        if rate_bps > 0.0 {
            taken += rate_bps * hops;
        }
        left_bps -= rate_bps;
    }
    problem.arcs.iter().map(|arc| arc.capacity_bps).sum::<f64>() / taken
}

#[test]
fn a_matrix_has_paths_within_the_limits() {
    let mut rng = Rng(8);
    for looks in LOOKS {
        let mut problem = random_problem(Kind::Ties, &mut rng);
        problem = all_pairs(problem, &mut rng);
        let flows = problem.flows.iter_mut();
        flows.for_each(|flow| flow.rate_bps *= 3.0);
        let routed = route_by_source(&problem, 1, halt_after(looks)).unwrap();
        let mut routed = routed.expect("without limits");
        routed.answer.fit(&problem);
        let objective = Objective::MaxThroughputMinDelay;
        let audited = audit(&problem, &routed.answer, objective, &routed.prices, &[]).unwrap();
        assert!(audited.max_violation_bps <= 1e-9 * audited.requested_bps);
        assert!(audited.value <= audited.upper_bound * (1.0 + 1e-9));
    }
}
