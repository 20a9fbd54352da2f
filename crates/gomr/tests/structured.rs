//! Networks of equal links, where nearly every pivot is degenerate: the solve ends, and is optimal.
#![allow(missing_docs)]

mod common;

use common::{push_link, Rng};
use gomr::{max_concurrent, Arc, Engine, Flow, Objective, Problem};

fn both_ways(arcs: &mut Vec<Arc>, a: usize, b: usize, capacity_bps: f64) {
    push_link(arcs, (a, b), [capacity_bps; 2], 1.0);
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

/// Links and demands are alike: all rates are the capacity of all links over the sum of all distances, at which every link
/// is full, and a climb to it takes hundreds of thousands of pivots.
#[test]
fn equal_demands_between_all_nodes_of_a_torus_share_it_within_few_steps() {
    const SIDE: usize = 7;
    const MAX_WORK: u64 = 600_000_000;
    let mut problem = grid(SIDE, true, 0, 1);
    let pairs = (0..SIDE * SIDE).flat_map(|s| (0..SIDE * SIDE).map(move |t| (s, t)));
    let pairs = pairs.filter(|(s, t)| s != t);
    problem.flows = pairs.map(|(s, t)| Flow::new(s, t, 1.0)).collect();
    let around = |a: usize, b: usize| a.abs_diff(b).min(SIDE - a.abs_diff(b));
    let hops = |flow: &Flow| {
        let (s, t) = (flow.source, flow.destination);
        around(s / SIDE, t / SIDE) + around(s % SIDE, t % SIDE)
    };
    let hops: usize = problem.flows.iter().map(hops).sum();
    let fair_bps = 10.0 * problem.arcs.len() as f64 / hops as f64;
    let mut engine = Engine::new(&problem, Objective::MaxMin).expect("valid");
    let summary = engine.solve().expect("it ends");
    assert!(summary.certificate.gap < 1e-9, "{summary:?}");
    for flow in engine.allocation().expect("solved").flows {
        assert!((flow.rate_bps - fair_bps).abs() < 1e-9, "{flow:?}");
    }
    assert!(engine.effort().work < MAX_WORK, "{:?}", engine.effort());
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

/// Layers of `width` nodes with an arc from each node to each of the next layer, between two nodes that all of a layer
/// could fill.
fn layers(width: usize) -> Problem {
    const LAYERS: usize = 5;
    let (source, sink) = (LAYERS * width, LAYERS * width + 1);
    let arc = |tail, head, capacity_bps| Arc::new(tail, head, capacity_bps, 1.0);
    let mut arcs = Vec::new();
    for node in 0..width {
        arcs.push(arc(source, node, width as f64));
        arcs.push(arc((LAYERS - 1) * width + node, sink, width as f64));
        for (layer, next) in (0..LAYERS - 1).flat_map(|layer| (0..width).map(move |n| (layer, n))) {
            arcs.push(arc(layer * width + node, (layer + 1) * width + next, 1.0));
        }
    }
    Problem {
        nodes: sink + 1,
        arcs,
        flows: vec![Flow::new(source, sink, 1e4)],
    }
}

#[test]
fn one_flow_fills_layers_of_equal_links_in_a_pivot_a_path() {
    for (name, objective) in Objective::ALL {
        let problem = layers(14);
        let mut engine = Engine::new(&problem, objective).expect("valid");
        let allocation = engine.allocation().expect(name);
        let summary = allocation.summary;
        assert!(
            (summary.admitted_bps - 14.0 * 14.0).abs() < 1e-9,
            "{summary:?}"
        );
        assert!(
            (summary.cost_bps_s - 6.0 * 14.0 * 14.0).abs() < 1e-6,
            "{summary:?}"
        );
        assert!(summary.certificate.gap < 1e-9, "{summary:?}");
        assert!(summary.effort.pivots <= problem.arcs.len(), "{summary:?}");
    }
}

/// A fat-tree of `ports` a switch and equal links, where each host sends to another at the full rate of its link.
fn fat_tree(ports: usize, seed: u64) -> Problem {
    let half = ports / 2;
    let hosts = ports * half * half;
    let (edge, aggregation) = (hosts, hosts + ports * half);
    let core = aggregation + ports * half;
    let mut arcs = Vec::new();
    for pod_switch in 0..ports * half {
        let (pod, place) = (pod_switch / half, pod_switch % half);
        for i in 0..half {
            both_ways(&mut arcs, pod_switch * half + i, edge + pod_switch, 1.0);
            both_ways(
                &mut arcs,
                edge + pod_switch,
                aggregation + pod * half + i,
                1.0,
            );
            both_ways(
                &mut arcs,
                aggregation + pod_switch,
                core + place * half + i,
                1.0,
            );
        }
    }
    let mut rng = Rng(seed);
    let mut order: Vec<usize> = (0..hosts).collect();
    for i in (1..hosts).rev() {
        order.swap(i, rng.below(i + 1));
    }
    let flow = |i: usize| Flow::new(order[i], order[(i + 1) % hosts], 1.0);
    Problem {
        nodes: core + half * half,
        arcs,
        flows: (0..hosts).map(flow).collect(),
    }
}

#[test]
fn a_permutation_at_full_rate_fits_a_fat_tree() {
    let problem = fat_tree(10, 3);
    let mut engine = Engine::new(&problem, Objective::MaxThroughputMinDelay).expect("valid");
    let summary = engine.solve().expect("solves");
    let asked = problem.flows.len() as f64;
    assert!(
        (summary.admitted_bps - asked).abs() < 1e-8 * asked,
        "{summary:?}"
    );
    assert!(summary.certificate.gap < 1e-9, "{summary:?}");
    let size = 200 + problem.arcs.len() + problem.flows.len();
    assert!(summary.effort.pivots < size, "{summary:?}");
}

/// A node of a circle has an arc to those that are this many steps further on, both ways; every node sends to one other.
fn circulant(nodes: usize, steps: &[usize], seed: u64) -> Problem {
    let mut arcs = Vec::new();
    for node in 0..nodes {
        for step in steps {
            both_ways(&mut arcs, node, (node + step) % nodes, 1.0);
        }
    }
    let mut rng = Rng(seed);
    let flow = |node: usize| {
        let far = 1 + rng.below(nodes - 1);
        Flow::new(node, (node + far) % nodes, 1.0 + rng.below(2) as f64)
    };
    Problem {
        nodes,
        arcs,
        flows: (0..nodes).map(flow).collect(),
    }
}

#[test]
fn the_largest_factor_is_the_same_by_paths_and_by_trees() {
    for seed in 0..12 {
        let problem = circulant(9 + seed as usize, &[1, 3], seed);
        let factor = |problem: &Problem| {
            let found = max_concurrent(problem, 1.0, 1, None).expect("valid");
            let found = found.expect("plain demands");
            assert!(found.complete, "seed {seed}: {found:?}");
            assert!(found.upper_bound <= found.factor * (1.0 + 1e-9));
            found.factor
        };
        // In parts, each source has enough demands for them to be routed on trees.
        let mut parts = problem.clone();
        parts.flows = (0..5).flat_map(|_| problem.flows.clone()).collect();
        parts.flows.iter_mut().for_each(|f| f.rate_bps /= 5.0);
        let (by_paths, by_trees) = (factor(&problem), factor(&parts));
        assert!(
            (by_paths - by_trees).abs() < 1e-9 * by_trees,
            "seed {seed}: {by_paths} and {by_trees}"
        );
    }
}
