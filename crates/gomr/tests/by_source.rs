//! Demands of one source routed together: the same optimum as commodity by commodity.
#![allow(missing_docs)]

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use common::{close, random_problem, Kind, Rng};
use gomr::{audit, max_concurrent, route_by_source, Engine, Objective, Problem};

fn without_limits(problem: &mut Problem) {
    for flow in &mut problem.flows {
        flow.fixed_paths = None;
        flow.ack_path = None;
        flow.max_delay_s = None;
    }
}

/// The problem with every pair of nodes asking for something, some for nothing.
fn all_pairs(mut problem: Problem, rng: &mut Rng) -> Problem {
    let most = problem
        .arcs
        .iter()
        .map(|arc| arc.capacity_bps)
        .fold(1.0, f64::max);
    problem.flows.clear();
    for source in 0..problem.nodes {
        for target in 0..problem.nodes {
            let rate_bps = rng.pick(&[0.0, 0.1, 0.5, 1.0]) * rng.unit() * most;
            problem
                .flows
                .push(gomr::Flow::new(source, target, rate_bps));
        }
    }
    problem
}

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
fn when_the_time_is_up_the_factor_lies_between_its_bounds() {
    let mut rng = Rng(9);
    let problem = all_pairs(random_problem(Kind::Ties, &mut rng), &mut rng);
    let whole = max_concurrent(&problem, 1.3, 1, None).unwrap().unwrap();
    for looks in [0, 1, 2, 5, 20] {
        let left = AtomicUsize::new(looks);
        let halt = move || {
            let one_less = |left: usize| left.checked_sub(1);
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
                .is_err()
        };
        let concurrent = max_concurrent(&problem, 1.3, 1, Some(Arc::new(halt))).unwrap();
        let concurrent = concurrent.unwrap();
        assert!(
            concurrent.factor <= whole.factor * (1.0 + 1e-9),
            "{looks} looks"
        );
        assert!(
            concurrent.upper_bound >= whole.factor * (1.0 - 1e-9),
            "{looks} looks"
        );
        assert!(looks > 0 || !concurrent.complete);
    }
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

#[test]
fn when_the_time_is_up_there_is_an_answer_within_the_limits() {
    let mut rng = Rng(8);
    for looks in [0, 1, 3, 10] {
        let problem = random_problem(Kind::Ties, &mut rng);
        let mut problem = all_pairs(problem, &mut rng);
        problem
            .flows
            .iter_mut()
            .for_each(|flow| flow.rate_bps *= 3.0);
        let left = Arc::new(std::sync::atomic::AtomicUsize::new(looks));
        let halt = move || {
            let step = |left: usize| left.checked_sub(1);
            let order = std::sync::atomic::Ordering::Relaxed;
            left.fetch_update(order, order, step).is_err()
        };
        let routed = route_by_source(&problem, 1, Some(Arc::new(halt)))
            .unwrap()
            .unwrap();
        let mut answer = routed.answer;
        answer.fit(&problem);
        let objective = Objective::MaxThroughputMinDelay;
        let audited = audit(&problem, &answer, objective, &routed.prices, &[]).unwrap();
        assert!(audited.max_violation_bps <= 1e-9 * audited.requested_bps);
        assert!(audited.value <= audited.upper_bound * (1.0 + 1e-9));
    }
}
