//! k shortest and disjoint paths against enumeration.
#![allow(missing_docs)]

mod common;

use common::{random_problem, simple_paths, Rng, KINDS};
use gomr::{disjoint_paths, shortest_paths, Apart, Problem};

fn enumerated(problem: &Problem, s: usize, t: usize) -> Vec<(f64, Vec<usize>)> {
    let open = |p: &Vec<usize>| p.iter().all(|&a| problem.arcs[a].capacity_bps > 0.0);
    let delay = |p: &[usize]| p.iter().map(|&a| problem.arcs[a].delay_s).sum::<f64>();
    let all = simple_paths(problem.nodes, &problem.arcs, s, t);
    let mut all: Vec<_> = all
        .into_iter()
        .filter(open)
        .map(|p| (delay(&p), p))
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all
}

#[test]
fn the_k_shortest_paths_are_found_in_order() {
    for kind in KINDS {
        for seed in 0..500 {
            let mut rng = Rng(seed * 4 + kind as u64);
            let problem = random_problem(kind, &mut rng);
            let (s, t) = (rng.below(problem.nodes), rng.below(problem.nodes));
            let expected = enumerated(&problem, s, t);
            let k = 1 + rng.below(12);
            let got = shortest_paths(&problem, s, t, k).expect("valid");
            assert_eq!(got.len(), k.min(expected.len()), "{kind:?} {seed}");
            for (path, (delay, _)) in got.iter().zip(&expected) {
                let (known, _) = expected
                    .iter()
                    .find(|(_, p)| p == path)
                    .expect("a simple path");
                assert!((known - delay).abs() <= 1e-12, "{kind:?} {seed}");
            }
            let mut unique = got.clone();
            unique.sort();
            unique.dedup();
            assert_eq!(unique.len(), got.len(), "{kind:?} {seed}");
        }
    }
}

/// Largest number of disjoint paths, and the least total delay of that many.
///
/// Each path comes with its delay and what it shares with no other.
fn best_disjoint(paths: &[(f64, Vec<usize>)], taken: &mut Vec<usize>, k: usize) -> (usize, f64) {
    let Some(((delay, path), rest)) = paths.split_first() else {
        return (0, 0.0);
    };
    let without = best_disjoint(rest, taken, k);
    if k == 0 || path.iter().any(|a| taken.contains(a)) {
        return without;
    }
    taken.extend(path);
    let with = best_disjoint(rest, taken, k - 1);
    taken.truncate(taken.len() - path.len());
    let with = (with.0 + 1, with.1 + delay);
    if with.0 > without.0 || (with.0 == without.0 && with.1 < without.1) {
        with
    } else {
        without
    }
}

/// The arcs of a path and, `apart` by nodes, the nodes between its ends (numbered after the arcs).
fn occupied(problem: &Problem, path: &[usize], apart: Apart) -> Vec<usize> {
    let mut own = path.to_vec();
    if apart == Apart::Nodes {
        let heads = path.iter().rev().skip(1).map(|&a| problem.arcs[a].head);
        own.extend(heads.map(|node| problem.arcs.len() + node));
    }
    own
}

fn compare_disjoint(apart: Apart) {
    for kind in KINDS {
        for seed in 0..500 {
            let mut rng = Rng(seed * 4 + kind as u64 + 31);
            let problem = random_problem(kind, &mut rng);
            let (s, t) = (rng.below(problem.nodes), rng.below(problem.nodes));
            let all: Vec<_> = enumerated(&problem, s, t)
                .into_iter()
                .map(|(delay, path)| (delay, occupied(&problem, &path, apart)))
                .collect();
            if s == t || all.len() > 14 {
                continue;
            }
            let k = 1 + rng.below(4);
            let (count, delay) = best_disjoint(&all, &mut Vec::new(), k);
            let got = disjoint_paths(&problem, s, t, k, apart).expect("valid");
            assert_eq!(got.len(), count, "{kind:?} {seed}");
            let total: f64 = got.iter().flatten().map(|&a| problem.arcs[a].delay_s).sum();
            assert!(
                (total - delay).abs() <= 1e-9,
                "{kind:?} {seed}: {total} {delay}"
            );
            let mut own: Vec<usize> = got
                .iter()
                .flat_map(|p| occupied(&problem, p, apart))
                .collect();
            let before = own.len();
            own.sort_unstable();
            own.dedup();
            assert_eq!(own.len(), before, "{kind:?} {seed}");
        }
    }
}

#[test]
fn arc_disjoint_paths_are_most_and_shortest() {
    compare_disjoint(Apart::Arcs);
}

#[test]
fn node_disjoint_paths_are_most_and_shortest() {
    compare_disjoint(Apart::Nodes);
}
