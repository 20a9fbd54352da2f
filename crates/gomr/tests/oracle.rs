//! The engine against brute force on thousands of small networks, and against itself after events.
#![allow(missing_docs)]

mod common;

use common::{
    brute_force, cases, check_feasible, close, loads_of, random_flow, random_problem, Kind, Rng,
    KINDS,
};
use gomr::{Engine, Flow, Objective, OptimalFace, Problem};

fn parts(objective: Objective) -> impl Fn(&Flow) -> Vec<(f64, f64)> {
    move |flow| match objective {
        Objective::Fair => (1..=8)
            .map(|s| (flow.weight / f64::from(s), flow.rate_bps / 8.0))
            .collect(),
        _ => vec![(1.0, flow.rate_bps)],
    }
}

fn compare(problem: &Problem, engine: &mut Engine, objective: Objective, what: &str) {
    let allocation = engine
        .allocation()
        .unwrap_or_else(|e| panic!("{what}: {e}"));
    check_feasible(problem, &allocation, what);
    let (first, cost, _) = brute_force(problem, parts(objective));
    let s = allocation.summary;
    assert!(
        close(s.certificate.value, first, 0.0),
        "{what}: {s:?} expected {first}"
    );
    // Rates below the noise of the largest one may sit on any path.
    let rates = problem.flows.iter().map(|f| f.rate_bps).fold(0.0, f64::max);
    assert!(
        close(s.cost_bps_s, cost, rates * 1e-2),
        "{what}: {s:?} expected cost {cost}"
    );
}

fn against_brute_force(objective: Objective) {
    for kind in KINDS {
        for seed in 0..cases(1500) {
            let mut rng = Rng(seed * 4 + kind as u64);
            let problem = random_problem(kind, &mut rng);
            let mut engine = Engine::new(&problem, objective).expect("valid");
            compare(
                &problem,
                &mut engine,
                objective,
                &format!("{objective:?} {kind:?} {seed}"),
            );
        }
    }
}

#[test]
fn max_throughput_min_delay_is_optimal() {
    against_brute_force(Objective::MaxThroughputMinDelay);
}

#[test]
fn fair_is_optimal() {
    against_brute_force(Objective::Fair);
}

struct Live {
    problem: Problem,
    ids: Vec<usize>,
    down: Vec<bool>,
    engine: Engine,
}

impl Live {
    fn new(problem: Problem, objective: Objective) -> Self {
        Self {
            ids: (0..problem.flows.len()).collect(),
            down: vec![false; problem.arcs.len()],
            engine: Engine::new(&problem, objective).expect("valid"),
            problem,
        }
    }

    fn event(&mut self, kind: Kind, rng: &mut Rng) {
        let arcs = &self.problem.arcs;
        match rng.below(6) {
            0 => {
                let flow = random_flow(kind, self.problem.nodes, arcs, rng);
                self.ids
                    .push(self.engine.add_flow(flow.clone()).expect("valid"));
                self.problem.flows.push(flow);
            }
            1 if !self.ids.is_empty() => {
                let at = rng.below(self.ids.len());
                self.engine.remove_flow(self.ids.remove(at)).expect("there");
                self.problem.flows.remove(at);
            }
            2 if !self.ids.is_empty() => {
                let at = rng.below(self.ids.len());
                let rate = random_flow(kind, self.problem.nodes, arcs, rng).rate_bps;
                self.engine.change_rate(self.ids[at], rate).expect("there");
                self.problem.flows[at].rate_bps = rate;
            }
            3 => {
                let arc = rng.below(arcs.len());
                self.engine.fail_link(arc).expect("there");
                self.down[arc] = true;
            }
            4 => {
                let arc = rng.below(arcs.len());
                self.engine.restore_link(arc).expect("there");
                self.down[arc] = false;
            }
            _ => {
                let arc = rng.below(arcs.len());
                let capacity = 2.0 * rng.unit() * arcs[arc].capacity_bps;
                self.engine.set_capacity(arc, capacity).expect("there");
                self.problem.arcs[arc].capacity_bps = capacity;
            }
        }
    }

    fn now(&self) -> Problem {
        let mut problem = self.problem.clone();
        for (arc, _) in problem
            .arcs
            .iter_mut()
            .zip(&self.down)
            .filter(|(_, &down)| down)
        {
            arc.capacity_bps = 0.0;
        }
        problem
    }
}

#[test]
fn events_lead_to_what_a_solve_from_scratch_finds() {
    for objective in [Objective::MaxThroughputMinDelay, Objective::Fair] {
        for kind in KINDS {
            for seed in 0..cases(1500) / 5 {
                let mut rng = Rng(seed * 4 + kind as u64 + 77);
                let problem = random_problem(kind, &mut rng);
                let mut live = Live::new(problem, objective);
                for step in 0..12 {
                    for _ in 0..1 + rng.below(2) {
                        live.event(kind, &mut rng);
                    }
                    let what = format!("{objective:?} {kind:?} {seed} step {step}");
                    let now = live.now();
                    compare(&now, &mut live.engine, objective, &what);
                }
            }
        }
    }
}

#[test]
fn changes_add_up_to_the_allocation() {
    for seed in 0..200 {
        let mut rng = Rng(seed + 4242);
        let problem = random_problem(Kind::Ties, &mut rng);
        let mut live = Live::new(problem, Objective::default());
        let mut known = std::collections::BTreeMap::new();
        for step in 0..8 {
            for flow in live.engine.changes().expect("solves").flows {
                known.insert(flow.flow, flow);
            }
            known.retain(|id, _| live.ids.contains(id));
            for flow in live.engine.allocation().expect("solves").flows {
                assert!(known[&flow.flow].is_same(&flow), "{seed} step {step}");
            }
            assert!(live.engine.changes().expect("solves").flows.is_empty());
            live.event(Kind::Ties, &mut rng);
        }
    }
}

/// The rates of an optimum lie on the face, and all of its full bounds are met by them.
#[test]
fn the_face_holds_the_optimum() {
    for objective in [
        Objective::MaxThroughputMinDelay,
        Objective::Fair,
        Objective::MaxMin,
    ] {
        for kind in [Kind::Ties, Kind::Acks, Kind::Limits] {
            for seed in 0..200 {
                let what = format!("{objective:?} {kind:?} {seed}");
                let problem = random_problem(kind, &mut Rng(seed * 4 + kind as u64));
                let mut engine = Engine::new(&problem, objective).expect("valid");
                let allocation = engine.allocation().expect("solves");
                let face = OptimalFace::of(&mut engine).expect("solves");
                let mut load = vec![0.0; problem.arcs.len()];
                for (flow, asked) in allocation.flows.iter().zip(&problem.flows) {
                    let own = |c: &&gomr::FaceCommodity| c.members.iter().any(|m| m.0 == flow.flow);
                    let known: Vec<_> = face.commodities.iter().filter(own).collect();
                    for path in flow.paths.iter().filter(|p| !p.arcs.is_empty()) {
                        let on = known
                            .iter()
                            .flat_map(|c| &c.paths)
                            .any(|p| p.arcs == path.arcs);
                        assert!(on, "{what}");
                        for (arc, factor) in loads_of(&problem, asked, &path.arcs) {
                            load[arc] += factor * path.rate_bps;
                        }
                    }
                    let full: f64 = known
                        .iter()
                        .filter(|c| c.full)
                        .flat_map(|c| &c.members)
                        .filter(|m| m.0 == flow.flow)
                        .map(|m| m.1)
                        .sum();
                    assert!(flow.rate_bps >= full - 1e-9, "{what}");
                }
                for (arc, &(capacity, full)) in face.arcs.iter().enumerate() {
                    assert!(!full || load[arc] >= capacity - 1e-9, "{what}: arc {arc}");
                }
            }
        }
    }
}
