//! The objectives of several stages, each against a property that defines it.
#![allow(missing_docs)]

mod common;

use common::{
    allowed_paths, brute_force, cases, check_feasible, loads_of, random_problem, Kind, Rng, Tableau,
};
use gomr::{Engine, Flow, Objective, Problem};

fn rates(problem: &Problem, objective: Objective, what: &str) -> (Vec<f64>, gomr::Summary) {
    let mut engine = Engine::new(problem, objective).expect("valid");
    let got = engine
        .allocation()
        .unwrap_or_else(|e| panic!("{what}: {e}"));
    check_feasible(problem, &got, what);
    (got.flows.iter().map(|f| f.rate_bps).collect(), got.summary)
}

/// How much flow `i` could gain while `keep` hold their rates.
fn possible_gain(problem: &Problem, rates: &[f64], i: usize, keep: &[usize]) -> f64 {
    let mut b: Vec<f64> = problem.arcs.iter().map(|a| a.capacity_bps).collect();
    let mut columns: Vec<(bool, Vec<(usize, f64)>)> = Vec::new();
    let mut part = |j: usize, limit: f64, gain: bool| {
        let flow = &problem.flows[j];
        let row = b.len();
        b.push(limit);
        for path in allowed_paths(problem, flow) {
            let mut loads = loads_of(problem, flow, &path);
            loads.push((row, 1.0));
            columns.push((gain, loads));
        }
    };
    for &j in keep {
        part(j, rates[j], false);
    }
    part(i, rates[i], false);
    part(i, (problem.flows[i].rate_bps - rates[i]).max(0.0), true);
    let mut a = vec![vec![0.0; columns.len()]; b.len()];
    for (j, (_, loads)) in columns.iter().enumerate() {
        loads.iter().for_each(|&(row, load)| a[row][j] += load);
    }
    let first = columns
        .iter()
        .map(|c| if c.0 { 0.0 } else { 1.0 })
        .collect();
    let second = columns
        .iter()
        .map(|c| if c.0 { 1.0 } else { 0.0 })
        .collect();
    let x = Tableau::new(&a, &b, columns.len()).maximise(&[first, second]);
    x.iter()
        .zip(&columns)
        .filter(|(_, c)| c.0)
        .map(|(x, _)| x)
        .sum()
}

#[test]
fn max_min_lets_no_flow_gain_but_from_a_richer_one() {
    for kind in [Kind::Ties, Kind::Acks, Kind::Limits] {
        for seed in 0..cases(400) {
            let what = format!("{kind:?} {seed}");
            let problem = random_problem(kind, &mut Rng(seed * 4 + kind as u64 + 5));
            let (rates, _) = rates(&problem, Objective::MaxMin, &what);
            let level = |j: usize| rates[j] / problem.flows[j].weight;
            for i in 0..rates.len() {
                if problem.flows[i].source == problem.flows[i].destination {
                    continue;
                }
                let keep: Vec<usize> = (0..rates.len())
                    .filter(|&j| j != i && level(j) <= level(i) * (1.0 + 1e-7) + 1e-7)
                    .filter(|&j| problem.flows[j].source != problem.flows[j].destination)
                    .collect();
                let gain = possible_gain(&problem, &rates, i, &keep);
                assert!(
                    gain <= 1e-6,
                    "{what}: flow {i} could gain {gain}, rates {rates:?}"
                );
            }
        }
    }
}

#[test]
fn no_lower_largest_utilisation_carries_the_same_rates() {
    for kind in [Kind::Ties, Kind::Acks, Kind::Limits] {
        for seed in 0..cases(400) {
            let what = format!("{kind:?} {seed}");
            let problem = random_problem(kind, &mut Rng(seed * 4 + kind as u64 + 9));
            let (rates, summary) = rates(&problem, Objective::MinMaxUtilisation, &what);
            let (best, _, _) = brute_force(&problem, |f| vec![(1.0, f.rate_bps)]);
            assert!(
                (summary.admitted_bps - best).abs() <= 1e-8 * best.max(1.0),
                "{what}"
            );
            let routed: f64 = problem
                .flows
                .iter()
                .zip(&rates)
                .filter(|(f, _)| f.source != f.destination)
                .map(|(_, r)| r)
                .sum();
            if routed < 1e-3 {
                continue;
            }
            let mut tighter = problem.clone();
            for arc in &mut tighter.arcs {
                arc.capacity_bps *= summary.max_utilisation * (1.0 - 1e-4);
            }
            for (flow, &rate) in tighter.flows.iter_mut().zip(&rates) {
                flow.rate_bps = rate;
            }
            let (less, _, _) = brute_force(&tighter, |f| vec![(1.0, f.rate_bps)]);
            assert!(
                less < best - 1e-9 * best,
                "{what}: {less} {best} {summary:?}"
            );
        }
    }
}

#[test]
fn bad_input_is_named() {
    let mut problem = Problem::default();
    let refused = |p: &Problem| {
        Engine::new(p, Objective::Fair)
            .map(|_| ())
            .expect_err("refused")
            .to_string()
    };
    assert_eq!(refused(&problem), "nodes is 0: a network has a node");
    problem.nodes = 2;
    problem.flows = vec![Flow::new(0, 1, f64::NAN)];
    assert_eq!(
        refused(&problem),
        "flows[0].rate_bps is NaN: it must be finite and not negative"
    );
    problem.flows = vec![Flow::new(0, 7, 1.0)];
    assert_eq!(
        refused(&problem),
        "flows[0].destination is 7: the network has 2 nodes"
    );
    let mut engine = Engine::new(
        &Problem {
            nodes: 1,
            ..Problem::default()
        },
        Objective::Fair,
    )
    .expect("a node alone is a network");
    assert_eq!(engine.solve().expect("solves").admitted_bps, 0.0);
    assert!(engine.remove_flow(3).is_err());
}
