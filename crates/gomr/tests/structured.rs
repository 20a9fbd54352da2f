//! Networks of equal links, where nearly every pivot is degenerate: the solve ends, and is optimal.
#![allow(missing_docs)]

mod common;

use common::Rng;
use gomr::{Arc, Engine, Flow, Objective, Problem};

fn both_ways(arcs: &mut Vec<Arc>, a: usize, b: usize, capacity_bps: f64) {
    let first = arcs.len();
    for (tail, head, reverse) in [(a, b, first + 1), (b, a, first)] {
        arcs.push(Arc {
            tail,
            head,
            capacity_bps,
            delay_s: 1.0,
            reverse: Some(reverse),
        });
    }
}

/// A square grid (a torus where it wraps) with unit flows between random nodes.
fn grid(side: usize, wraps: bool, flows: usize, seed: u64) -> Problem {
    let mut arcs = Vec::new();
    for node in 0..side * side {
        let (row, column) = (node / side, node % side);
        for (r, c) in [(row, column + 1), (row + 1, column)] {
            if wraps || (r < side && c < side) {
                both_ways(&mut arcs, node, r % side * side + c % side, 10.0);
            }
        }
    }
    let mut rng = Rng(seed);
    let nodes = side * side;
    let mut problem = Problem {
        nodes,
        arcs,
        flows: Vec::new(),
    };
    while problem.flows.len() < flows {
        let (s, t) = (rng.below(nodes), rng.below(nodes));
        if s != t {
            problem.flows.push(Flow::new(s, t, 1.0));
        }
    }
    problem
}

#[test]
fn ends_on_congested_grids_and_tori_for_every_objective() {
    for (side, wraps, flows) in [(5, false, 300), (5, true, 500), (7, false, 300)] {
        let problem = grid(side, wraps, flows, 1);
        for (name, objective) in Objective::ALL {
            let mut engine = Engine::new(&problem, objective).expect("valid");
            let summary = engine
                .solve()
                .unwrap_or_else(|error| panic!("{name} on {side} x {side}: {error}"));
            assert!(summary.certificate.gap < 1e-9, "{name}: {summary:?}");
            assert!(summary.certificate.max_violation_bps < 1e-9, "{name}");
            let pivots = 100 * (problem.arcs.len() + problem.flows.len());
            assert!(summary.effort.pivots < pivots, "{name}: {summary:?}");
        }
    }
}

#[test]
fn the_answer_does_not_depend_on_the_number_of_threads() {
    let problem = grid(30, false, 400, 2);
    let answer = |threads: usize| {
        let mut engine = Engine::new(&problem, Objective::MaxThroughputMinDelay).expect("valid");
        engine.set_threads(threads);
        engine.allocation().expect("it solves")
    };
    assert_eq!(answer(1), answer(3));
}
