//! Measures the engine on congested gravity demands: from scratch, one flow event, one link failure.
//!
//! `bench [--nodes N | --grid SIDE] [--flows F] [--load X] [--objective NAME] [--runs R] [--events E] [--seed S]`
//!
//! Times are CPU times of the thread, milliseconds; pivots and work are the same on every machine. Real networks, other
//! engines and whole matrices are measured by `python -m benchmarks.gomr`.

use gomr::{Arc, Engine, Flow, Objective, Problem};

/// SplitMix64.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

fn cpu_ms() -> f64 {
    // Yielding makes the kernel bring the thread's run time up to date.
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split_whitespace().next();
    ns.and_then(|v| v.parse::<f64>().ok()).unwrap_or(0.0) / 1e6
}

fn both_ways(arcs: &mut Vec<Arc>, a: usize, b: usize, capacity_bps: f64, delay_s: f64) {
    let first = arcs.len();
    for (tail, head, reverse) in [(a, b, Some(first + 1)), (b, a, Some(first))] {
        arcs.push(Arc {
            tail,
            head,
            capacity_bps,
            delay_s,
            reverse,
        });
    }
}

/// Nodes at random places, each joined to the three that are nearest.
fn geometric(nodes: usize, rng: &mut Rng) -> Vec<Arc> {
    let at: Vec<(f64, f64)> = (0..nodes).map(|_| (rng.unit(), rng.unit())).collect();
    let far = |a: usize, b: usize| (at[a].0 - at[b].0).hypot(at[a].1 - at[b].1);
    let mut links = std::collections::BTreeSet::new();
    for a in 0..nodes {
        let near = (0..a).min_by(|&x, &y| far(a, x).total_cmp(&far(a, y)));
        links.extend(near.map(|near| (near, a)));
        let mut order: Vec<usize> = (0..nodes).filter(|&b| b != a).collect();
        order.sort_by(|&x, &y| far(a, x).total_cmp(&far(a, y)));
        links.extend(order.iter().take(3).map(|&b| (a.min(b), a.max(b))));
    }
    let mut arcs = Vec::new();
    for (a, b) in links {
        let capacity = [10e9, 40e9, 100e9][rng.below(3)];
        both_ways(&mut arcs, a, b, capacity, far(a, b) * 0.02);
    }
    arcs
}

/// Equal links in a square.
fn grid(side: usize) -> Vec<Arc> {
    let mut arcs = Vec::new();
    for node in 0..side * side {
        let right = (node % side + 1 < side).then_some(node + 1);
        let below = (node + side < side * side).then_some(node + side);
        for other in right.into_iter().chain(below) {
            both_ways(&mut arcs, node, other, 10e9, 1e-3);
        }
    }
    arcs
}

fn gravity(nodes: usize, flows: usize, load: f64, rng: &mut Rng) -> Vec<Flow> {
    let mass = |_| -rng.unit().max(1e-9).ln();
    let mass: Vec<f64> = (0..nodes).map(mass).collect();
    let mut made = Vec::new();
    while made.len() < flows {
        let (s, t) = (rng.below(nodes), rng.below(nodes));
        if s != t {
            made.push(Flow::new(s, t, load * mass[s] * mass[t] * 1e9));
        }
    }
    made
}

/// Times of a change and the solve after it, this many times over.
fn times(engine: &mut Engine, count: usize, mut change: impl FnMut(&mut Engine, usize)) -> String {
    let timed = |at: usize| {
        let start = cpu_ms();
        change(engine, at);
        engine.solve().expect("it solves");
        cpu_ms() - start
    };
    let mut times: Vec<f64> = (0..count).map(timed).collect();
    times.sort_by(f64::total_cmp);
    let at = |q: f64| times[((times.len() - 1) as f64 * q) as usize];
    format!(
        "p50 {:.3} p95 {:.3} max {:.3} ms",
        at(0.5),
        at(0.95),
        at(1.0)
    )
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let text = |name: &str| {
        let at = args.iter().position(|a| a == name)?;
        args.get(at + 1).cloned()
    };
    let number = |name: &str, or: f64| text(name).and_then(|v| v.parse().ok()).unwrap_or(or);
    let mut rng = Rng(number("--seed", 1.0) as u64);
    let side = number("--grid", 0.0) as usize;
    let (nodes, arcs) = match side {
        0 => {
            let nodes = number("--nodes", 100.0) as usize;
            (nodes, geometric(nodes, &mut rng))
        }
        _ => (side * side, grid(side)),
    };
    let (flows, load) = (number("--flows", 1000.0) as usize, number("--load", 1.0));
    let flows = gravity(nodes, flows, load, &mut rng);
    let problem = Problem { nodes, arcs, flows };
    let name = text("--objective").unwrap_or_else(|| "max_throughput_min_delay".to_owned());
    let objective = Objective::from_name(&name).expect("--objective takes the name of one");
    let fresh = || Engine::new(&problem, objective).expect("the problem is valid");
    let mut engine = fresh();
    let runs = number("--runs", 5.0) as usize;
    let cold = times(&mut engine, runs, |engine, _| *engine = fresh());
    let s = engine.solve().expect("it solves");
    let share = s.admitted_bps / s.requested_bps;
    println!(
        "admitted {share:.4} gap {:.1e} {:?}",
        s.certificate.gap, s.effort
    );
    println!("cold  {cold}");
    let events = number("--events", 100.0) as usize;
    let rate = times(&mut engine, events, |engine, at| {
        let flow = at * 7919 % problem.flows.len();
        let rate_bps = problem.flows[(at * 104_729 + 1) % problem.flows.len()].rate_bps;
        engine.change_rate(flow, rate_bps).expect("it is there");
    });
    println!("rate  {rate}");
    let link = times(&mut engine, events, |engine, at| {
        let arc = at / 2 * 7919 % problem.arcs.len();
        let changed = match at % 2 {
            0 => engine.fail_link(arc),
            _ => engine.restore_link(arc),
        };
        changed.expect("it is there");
    });
    println!("link  {link}\n{:?}", engine.effort());
}
