//! A slow solver that is obviously right, and random networks.
#![allow(dead_code, missing_docs)]

use gomr::{Allocation, Arc, Flow, Problem};

/// SplitMix64.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// How many random problems a test tries.
pub fn cases(usually: u64) -> u64 {
    let given = std::env::var("GOMR_CASES");
    given.ok().and_then(|v| v.parse().ok()).unwrap_or(usually)
}

/// The largest capacity of an arc.
pub fn largest_bps(problem: &Problem) -> f64 {
    let capacities = problem.arcs.iter().map(|arc| arc.capacity_bps);
    capacities.fold(1e-300, f64::max)
}

/// What kind of numbers a random problem has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Small integers: many ties.
    Ties,
    /// Rates and capacities from 1 bit/s to 1 Tbit/s.
    Wide,
    /// Real numbers, ACK load.
    Acks,
    /// Delay limits and fixed paths.
    Limits,
}

pub const KINDS: [Kind; 4] = [Kind::Ties, Kind::Wide, Kind::Acks, Kind::Limits];

fn amount(kind: Kind, rng: &mut Rng) -> f64 {
    match kind {
        Kind::Ties => rng.below(4) as f64,
        Kind::Wide => 10f64.powf(12.0 * rng.unit()),
        _ => 10.0 * rng.unit(),
    }
}

fn capacity(kind: Kind, rng: &mut Rng) -> f64 {
    if rng.below(10) == 0 {
        return 0.0;
    }
    amount(kind, rng)
}

pub fn random_flow(kind: Kind, nodes: usize, arcs: &[Arc], rng: &mut Rng) -> Flow {
    let mut flow = Flow::new(rng.below(nodes), rng.below(nodes), amount(kind, rng));
    flow.weight = rng.pick(&[1.0, 1.0, 2.0, 0.5]);
    if kind == Kind::Acks && rng.below(2) == 0 {
        flow.ack_ratio = rng.pick(&[0.0458, 0.5]);
        let back = simple_paths(nodes, arcs, flow.destination, flow.source);
        if rng.below(3) == 0 && flow.source != flow.destination && !back.is_empty() {
            flow.ack_path = Some(back[rng.below(back.len())].clone());
        }
    }
    if kind == Kind::Limits {
        if rng.below(2) == 0 {
            flow.max_delay_s = Some(rng.below(6) as f64);
        }
        if rng.below(4) == 0 && flow.source != flow.destination {
            let all = simple_paths(nodes, arcs, flow.source, flow.destination);
            if !all.is_empty() {
                let some = (0..1 + rng.below(2)).map(|_| all[rng.below(all.len())].clone());
                flow.fixed_paths = Some(some.collect());
            }
        }
    }
    flow
}

/// Adds a link between two nodes, with a capacity for each way.
pub fn push_link(
    arcs: &mut Vec<Arc>,
    (a, b): (usize, usize),
    capacities_bps: [f64; 2],
    delay_s: f64,
) {
    let first = arcs.len();
    for (way, (tail, head)) in [(a, b), (b, a)].into_iter().enumerate() {
        arcs.push(Arc {
            tail,
            head,
            capacity_bps: capacities_bps[way],
            delay_s,
            reverse: Some(first + 1 - way),
        });
    }
}

/// A random multigraph of 2 to 6 nodes with up to 8 flows.
pub fn random_problem(kind: Kind, rng: &mut Rng) -> Problem {
    let nodes = 2 + rng.below(5);
    let links = 1 + rng.below(9);
    let mut arcs: Vec<Arc> = Vec::new();
    for _ in 0..links {
        let (a, b) = (rng.below(nodes), rng.below(nodes));
        let delay_s = match kind {
            Kind::Ties | Kind::Limits => rng.below(3) as f64,
            _ => rng.unit() * 0.05,
        };
        let capacities_bps = [capacity(kind, rng), capacity(kind, rng)];
        push_link(&mut arcs, (a, b), capacities_bps, delay_s);
    }
    let flows = (0..rng.below(9))
        .map(|_| random_flow(kind, nodes, &arcs, rng))
        .collect();
    Problem { nodes, arcs, flows }
}

/// Takes all limits off the flows' paths.
pub fn without_limits(problem: &mut Problem) {
    for flow in &mut problem.flows {
        flow.fixed_paths = None;
        flow.ack_path = None;
        flow.max_delay_s = None;
    }
}

/// The problem with every pair of nodes asking for something, some for nothing.
pub fn all_pairs(mut problem: Problem, rng: &mut Rng) -> Problem {
    let most = largest_bps(&problem).max(1.0);
    problem.flows.clear();
    for source in 0..problem.nodes {
        for target in 0..problem.nodes {
            let rate_bps = rng.pick(&[0.0, 0.1, 0.5, 1.0]) * rng.unit() * most;
            problem.flows.push(Flow::new(source, target, rate_bps));
        }
    }
    problem
}

/// All simple paths as arc lists.
pub fn simple_paths(nodes: usize, arcs: &[Arc], s: usize, t: usize) -> Vec<Vec<usize>> {
    fn walk(
        arcs: &[Arc],
        at: usize,
        t: usize,
        seen: &mut Vec<bool>,
        path: &mut Vec<usize>,
        all: &mut Vec<Vec<usize>>,
    ) {
        if at == t {
            all.push(path.clone());
            return;
        }
        for (i, arc) in arcs.iter().enumerate() {
            if arc.tail == at && !seen[arc.head] {
                seen[arc.head] = true;
                path.push(i);
                walk(arcs, arc.head, t, seen, path, all);
                path.pop();
                seen[arc.head] = false;
            }
        }
    }
    let mut all = Vec::new();
    let mut seen = vec![false; nodes];
    seen[s] = true;
    walk(arcs, s, t, &mut seen, &mut Vec::new(), &mut all);
    all
}

/// Rows a column loads, and how much.
type Loads = Vec<(usize, f64)>;

/// Maximise `c x` with `A x <= b`, `x >= 0`, `b >= 0`: textbook tableau with Bland's rule.
pub struct Tableau {
    rows: Vec<Vec<f64>>,
    basis: Vec<usize>,
    columns: usize,
}

impl Tableau {
    pub fn new(a: &[Vec<f64>], b: &[f64], columns: usize) -> Self {
        let m = a.len();
        let rows = (0..m)
            .map(|i| {
                let mut row = a[i].clone();
                row.extend((0..m).map(|j| if i == j { 1.0 } else { 0.0 }));
                row.push(b[i]);
                row
            })
            .collect();
        Self {
            rows,
            basis: (columns..columns + m).collect(),
            columns,
        }
    }

    /// Optimum under objectives of falling importance.
    pub fn maximise(&mut self, objectives: &[Vec<f64>]) -> Vec<f64> {
        let total = self.columns + self.rows.len();
        let mut blocked = vec![false; total];
        for objective in objectives {
            let cost = |j: usize| objective.get(j).copied().unwrap_or(0.0);
            loop {
                let reduced = |j: usize| {
                    cost(j)
                        - (0..self.rows.len())
                            .map(|i| cost(self.basis[i]) * self.rows[i][j])
                            .sum::<f64>()
                };
                let enter = (0..total)
                    .find(|&j| !blocked[j] && !self.basis.contains(&j) && reduced(j) > 1e-9);
                let Some(enter) = enter else {
                    // Only columns that cost the optimum nothing may move later.
                    for (j, blocked) in blocked.iter_mut().enumerate() {
                        *blocked |= !self.basis.contains(&j) && reduced(j) < -1e-9;
                    }
                    break;
                };
                self.pivot_in(enter, total);
            }
        }
        let mut x = vec![0.0; self.columns];
        for (i, &j) in self.basis.iter().enumerate() {
            if j < self.columns {
                x[j] = self.rows[i][total];
            }
        }
        x
    }

    fn pivot_in(&mut self, enter: usize, total: usize) {
        let mut best: Option<(f64, usize, usize)> = None;
        for (i, row) in self.rows.iter().enumerate() {
            if row[enter] > 1e-9 {
                let now = (row[total] / row[enter], self.basis[i], i);
                if best.map_or(true, |b| (now.0, now.1) < (b.0, b.1)) {
                    best = Some(now);
                }
            }
        }
        let (_, _, r) = best.expect("bounded");
        let scale = 1.0 / self.rows[r][enter];
        self.rows[r].iter_mut().for_each(|v| *v *= scale);
        let pivot = self.rows[r].clone();
        for (i, row) in self.rows.iter_mut().enumerate() {
            let factor = row[enter];
            if i != r && factor != 0.0 {
                for (v, p) in row.iter_mut().zip(&pivot) {
                    *v -= factor * p;
                }
                row[enter] = 0.0;
            }
        }
        self.basis[r] = enter;
    }
}

/// All paths a flow may use.
pub fn allowed_paths(problem: &Problem, flow: &Flow) -> Vec<Vec<usize>> {
    let all = match &flow.fixed_paths {
        Some(paths) => paths.clone(),
        None => simple_paths(problem.nodes, &problem.arcs, flow.source, flow.destination),
    };
    let delay = |p: &Vec<usize>| p.iter().map(|&a| problem.arcs[a].delay_s).sum::<f64>();
    let limit = flow.max_delay_s.unwrap_or(f64::INFINITY);
    all.into_iter()
        .filter(|p| delay(p) <= limit * (1.0 + 1e-12))
        .collect()
}

/// Load on each arc per unit of data on a path, acknowledgements included.
pub fn loads_of(problem: &Problem, flow: &Flow, path: &[usize]) -> Vec<(usize, f64)> {
    let mut loads: Loads = path.iter().map(|&arc| (arc, 1.0)).collect();
    let reverse = path.iter().filter_map(|&arc| problem.arcs[arc].reverse);
    match &flow.ack_path {
        Some(acks) => loads.extend(acks.iter().map(|&arc| (arc, flow.ack_ratio))),
        None => loads.extend(reverse.map(|arc| (arc, flow.ack_ratio))),
    }
    loads
}

/// First objective (worth of the parts) and second objective (delay) by brute force.
///
/// `parts` splits a flow into (worth per unit, request).
pub fn brute_force(problem: &Problem, parts: impl Fn(&Flow) -> Vec<(f64, f64)>) -> (f64, f64, f64) {
    let scale = largest_bps(problem).max(1.0);
    let mut columns: Vec<(f64, f64, Loads)> = Vec::new();
    let mut b: Vec<f64> = problem
        .arcs
        .iter()
        .map(|a| a.capacity_bps / scale)
        .collect();
    let mut local = 0.0;
    for flow in &problem.flows {
        if flow.source == flow.destination {
            local += flow.rate_bps;
            continue;
        }
        let paths = allowed_paths(problem, flow);
        for (worth, request) in parts(flow) {
            let row = b.len();
            b.push(request / scale);
            for path in &paths {
                let delay = path.iter().map(|&arc| problem.arcs[arc].delay_s).sum();
                let mut loads = loads_of(problem, flow, path);
                loads.push((row, 1.0));
                columns.push((worth, delay, loads));
            }
        }
    }
    let mut a = vec![vec![0.0; columns.len()]; b.len()];
    for (j, (_, _, loads)) in columns.iter().enumerate() {
        for &(row, load) in loads {
            a[row][j] += load;
        }
    }
    let first: Vec<f64> = columns.iter().map(|c| c.0).collect();
    let second: Vec<f64> = columns.iter().map(|c| -c.1).collect();
    let x = Tableau::new(&a, &b, columns.len()).maximise(&[first.clone(), second.clone()]);
    let dot = |c: &[f64]| c.iter().zip(&x).map(|(c, x)| c * x).sum::<f64>() * scale;
    (
        dot(&first) + local,
        -dot(&second),
        x.iter().sum::<f64>() * scale + local,
    )
}

/// Conservation, capacities, requests, path rules and totals of an allocation.
pub fn check_feasible(problem: &Problem, allocation: &Allocation, what: &str) {
    let largest = largest_bps(problem);
    let mut load = vec![0.0; problem.arcs.len()];
    let mut admitted = 0.0;
    let mut cost = 0.0;
    assert_eq!(allocation.flows.len(), problem.flows.len(), "{what}");
    for (got, flow) in allocation.flows.iter().zip(&problem.flows) {
        let mut rate = 0.0;
        for path in &got.paths {
            assert!(path.rate_bps > 0.0, "{what}");
            let mut at = flow.source;
            for &arc in &path.arcs {
                assert_eq!(problem.arcs[arc].tail, at, "{what}");
                at = problem.arcs[arc].head;
            }
            for (arc, factor) in loads_of(problem, flow, &path.arcs) {
                load[arc] += factor * path.rate_bps;
            }
            assert_eq!(at, flow.destination, "{what}");
            if let Some(limit) = flow.max_delay_s {
                assert!(path.delay_s <= limit * (1.0 + 1e-9), "{what}");
            }
            if let Some(fixed) = &flow.fixed_paths {
                assert!(fixed.contains(&path.arcs), "{what}");
            }
            rate += path.rate_bps;
            cost += path.rate_bps * path.delay_s;
        }
        assert!(
            rate <= flow.rate_bps + 1e-9 * largest.max(flow.rate_bps),
            "{what}"
        );
        admitted += rate;
    }
    for (e, arc) in problem.arcs.iter().enumerate() {
        assert!(
            load[e] <= arc.capacity_bps + 1e-9 * largest,
            "{what}: arc {e} {}",
            load[e]
        );
    }
    let s = &allocation.summary;
    assert!(
        close(admitted, s.admitted_bps, 1e-3 * largest),
        "{what}: {admitted} {s:?}"
    );
    assert!(
        close(cost, s.cost_bps_s, 1e-2 * largest),
        "{what}: {cost} {s:?}"
    );
    assert!(s.certificate.gap <= 1e-9, "{what}: {s:?}");
    assert!(
        s.certificate.max_violation_bps <= 1e-9 * largest,
        "{what}: {s:?}"
    );
}

pub fn close(a: f64, b: f64, scale: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(scale)
}
