//! Measures the engine on congested gravity demands: cold, one flow event, one link failure.
//!
//! `bench [--nodes N | --graphml FILE | --grid SIDE] [--flows F | --all-pairs] [--admit 0.9 | --load X] [--events E] [--seed S] [--fair] [--survey FAILURES]`
//!
//! Times are CPU times of the thread, milliseconds. Where the admission is given, the load that leads to
//! it is found by bisection first.

use std::collections::BTreeMap;

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

/// Time since the first call, milliseconds.
fn wall_ms() -> f64 {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START
        .get_or_init(std::time::Instant::now)
        .elapsed()
        .as_secs_f64()
        * 1e3
}

fn cpu_ms() -> f64 {
    // Yielding makes the kernel bring the thread's run time up to date.
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text
        .split_whitespace()
        .next()
        .and_then(|v| v.parse::<f64>().ok());
    ns.unwrap_or(0.0) / 1e6
}

fn memory_mb() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|l| l.starts_with("VmHWM"));
    let kb = line
        .and_then(|l| l.split_whitespace().nth(1))
        .and_then(|v| v.parse::<f64>().ok());
    kb.unwrap_or(0.0) / 1024.0
}

fn both_ways(arcs: &mut Vec<Arc>, a: usize, b: usize, capacity_bps: f64, delay_s: f64) {
    let first = arcs.len();
    for (tail, head, reverse) in [(a, b, first + 1), (b, a, first)] {
        arcs.push(Arc {
            tail,
            head,
            capacity_bps,
            delay_s,
            reverse: Some(reverse),
        });
    }
}

fn geometric(nodes: usize, rng: &mut Rng) -> Problem {
    let at: Vec<(f64, f64)> = (0..nodes).map(|_| (rng.unit(), rng.unit())).collect();
    let far = |a: usize, b: usize| (at[a].0 - at[b].0).hypot(at[a].1 - at[b].1);
    let mut links: BTreeMap<(usize, usize), ()> = BTreeMap::new();
    for a in 1..nodes {
        let near = (0..a).min_by(|&x, &y| far(a, x).total_cmp(&far(a, y)));
        links.insert((near.unwrap_or(0), a), ());
    }
    for a in 0..nodes {
        let mut order: Vec<usize> = (0..nodes).filter(|&b| b != a).collect();
        order.sort_by(|&x, &y| far(a, x).total_cmp(&far(a, y)));
        for &b in order.iter().take(3) {
            links.insert((a.min(b), a.max(b)), ());
        }
    }
    let mut arcs = Vec::new();
    for &(a, b) in links.keys() {
        let capacity = [10e9, 40e9, 100e9][rng.below(3)];
        both_ways(&mut arcs, a, b, capacity, far(a, b) * 0.02);
    }
    Problem {
        nodes,
        arcs,
        flows: Vec::new(),
    }
}

fn graphml(path: &str) -> Problem {
    let text = std::fs::read_to_string(path).expect("the GraphML file can be read");
    let attribute = |tag: &str, name: &str| {
        let from = tag.find(&format!(" {name}=\""))? + name.len() + 3;
        Some(tag[from..].split('"').next().unwrap_or("").to_owned())
    };
    let mut keys = BTreeMap::new();
    let mut index = BTreeMap::new();
    let mut at: Vec<(Option<f64>, Option<f64>)> = Vec::new();
    let mut links = Vec::new();
    for piece in text.split('<').skip(1) {
        if piece.starts_with("key ") {
            if let (Some(id), Some(name)) = (attribute(piece, "id"), attribute(piece, "attr.name"))
            {
                keys.insert(id, name);
            }
        } else if piece.starts_with("node ") {
            index.insert(attribute(piece, "id").unwrap_or_default(), at.len());
            at.push((None, None));
        } else if piece.starts_with("data ") && links.is_empty() && !at.is_empty() {
            let name = attribute(piece, "key").and_then(|k| keys.get(&k).cloned());
            let value = piece
                .split('>')
                .nth(1)
                .and_then(|v| v.trim().parse::<f64>().ok());
            let last = at.len() - 1;
            match name.as_deref() {
                Some("Longitude") => at[last].0 = value,
                Some("Latitude") => at[last].1 = value,
                _ => {}
            }
        } else if piece.starts_with("edge ") {
            let end = |name| index[&attribute(piece, name).unwrap_or_default()];
            links.push((end("source"), end("target")));
        }
    }
    let mut arcs = Vec::new();
    for (a, b) in links.into_iter().filter(|(a, b)| a != b) {
        both_ways(&mut arcs, a, b, 10e9, distance_km(at[a], at[b]) * 5e-6);
    }
    Problem {
        nodes: at.len(),
        arcs,
        flows: Vec::new(),
    }
}

/// Great-circle distance of (longitude, latitude) in degrees; 50 km where a coordinate is missing.
fn distance_km(a: (Option<f64>, Option<f64>), b: (Option<f64>, Option<f64>)) -> f64 {
    let (Some(lon_a), Some(lat_a), Some(lon_b), Some(lat_b)) = (a.0, a.1, b.0, b.1) else {
        return 50.0;
    };
    let (p, q) = (lat_a.to_radians(), lat_b.to_radians());
    let h = ((q - p) / 2.0).sin().powi(2)
        + p.cos() * q.cos() * ((lon_b - lon_a).to_radians() / 2.0).sin().powi(2);
    (12742.0 * h.sqrt().asin()).max(1.0)
}

fn gravity(problem: &mut Problem, flows: usize, rng: &mut Rng) {
    let mass: Vec<f64> = (0..problem.nodes)
        .map(|_| -rng.unit().max(1e-9).ln())
        .collect();
    while problem.flows.len() < flows {
        let (s, t) = (rng.below(problem.nodes), rng.below(problem.nodes));
        if s != t {
            problem.flows.push(Flow::new(s, t, mass[s] * mass[t] * 1e9));
        }
    }
}

/// One flow between each ordered pair of nodes, by gravity.
fn all_pairs(problem: &mut Problem, rng: &mut Rng) {
    let mass: Vec<f64> = (0..problem.nodes)
        .map(|_| -rng.unit().max(1e-9).ln())
        .collect();
    for s in 0..problem.nodes {
        for t in (0..problem.nodes).filter(|&t| t != s) {
            problem.flows.push(Flow::new(s, t, mass[s] * mass[t] * 1e6));
        }
    }
}

/// Equal links in a square, with unit flows between random nodes.
fn grid(side: usize, flows: usize, rng: &mut Rng) -> Problem {
    let mut arcs = Vec::new();
    for node in 0..side * side {
        if node % side + 1 < side {
            both_ways(&mut arcs, node, node + 1, 10.0, 1.0);
        }
        if node + side < side * side {
            both_ways(&mut arcs, node, node + side, 10.0, 1.0);
        }
    }
    let nodes = side * side;
    let mut flows_made = Vec::new();
    while flows_made.len() < flows {
        let (s, t) = (rng.below(nodes), rng.below(nodes));
        if s != t {
            flows_made.push(Flow::new(s, t, 1.0));
        }
    }
    Problem {
        nodes,
        arcs,
        flows: flows_made,
    }
}

fn scaled(problem: &Problem, load: f64) -> Problem {
    let mut scaled = problem.clone();
    scaled.flows.iter_mut().for_each(|f| f.rate_bps *= load);
    scaled
}

fn share(problem: &Problem, objective: Objective) -> f64 {
    let mut engine = Engine::new(problem, objective).expect("the problem is valid");
    let s = engine.solve().expect("it solves");
    s.admitted_bps / s.requested_bps
}

fn find_load(problem: &Problem, admit: f64, objective: Objective) -> f64 {
    let (mut low, mut high) = (1e-4f64, 1e4f64);
    for _ in 0..14 {
        let middle = (low * high).sqrt();
        if share(&scaled(problem, middle), objective) > admit {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

fn quantiles(mut times: Vec<f64>) -> String {
    times.sort_by(f64::total_cmp);
    let at = |q: f64| times[((times.len() - 1) as f64 * q) as usize];
    format!("p50 {:.3} p95 {:.3} max {:.3}", at(0.5), at(0.95), at(1.0))
}

fn timed(engine: &mut Engine) -> f64 {
    let start = cpu_ms();
    let before = engine.effort();
    engine.solve().expect("it solves");
    let ms = cpu_ms() - start;
    if std::env::var("GOMR_TRACE").is_ok() {
        let after = engine.effort();
        println!(
            "{ms:.3} ms, pivots {}, passes {}, columns {}, restarts {}",
            after.pivots - before.pivots,
            after.passes - before.passes,
            after.columns - before.columns,
            after.restarts - before.restarts
        );
    }
    ms
}

fn flow_events(engine: &mut Engine, problem: &Problem, events: usize, rng: &mut Rng) -> Vec<f64> {
    let mut live: Vec<usize> = (0..problem.flows.len()).collect();
    (0..events)
        .map(|i| {
            let start = cpu_ms();
            match i % 3 {
                0 => {
                    let flow = problem.flows[rng.below(problem.flows.len())].clone();
                    let (s, t) = (rng.below(problem.nodes), flow.destination);
                    if s != t {
                        let flow = Flow::new(s, t, flow.rate_bps);
                        live.push(engine.add_flow(flow).expect("it is valid"));
                    }
                }
                1 if !live.is_empty() => {
                    let id = live.swap_remove(rng.below(live.len()));
                    engine.remove_flow(id).expect("it is there");
                }
                _ if live.is_empty() => {}
                _ => {
                    let id = live[rng.below(live.len())];
                    let rate = problem.flows[rng.below(problem.flows.len())].rate_bps;
                    engine.change_rate(id, rate).expect("it is there");
                }
            }
            engine.solve().expect("it solves");
            cpu_ms() - start
        })
        .collect()
}

/// Fails links one at a time, each from a copy of the optimum without failures.
fn survey(problem: &Problem, failures: usize, rng: &mut Rng) {
    let start = cpu_ms();
    let objective = Objective::MaxThroughputMinDelay;
    let mut base = Engine::new(problem, objective).expect("valid");
    let whole = base.solve().expect("it solves");
    base.forget_poor_paths();
    base.ignore_delays();
    println!(
        "base ms           {:.1} {:?}",
        cpu_ms() - start,
        whole.effort
    );
    let (mut copies, mut solves) = (Vec::new(), Vec::new());
    for _ in 0..failures {
        let arc = rng.below(problem.arcs.len());
        let start = cpu_ms();
        let mut engine = base.clone();
        copies.push(cpu_ms() - start);
        let start = cpu_ms();
        for failed in [Some(arc), problem.arcs[arc].reverse].into_iter().flatten() {
            engine.fail_link(failed).expect("it is there");
        }
        timed(&mut engine);
        solves.push(cpu_ms() - start);
    }
    println!("copy ms           {}", quantiles(copies));
    println!("sum {:.0} ms", solves.iter().sum::<f64>());
    println!("failure ms        {}", quantiles(solves));
}

/// Scales the demands to a load and routes them by source.
fn by_source(base: &Problem, load: f64, threads: usize) {
    let start = wall_ms();
    let most = gomr::max_concurrent(base, load.max(1.0), threads, None);
    let most = most.expect("it solves").expect("without limits");
    println!("{most:?}, wall ms {:.0}", wall_ms() - start);
    let problem = scaled(base, load.min(1.0) * most.factor);
    let start = wall_ms();
    let routed = gomr::route_by_source(&problem, threads, None);
    let routed = routed.expect("it solves").expect("without limits");
    println!("routed, wall ms {:.0}", wall_ms() - start);
    let objective = Objective::MaxThroughputMinDelay;
    let audit = gomr::audit(&problem, &routed.answer, objective, &routed.prices, &[]);
    let audit = audit.expect("the paths lead to their ends");
    println!(
        "paths {} admitted {:.9} gap {:.1e} over {:.1e} cost {:.12e}, memory MB {:.1}",
        routed.answer.flow.len(),
        audit.admitted_bps / audit.requested_bps,
        1.0 - audit.value / audit.upper_bound,
        audit.max_violation_bps,
        audit.cost_bps_s,
        memory_mb()
    );
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let text = |name: &str| {
        let at = args.iter().position(|a| a == name)?;
        args.get(at + 1).cloned()
    };
    let number = |name: &str, or: f64| text(name).and_then(|v| v.parse().ok()).unwrap_or(or);
    let mut rng = Rng(number("--seed", 1.0) as u64);
    let fair = args.iter().any(|a| a == "--fair");
    let objective = match text("--objective") {
        Some(name) => Objective::from_name(&name).expect("--objective takes the name of one"),
        None if fair => Objective::Fair,
        None => Objective::MaxThroughputMinDelay,
    };
    let mut base = match text("--graphml") {
        Some(path) => graphml(&path),
        None => geometric(number("--nodes", 100.0) as usize, &mut rng),
    };
    let flows = number("--flows", 1000.0) as usize;
    if let Some(side) = text("--grid") {
        base = grid(
            side.parse().expect("--grid takes a number"),
            flows,
            &mut rng,
        );
    } else if args.iter().any(|a| a == "--all-pairs") {
        all_pairs(&mut base, &mut rng);
    } else {
        gravity(&mut base, flows, &mut rng);
    }
    let threads = number("--threads", 1.0) as usize;
    if args.iter().any(|a| a == "--by-source") {
        by_source(&base, number("--load", 0.9), threads);
        return;
    }
    let load = match text("--load") {
        Some(load) => load.parse().expect("--load takes a number"),
        None => find_load(&base, number("--admit", 0.9), objective),
    };
    let problem = scaled(&base, load);
    if let Some(failures) = text("--survey") {
        let failures = failures.parse().expect("--survey takes a number");
        survey(&problem, failures, &mut rng);
        return;
    }
    let events = number("--events", 100.0) as usize;

    let runs = number("--runs", 5.0) as usize;
    let (mut cold, mut wall) = (Vec::new(), Vec::new());
    let mut engine = Engine::new(&problem, objective).expect("valid");
    for _ in 0..runs {
        let (start, wall_start) = (cpu_ms(), wall_ms());
        engine = Engine::new(&problem, objective).expect("valid");
        engine.set_threads(number("--threads", 1.0) as usize);
        engine.solve().expect("it solves");
        cold.push(cpu_ms() - start);
        wall.push(wall_ms() - wall_start);
    }
    let s = engine.solve().expect("it solves");
    println!(
        "nodes {} arcs {} flows {} load {load:.4} admitted {:.4} gap {:.1e} violation {:.1e} {:?}",
        problem.nodes,
        problem.arcs.len(),
        problem.flows.len(),
        s.admitted_bps / s.requested_bps,
        s.certificate.gap,
        s.certificate.max_violation_bps,
        s.effort
    );
    println!("cold ms           {}", quantiles(cold));
    println!("cold, wall ms     {}", quantiles(wall));
    if events > 0 {
        let times = flow_events(&mut engine, &problem, events, &mut rng);
        println!("flow event ms     {}", quantiles(times));
        let mut down = Vec::new();
        let mut up = Vec::new();
        for _ in 0..events.min(number("--failures", 50.0) as usize) {
            let arc = rng.below(problem.arcs.len());
            engine.fail_link(arc).expect("it is there");
            down.push(timed(&mut engine));
            engine.restore_link(arc).expect("it is there");
            up.push(timed(&mut engine));
        }
        println!("link failure ms   {}", quantiles(down));
        println!("link restored ms  {}", quantiles(up));
        println!("{:?}", engine.solve().expect("it solves").effort);
    }
    println!("memory MB         {:.1}", memory_mb());
}
