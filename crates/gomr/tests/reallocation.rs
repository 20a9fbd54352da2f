//! The optimum that moves flows least, through events on a network with many equally good ways.
#![allow(missing_docs)]

mod common;

use common::{push_link, Rng};
use gomr::{Engine, Flow, FlowAllocation, Objective, Problem};

const SIDE: usize = 4;

/// A square grid of equal links with random flows.
fn grid(rng: &mut Rng) -> Problem {
    let mut arcs = Vec::new();
    for node in 0..SIDE * SIDE {
        let right = (node % SIDE + 1 < SIDE).then_some(node + 1);
        let below = (node + SIDE < SIDE * SIDE).then_some(node + SIDE);
        for other in right.into_iter().chain(below) {
            push_link(&mut arcs, (node, other), [8.0; 2], 1.0);
        }
    }
    Problem {
        nodes: SIDE * SIDE,
        arcs,
        flows: (0..40).map(|_| flow(rng)).collect(),
    }
}

fn flow(rng: &mut Rng) -> Flow {
    let source = rng.below(SIDE * SIDE);
    let step = 1 + rng.below(SIDE * SIDE - 1);
    Flow::new(
        source,
        (source + step) % (SIDE * SIDE),
        1.0 + rng.below(4) as f64,
    )
}

/// How many of the flows known before have other paths or rates.
fn moved(before: &[FlowAllocation], after: &[FlowAllocation]) -> usize {
    let now = |old: &&FlowAllocation| after.iter().find(|new| new.flow == old.flow);
    let moves = |old: &&FlowAllocation| now(old).is_some_and(|new| !new.is_same(old));
    before.iter().filter(moves).count()
}

/// What flows have after what changed is known.
fn follow(known: &mut Vec<FlowAllocation>, changed: Vec<FlowAllocation>) {
    for flow in changed {
        known.retain(|old| old.flow != flow.flow);
        known.push(flow);
    }
}

#[test]
fn the_choice_is_an_optimum_and_moves_fewer_flows() {
    for (name, objective) in Objective::ALL {
        let mut rng = Rng(7);
        let problem = grid(&mut rng);
        let mut still = Engine::new(&problem, objective).expect("valid");
        let mut restless = still.clone();
        still.keep_shares();
        let (mut calm, mut wild) = (Vec::new(), Vec::new());
        let (mut fewest, mut most) = (0, 0);
        for _ in 0..25 {
            let chosen = still.minimum_reallocation(&[]).expect(name);
            let usual = restless.changes().expect(name);
            assert!(chosen.complete, "{name}");
            let before = (calm.clone(), wild.clone());
            follow(&mut calm, chosen.changes.flows);
            follow(&mut wild, usual.flows);
            fewest += moved(&before.0, &calm);
            most += moved(&before.1, &wild);

            let (one, other) = (chosen.changes.summary, usual.summary);
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b;
            assert!(
                close(one.certificate.value, other.certificate.value),
                "{name}"
            );
            assert!(close(one.cost_bps_s, other.cost_bps_s), "{name}");
            assert!(close(one.max_utilisation, other.max_utilisation), "{name}");
            let paths = || calm.iter().flat_map(|flow| &flow.paths);
            let cost: f64 = paths().map(|path| path.rate_bps * path.delay_s).sum();
            assert!(close(cost, one.cost_bps_s), "{name}");
            for arc in 0..problem.arcs.len() {
                let own = paths().filter(|path| path.arcs.contains(&arc));
                let load: f64 = own.map(|path| path.rate_bps).sum();
                assert!(load <= 8.0 * (1.0 + 1e-9), "{name}");
            }

            let new = flow(&mut rng);
            let gone = calm[rng.below(calm.len())].flow;
            for engine in [&mut still, &mut restless] {
                engine.remove_flow(gone).expect("there");
                engine.add_flow(new.clone()).expect("valid");
            }
            calm.retain(|flow| flow.flow != gone);
            wild.retain(|flow| flow.flow != gone);
        }
        assert!(fewest < most, "{name}: {fewest} and {most}");
    }
}

/// A ring with chords: unequal links and delays, and flows beyond what fits.
fn chords(nodes: usize, flows: usize, rng: &mut Rng) -> Problem {
    let mut links: Vec<(usize, usize)> =
        (0..nodes).map(|node| (node, (node + 1) % nodes)).collect();
    for node in 0..nodes {
        links.push((node, (node + 2 + rng.below(nodes / 3)) % nodes));
    }
    let mut arcs = Vec::new();
    for ends in links {
        let capacity_bps = rng.pick(&[10.0, 20.0, 40.0]);
        push_link(&mut arcs, ends, [capacity_bps; 2], 1.0 + rng.unit());
    }
    let flow = |rng: &mut Rng| {
        let source = rng.below(nodes);
        let target = (source + 1 + rng.below(nodes - 1)) % nodes;
        Flow::new(source, target, 1.0 + 20.0 * rng.unit())
    };
    Problem {
        nodes,
        arcs,
        flows: (0..flows).map(|_| flow(rng)).collect(),
    }
}

/// Work that a solve of the problem from scratch takes.
fn fresh_work(problem: &Problem, objective: Objective) -> u64 {
    let mut fresh = Engine::new(problem, objective).expect("valid");
    fresh.solve().expect("solves");
    fresh.effort().work
}

#[test]
fn an_event_costs_little_more_than_a_fresh_solve_at_worst() {
    for (name, objective) in Objective::ALL {
        let mut rng = Rng(3);
        let mut problem = chords(30, 120, &mut rng);
        let mut live = Engine::new(&problem, objective).expect("valid");
        live.keep_shares();
        live.minimum_reallocation(&[]).expect(name);
        let cost = |live: &mut Engine, problem: &Problem| {
            let before = live.effort().work;
            live.minimum_reallocation(&[]).expect(name);
            let work = live.effort().work - before;
            let fresh = fresh_work(problem, objective);
            assert!(
                10 * work <= 12 * fresh,
                "{name}: {work} instead of {fresh} from scratch"
            );
            work as f64 / fresh as f64
        };
        let mut shares = Vec::new();
        for event in 0..10 {
            let arc = 2 * rng.below(problem.arcs.len() / 2);
            let capacity_bps = problem.arcs[arc].capacity_bps;
            for failed in [arc, arc + 1] {
                live.fail_link(failed).expect("there");
                problem.arcs[failed].capacity_bps = 0.0;
            }
            shares.push(cost(&mut live, &problem));
            for failed in [arc, arc + 1] {
                live.restore_link(failed).expect("there");
                problem.arcs[failed].capacity_bps = capacity_bps;
            }
            shares.push(cost(&mut live, &problem));
            problem.flows[event].rate_bps *= 0.5;
            live.change_rate(event, problem.flows[event].rate_bps)
                .expect("there");
            shares.push(cost(&mut live, &problem));
        }
        shares.sort_by(f64::total_cmp);
        assert!(shares[shares.len() / 2] < 1.0, "{name}: {shares:?}");
    }
}
