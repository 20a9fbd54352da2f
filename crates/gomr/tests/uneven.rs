//! Networks whose links differ by up to eleven powers of ten: every link keeps its own limit, through events.
#![allow(missing_docs)]

mod common;

use common::Rng;
use gomr::{Arc, Engine, Flow, Objective, Problem};

fn amount(rng: &mut Rng) -> f64 {
    match rng.below(4) {
        0 => rng.pick(&[1e3, 1e6, 1e9, 4e14]),
        _ => 10f64.powf(3.0 + 11.6 * rng.unit()),
    }
}

fn uneven(rng: &mut Rng) -> Problem {
    let nodes = 4 + rng.below(5);
    let arc = |i: usize, rng: &mut Rng| {
        let head = (i % nodes + 1 + rng.below(nodes - 1)) % nodes;
        let capacity_bps = amount(rng);
        Arc::new(i % nodes, head, capacity_bps, rng.below(20) as f64 * 1e-3)
    };
    let flow = |rng: &mut Rng| {
        let source = rng.below(nodes);
        let destination = (source + 1 + rng.below(nodes - 1)) % nodes;
        Flow::new(source, destination, amount(rng))
    };
    Problem {
        nodes,
        arcs: (0..3 * nodes).map(|i| arc(i, rng)).collect(),
        flows: (0..6 + rng.below(6)).map(|_| flow(rng)).collect(),
    }
}

fn change(problem: &mut Problem, live: &mut Engine, rng: &mut Rng) {
    let arc = rng.below(problem.arcs.len());
    match rng.below(3) {
        0 => {
            let flow = rng.below(problem.flows.len());
            problem.flows[flow].rate_bps = amount(rng);
            let rate_bps = problem.flows[flow].rate_bps;
            live.change_rate(flow, rate_bps).expect("it is there");
        }
        kind => {
            let capacity_bps = if kind == 1 { amount(rng) } else { 0.0 };
            problem.arcs[arc].capacity_bps = capacity_bps;
            live.set_capacity(arc, capacity_bps).expect("it is there");
        }
    }
}

/// Loads and rates over their limits, as shares of them.
fn worst_excess(problem: &Problem, rates: &gomr::Allocation) -> f64 {
    let mut load = vec![0.0; problem.arcs.len()];
    let mut worst = 0.0;
    for (flow, asked) in rates.flows.iter().zip(&problem.flows) {
        worst = f64::max(worst, flow.rate_bps / asked.rate_bps - 1.0);
        for path in &flow.paths {
            path.arcs.iter().for_each(|&arc| load[arc] += path.rate_bps);
        }
    }
    let excess = load
        .iter()
        .zip(&problem.arcs)
        .map(|(&load, arc)| load - arc.capacity_bps);
    let shares = excess
        .zip(&problem.arcs)
        .map(|(over, arc)| match over > 0.0 {
            true => over / arc.capacity_bps,
            false => 0.0,
        });
    shares.fold(worst, f64::max)
}

#[test]
fn no_link_carries_more_than_its_own_capacity_after_any_event() {
    for (name, objective) in Objective::ALL {
        for seed in 0..100 {
            let mut rng = Rng(seed);
            let mut problem = uneven(&mut rng);
            let mut live = Engine::new(&problem, objective).expect("valid");
            for event in 0..8 {
                let what = format!("{name}, seed {seed}, event {event}");
                change(&mut problem, &mut live, &mut rng);
                let rates = live.allocation().expect(&what);
                let over = worst_excess(&problem, &rates);
                assert!(over < 1e-9, "{what}: {over:e}");
                let fresh = Engine::new(&problem, objective)
                    .expect("valid")
                    .allocation();
                let value = fresh.expect(&what).summary.certificate.value;
                let apart = (rates.summary.certificate.value - value).abs();
                assert!(apart <= 1e-9 * value, "{what}: {apart}");
            }
        }
    }
}

#[test]
fn a_thin_link_is_filled_beside_links_of_any_size() {
    for thick in [1e9, 1e12, 4e14] {
        // The thin link 1-2 is the way of one flow alone; the other may go around it.
        let arcs = vec![
            Arc::new(0, 1, thick, 0.02),
            Arc::new(1, 2, 1e3, 0.001),
            Arc::new(0, 2, thick, 0.03),
            Arc::new(2, 3, thick, 0.02),
        ];
        let flows = vec![
            Flow::new(0, 1, thick),
            Flow::new(1, 3, thick),
            Flow::new(0, 3, 1e6),
            Flow::new(1, 2, 1e13),
        ];
        let problem = Problem {
            nodes: 4,
            arcs,
            flows,
        };
        for (name, objective) in Objective::ALL {
            let mut live = Engine::new(&problem, objective).expect("valid");
            for keeps_shares in [false, true] {
                if keeps_shares {
                    live.keep_shares();
                    live.change_rate(0, 0.5 * thick).expect("it is there");
                }
                let rates = live.allocation().expect(name);
                let thin: f64 = [1, 3].iter().map(|&flow| rates.flows[flow].rate_bps).sum();
                assert!((thin - 1e3).abs() < 1e-6, "{name}, {thick:e}: {rates:?}");
                let around = rates.flows[2].rate_bps;
                assert!((around - 1e6).abs() < 1e-3, "{name}, {thick:e}: {around}");
            }
        }
    }
}
