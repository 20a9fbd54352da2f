//! Demands of one source routed together: the same optimum as commodity by commodity.
#![allow(missing_docs)]

mod common;

use common::{all_pairs, close, random_problem, without_limits, Kind, Rng};
use gomr::{audit, max_concurrent, route_by_source, Engine, Objective, Problem};

#[test]
fn routes_as_commodity_by_commodity() {
    let mut rng = Rng(5);
    for case in 0..300 {
        let kind = [Kind::Ties, Kind::Acks, Kind::Wide][case % 3];
        let mut problem = random_problem(kind, &mut rng);
        without_limits(&mut problem);
        if case % 2 == 0 {
            problem = all_pairs(problem, &mut rng);
        }
        let objective = Objective::MaxThroughputMinDelay;
        let expected = Engine::new(&problem, objective).unwrap().solve().unwrap();
        let Some(routed) = route_by_source(&problem, 2, None).unwrap() else {
            assert!(kind == Kind::Wide, "case {case}");
            continue;
        };
        assert!(routed.complete);
        let audited = audit(&problem, &routed.answer, objective, &routed.prices, &[]).unwrap();
        let scale = 1e-3 * expected.requested_bps;
        assert!(
            close(audited.admitted_bps, expected.admitted_bps, scale),
            "case {case}: {} of {}",
            audited.admitted_bps,
            expected.admitted_bps
        );
        assert!(
            close(
                audited.cost_bps_s,
                expected.cost_bps_s,
                1e-3 * expected.cost_bps_s
            ),
            "case {case}: {} instead of {}",
            audited.cost_bps_s,
            expected.cost_bps_s
        );
        assert!(
            audited.upper_bound - audited.value <= 1e-9 * audited.upper_bound,
            "case {case}"
        );
        assert!(
            audited.max_violation_bps <= 1e-9 * expected.requested_bps.max(1.0),
            "case {case}"
        );
    }
}

/// Share that is admitted of all demands times a factor.
fn served(problem: &Problem, factor: f64) -> f64 {
    let mut scaled = problem.clone();
    let flows = scaled.flows.iter_mut();
    flows.for_each(|flow| flow.rate_bps *= factor);
    let objective = Objective::MaxThroughputMinDelay;
    let summary = Engine::new(&scaled, objective).unwrap().solve().unwrap();
    summary.admitted_bps / summary.requested_bps
}

#[test]
fn a_factor_fits_and_no_larger_one_does() {
    let mut rng = Rng(6);
    let mut between = 0;
    for case in 0..200 {
        let mut problem = random_problem([Kind::Ties, Kind::Acks][case % 2], &mut rng);
        without_limits(&mut problem);
        let concurrent = max_concurrent(&problem, 1.0, 1, None).unwrap().unwrap();
        assert!(concurrent.factor <= concurrent.upper_bound);
        if concurrent.factor == 0.0 {
            assert!(served(&problem, 1e-6) < 1.0 - 1e-9, "case {case}");
        } else if concurrent.factor.is_finite() {
            between += 1;
            assert!(
                close(concurrent.factor, concurrent.upper_bound, 0.0),
                "case {case}"
            );
            let within = served(&problem, concurrent.factor);
            assert!(
                within > 1.0 - 1e-9,
                "case {case}: {concurrent:?} {within} {problem:?}"
            );
            let beyond = served(&problem, 1.01 * concurrent.factor);
            assert!(
                beyond < 1.0 - 1e-9,
                "case {case}: {concurrent:?} {beyond} {problem:?}"
            );
        }
    }
    assert!(between > 50);
}

#[test]
fn a_factor_for_an_overload_has_that_load() {
    let mut rng = Rng(8);
    let (mut reached, mut unreachable) = (0, 0);
    for case in 0..200 {
        let mut problem = random_problem([Kind::Ties, Kind::Acks][case % 2], &mut rng);
        without_limits(&mut problem);
        if case % 3 == 0 {
            problem = all_pairs(problem, &mut rng);
        }
        let flows = &mut problem.flows;
        flows.retain(|flow| flow.source != flow.destination);
        let load = [1.05, 1.5, 3.0][case % 3];
        let concurrent = max_concurrent(&problem, load, 1, None).unwrap().unwrap();
        assert!(concurrent.complete && concurrent.factor <= concurrent.upper_bound);
        if concurrent.factor == 0.0 {
            unreachable += 1;
            assert!(served(&problem, 1e-6) < 1.0 / load, "case {case}");
        } else if concurrent.factor.is_finite() {
            reached += 1;
            assert!(
                close(concurrent.factor, concurrent.upper_bound, 0.0),
                "case {case}"
            );
            let share = served(&problem, concurrent.factor);
            assert!(
                close(share, 1.0 / load, 0.0),
                "case {case}: {share} at {load}"
            );
        }
    }
    assert!(reached > 50 && unreachable > 50, "{reached} {unreachable}");
}

#[test]
fn limits_on_paths_are_left_to_others() {
    let mut rng = Rng(7);
    let mut problem = random_problem(Kind::Ties, &mut rng);
    without_limits(&mut problem);
    problem.flows.push(gomr::Flow {
        max_delay_s: Some(1.0),
        ..gomr::Flow::new(0, 1, 1.0)
    });
    assert!(route_by_source(&problem, 1, None).unwrap().is_none());
    assert!(max_concurrent(&problem, 1.0, 1, None).unwrap().is_none());
}
