//! What an engine has when its time is up: rates within every limit, and how far they can be from the optimum.

use crate::allocation::{Certificate, Changes, FlowAllocation, FlowId, PathRate, Summary};
use crate::certificate::audit::{audit, Audit, PathRates};
use crate::incremental::engine::Engine;
use crate::problem::{Error, Flow, Problem};

/// As [`Engine::changes_so_far`].
pub(crate) fn changes(engine: &mut Engine) -> Result<Changes, Error> {
    let (ids, problem) = present(engine);
    let (prices, mut cuts) = engine.prices_so_far();
    for cut in &mut cuts {
        let places = cut
            .stopped
            .iter()
            .filter_map(|&id| ids.binary_search(&(id as usize)).ok());
        cut.stopped = places.map(|place| place as u32).collect();
    }
    let mut best: Option<(PathRates, Audit)> = None;
    let mut bound = f64::INFINITY;
    for known in [engine.flow_allocations(), engine.reported.flows.clone()] {
        let mut answer = numbered(&ids, &known);
        answer.fit(&problem);
        for prices in [&prices, &vec![0.0; prices.len()]] {
            let audited = audit(
                &problem,
                &answer,
                engine.membership.objective,
                prices,
                &cuts,
            )
            .map_err(|reason| engine.solver.not_solved(&reason))?;
            bound = bound.min(audited.upper_bound);
            if best
                .as_ref()
                .map_or(true, |(_, other)| audited.value > other.value)
            {
                best = Some((answer.clone(), audited));
            }
        }
    }
    let (answer, audited) = best.unwrap_or_default();
    let flows = allocations(&ids, &problem, &answer);
    Ok(Changes {
        flows: engine.report(flows),
        summary: summary_of(engine, &problem, &audited, bound),
    })
}

/// The flows that are there, and the problem they make.
fn present(engine: &Engine) -> (Vec<FlowId>, Problem) {
    let mut arcs = engine.arcs.clone();
    for (arc, &down) in arcs.iter_mut().zip(&engine.down) {
        if down {
            arc.capacity_bps = 0.0;
        }
    }
    let present = engine.membership.present();
    let there = present.map(|(id, entry)| (id, entry.flow.clone()));
    let (ids, flows): (Vec<FlowId>, Vec<Flow>) = there.unzip();
    let problem = Problem {
        nodes: engine.nodes,
        arcs,
        flows,
    };
    (ids, problem)
}

fn summary_of(engine: &Engine, problem: &Problem, audited: &Audit, bound: f64) -> Summary {
    let loads = audited.loads_bps.iter().zip(&problem.arcs);
    let used = loads.filter(|(_, arc)| arc.capacity_bps > 0.0);
    Summary {
        admitted_bps: audited.admitted_bps,
        requested_bps: audited.requested_bps,
        cost_bps_s: audited.cost_bps_s,
        max_utilisation: used
            .map(|(load, arc)| load / arc.capacity_bps)
            .fold(0.0, f64::max),
        certificate: Certificate {
            upper_bound: bound,
            value: audited.value,
            gap: if bound > 0.0 {
                (1.0 - audited.value / bound).max(0.0)
            } else {
                0.0
            },
            max_violation_bps: audited.max_violation_bps,
        },
        effort: engine.effort(),
    }
}
/// The paths of the flows `ids`, which are numbered by their place there.
fn numbered(ids: &[FlowId], flows: &[FlowAllocation]) -> PathRates {
    let mut answer = PathRates {
        start: vec![0],
        ..PathRates::default()
    };
    for flow in flows {
        let Ok(place) = ids.binary_search(&flow.flow) else {
            continue;
        };
        for path in &flow.paths {
            answer.flow.push(place as u32);
            answer.rate_bps.push(path.rate_bps);
            answer.arcs.extend(path.arcs.iter().map(|&arc| arc as u32));
            answer.start.push(answer.arcs.len() as u32);
        }
    }
    answer
}

/// An answer's paths with a rate, flow by flow.
fn allocations(ids: &[FlowId], problem: &Problem, answer: &PathRates) -> Vec<FlowAllocation> {
    let nothing = |&flow: &FlowId| FlowAllocation {
        flow,
        rate_bps: 0.0,
        paths: Vec::new(),
    };
    let mut flows: Vec<FlowAllocation> = ids.iter().map(nothing).collect();
    for (index, (&place, &rate_bps)) in answer.flow.iter().zip(&answer.rate_bps).enumerate() {
        if rate_bps <= 0.0 {
            continue;
        }
        let arcs: Vec<usize> = answer.path(index).iter().map(|&arc| arc as usize).collect();
        let delay_s = arcs.iter().map(|&arc| problem.arcs[arc].delay_s).sum();
        let flow = &mut flows[place as usize];
        flow.rate_bps += rate_bps;
        flow.paths.push(PathRate {
            arcs,
            rate_bps,
            delay_s,
        });
    }
    flows
}
