//! Networks that look alike from many nodes: the answer over classes is that over all arcs and demands.
#![allow(missing_docs)]

mod common;

use common::{close, push_link, Rng};
use gomr::{
    audit, max_concurrent, max_concurrent_by_symmetry, solve_by_symmetry, Engine, Flow, Objective,
    Problem,
};

/// Links between nodes of a group, each with all its images: circulants, tori, hypercubes, cliques.
fn cayley(sides: &[usize], steps: &[Vec<usize>], rng: &mut Rng) -> Problem {
    let nodes = sides.iter().product();
    let sum = |node: usize, step: &[usize]| {
        let mut rest = node;
        let mut unit = 1;
        let mut to = 0;
        for (side, by) in sides.iter().zip(step) {
            to += (rest % side + by) % side * unit;
            rest /= side;
            unit *= side;
        }
        to
    };
    let mut arcs = Vec::new();
    for step in steps {
        let (capacity_bps, delay_s) = (rng.pick(&[1.0, 1.0, 2.5]), rng.pick(&[1.0, 1.0, 0.7]));
        for tail in 0..nodes {
            push_link(
                &mut arcs,
                (tail, sum(tail, step)),
                [capacity_bps; 2],
                delay_s,
            );
        }
    }
    let rate_bps = rng.pick(&[0.01, 0.1, 0.3, 1.0]);
    // What is asked depends on how far a destination is from its source, as the group counts.
    let asks: Vec<f64> = (0..nodes)
        .map(|_| rng.pick(&[1.0, 1.0, 1.0, 2.0, 0.0]))
        .collect();
    let mut flows = Vec::new();
    for source in 0..nodes {
        for (apart, times) in asks
            .iter()
            .enumerate()
            .skip(1)
            .filter(|(_, &times)| times > 0.0)
        {
            let step: Vec<usize> = {
                let mut rest = apart;
                let digits = sides.iter().map(|side| {
                    let digit = rest % side;
                    rest /= side;
                    digit
                });
                digits.collect()
            };
            let mut flow = Flow::new(source, sum(source, &step), rate_bps);
            flow.weight = *times;
            flows.push(flow);
        }
    }
    Problem { nodes, arcs, flows }
}

fn drawn(rng: &mut Rng) -> Problem {
    let one = |place: usize, sides: usize, by: usize| {
        let mut step = vec![0; sides];
        step[place] = by;
        step
    };
    match rng.below(4) {
        0 => {
            let nodes = 9 + rng.below(12);
            let steps: Vec<Vec<usize>> = [1, 1 + rng.below(3)].map(|by| vec![by]).into();
            cayley(&[nodes], &steps, rng)
        }
        1 => {
            let sides = [3 + rng.below(3), 3 + rng.below(3)];
            cayley(&sides, &[one(0, 2, 1), one(1, 2, 1)], rng)
        }
        2 => {
            let steps: Vec<Vec<usize>> = (0..4).map(|place| one(place, 4, 1)).collect();
            cayley(&[2; 4], &steps, rng)
        }
        _ => {
            let nodes = 9 + 2 * rng.below(3);
            let steps: Vec<Vec<usize>> = (1..=nodes / 2).map(|by| vec![by]).collect();
            cayley(&[nodes], &steps, rng)
        }
    }
}

#[test]
fn the_answer_over_classes_is_the_optimum_of_every_objective() {
    let (mut solved, mut rng) = (0, Rng(1));
    for round in 0..30 {
        let problem = drawn(&mut rng);
        for (name, objective) in Objective::ALL {
            let what = format!("round {round}, {name}");
            let Some(found) = solve_by_symmetry(&problem, objective, None).expect(&what) else {
                continue;
            };
            solved += 1;
            let of = audit(
                &problem,
                &found.answer,
                objective,
                &found.prices,
                &found.cuts,
            );
            let of = of.expect(&what);
            let mut engine = Engine::new(&problem, objective).expect(&what);
            let plain = engine.allocation().expect(&what);
            let asked = plain.summary.requested_bps;
            assert!(of.max_violation_bps <= 1e-9, "{what}: {of:?}");
            assert!(close(of.value, of.upper_bound, 0.0), "{what}: {of:?}");
            // One bit/s on two arcs can be worth two on one.
            let is_fair = objective == Objective::Fair;
            let (found_bps, bps) = (of.admitted_bps, plain.summary.admitted_bps);
            assert!(
                is_fair || close(found_bps, bps, asked),
                "{what}: {found_bps} for {bps}"
            );
            assert!(
                close(of.value, plain.summary.certificate.value, asked),
                "{what}"
            );
            let cost = plain.summary.cost_bps_s;
            assert!(
                close(of.cost_bps_s, cost, asked),
                "{what}: {} for {cost}",
                of.cost_bps_s
            );
            let loads = of.loads_bps.iter().zip(&problem.arcs);
            let fullest = loads
                .map(|(load, arc)| load / arc.capacity_bps)
                .fold(0.0, f64::max);
            match objective {
                Objective::MinMaxUtilisation => {
                    assert!(close(fullest, plain.summary.max_utilisation, 1.0), "{what}");
                }
                Objective::MaxMin => {
                    let mut rates = vec![0.0; problem.flows.len()];
                    for (&flow, rate) in found.answer.flow.iter().zip(&found.answer.rate_bps) {
                        rates[flow as usize] += rate;
                    }
                    for flow in &plain.flows {
                        assert!(close(rates[flow.flow], flow.rate_bps, 0.01), "{what}");
                    }
                }
                _ => {}
            }
            let mut used = vec![0; problem.nodes];
            for &flow in &found.answer.flow {
                used[problem.flows[flow as usize].source] += 1;
            }
            let most = problem.nodes - 1 + problem.arcs.len();
            assert!(used.iter().all(|&paths| paths <= most), "{what}");
        }
        let Some(found) = max_concurrent_by_symmetry(&problem, None).expect("valid") else {
            continue;
        };
        let plain = max_concurrent(&problem, 1.0, 1, None).expect("valid");
        let plain = plain.expect("plain demands");
        assert!(close(found.factor, plain.factor, 0.0), "round {round}");
        assert!(close(found.factor, found.upper_bound, 0.0), "round {round}");
    }
    assert!(solved >= 100, "{solved}");
}
