//! Paths of least delay towards nodes, kept while arcs go down and come up.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::graph::NONE;

/// Delay in nanoseconds and number of arcs to the root: whole numbers, so that ties are exact.
type Distance = (u64, u32);

const UNREACHABLE: Distance = (u64::MAX, u32::MAX);

/// One arc of the graph.
#[derive(Clone, Copy, Debug)]
pub struct DelayArc {
    /// Node that it leaves.
    pub tail: u32,
    /// Node that it enters.
    pub head: u32,
    /// Delay in nanoseconds.
    pub delay_ns: u64,
}

#[derive(Clone, Debug)]
struct DestinationTree {
    distance: Vec<Distance>,
    next: Vec<u32>,
}

/// Trees of least delay towards every node, each computed when it is first asked for.
///
/// Ties go to fewer arcs, then to the neighbour of the smaller number.
#[derive(Clone, Debug)]
pub struct LeastDelayTrees {
    arcs: Vec<DelayArc>,
    entering: Vec<Vec<u32>>,
    up: Vec<bool>,
    trees: Vec<Option<DestinationTree>>,
}

impl LeastDelayTrees {
    /// A graph whose arcs are all down.
    ///
    /// # Panics
    /// Where an arc names a node that is not below `nodes`.
    #[must_use]
    pub fn new(nodes: usize, arcs: Vec<DelayArc>) -> Self {
        let mut entering = vec![Vec::new(); nodes];
        for (number, arc) in (0_u32..).zip(&arcs) {
            assert!((arc.tail as usize) < nodes, "an arc leaves no node");
            entering[arc.head as usize].push(number);
        }
        Self {
            up: vec![false; arcs.len()],
            arcs,
            entering,
            trees: vec![None; nodes],
        }
    }

    /// Lets an arc go down or come up; returns the nodes whose trees that changes, of those asked for.
    ///
    /// # Panics
    /// Where there is no such arc.
    pub fn set_up(&mut self, arc: u32, up: bool) -> Vec<u32> {
        if self.up[arc as usize] == up {
            return Vec::new();
        }
        self.up[arc as usize] = up;
        let DelayArc {
            tail,
            head,
            delay_ns,
        } = self.arcs[arc as usize];
        let mut changed = Vec::new();
        for (root, slot) in (0_u32..).zip(&mut self.trees) {
            let Some(tree) = slot else { continue };
            let matters = if up {
                let onward = tree.distance[head as usize];
                onward != UNREACHABLE
                    && (onward.0 + delay_ns, onward.1 + 1) <= tree.distance[tail as usize]
            } else {
                tree.next[tail as usize] == arc
            };
            if matters {
                *slot = None;
                changed.push(root);
            }
        }
        changed
    }

    /// Of every node the arc by which it comes nearer to a root; `None` at the root and where none leads there.
    ///
    /// # Panics
    /// Where there is no such node.
    pub fn towards(&mut self, root: u32) -> impl Iterator<Item = Option<u32>> + '_ {
        if self.trees[root as usize].is_none() {
            self.trees[root as usize] = Some(self.grow(root));
        }
        let tree = self.trees[root as usize].as_ref();
        tree.into_iter()
            .flat_map(|tree| tree.next.iter().map(|&arc| (arc != NONE).then_some(arc)))
    }

    /// Dijkstra's algorithm from the root, against the arcs.
    fn grow(&self, root: u32) -> DestinationTree {
        let nodes = self.entering.len();
        let mut distance = vec![UNREACHABLE; nodes];
        let mut heap = BinaryHeap::from([Reverse(((0, 0), root))]);
        distance[root as usize] = (0, 0);
        while let Some(Reverse((reached, node))) = heap.pop() {
            if reached > distance[node as usize] {
                continue;
            }
            for &number in &self.entering[node as usize] {
                let arc = self.arcs[number as usize];
                let further = (reached.0 + arc.delay_ns, reached.1 + 1);
                if self.up[number as usize] && further < distance[arc.tail as usize] {
                    distance[arc.tail as usize] = further;
                    heap.push(Reverse((further, arc.tail)));
                }
            }
        }
        let next = self.next_arcs(root, &distance);
        DestinationTree { distance, next }
    }

    fn next_arcs(&self, root: u32, distance: &[Distance]) -> Vec<u32> {
        let mut next = vec![NONE; distance.len()];
        for (number, arc) in (0_u32..).zip(&self.arcs) {
            let (here, onward) = (distance[arc.tail as usize], distance[arc.head as usize]);
            if !self.up[number as usize] || arc.tail == root || onward == UNREACHABLE {
                continue;
            }
            if (onward.0 + arc.delay_ns, onward.1 + 1) != here {
                continue;
            }
            let best = &mut next[arc.tail as usize];
            if *best == NONE || arc.head < self.arcs[*best as usize].head {
                *best = number;
            }
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arc(tail: u32, head: u32, delay_ns: u64) -> DelayArc {
        DelayArc {
            tail,
            head,
            delay_ns,
        }
    }

    fn towards(nearest: &mut LeastDelayTrees, root: u32) -> Vec<Option<u32>> {
        nearest.towards(root).collect()
    }

    #[test]
    fn trees_follow_the_arcs() {
        // 0 -> 1 -> 3 and 0 -> 2 -> 3, the second quicker.
        let arcs = vec![arc(0, 1, 5), arc(1, 3, 5), arc(0, 2, 4), arc(2, 3, 5)];
        let mut nearest = LeastDelayTrees::new(4, arcs);
        assert_eq!(towards(&mut nearest, 3), [None; 4]);
        for number in 0..4 {
            nearest.set_up(number, true);
        }
        assert_eq!(towards(&mut nearest, 3), [Some(2), Some(1), Some(3), None]);
        assert_eq!(nearest.set_up(2, false), [3]);
        assert_eq!(towards(&mut nearest, 3), [Some(0), Some(1), Some(3), None]);
        assert_eq!(nearest.set_up(2, false), [0; 0], "it is down already");
        assert_eq!(nearest.set_up(2, true), [3]);
        assert_eq!(towards(&mut nearest, 3)[0], Some(2));
    }

    #[test]
    fn ties_go_to_fewer_arcs_then_to_the_smaller_number() {
        let arcs = vec![
            arc(0, 2, 1),
            arc(2, 3, 1),
            arc(0, 1, 1),
            arc(1, 3, 1),
            arc(0, 3, 2),
        ];
        let mut nearest = LeastDelayTrees::new(4, arcs);
        for number in 0..5 {
            nearest.set_up(number, true);
        }
        assert_eq!(towards(&mut nearest, 3)[0], Some(4));
        nearest.set_up(4, false);
        assert_eq!(towards(&mut nearest, 3)[0], Some(2));
    }

    #[test]
    fn a_tree_that_survives_changes_is_the_tree_of_what_is_left() {
        let mut state = 1_u64;
        let mut draw = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let nodes = 12;
        let arcs: Vec<DelayArc> = (0..60)
            .map(|_| arc(draw(12) as u32, draw(12) as u32, 1 + draw(4)))
            .filter(|arc| arc.tail != arc.head)
            .collect();
        let mut kept = LeastDelayTrees::new(nodes, arcs.clone());
        let mut up = vec![false; arcs.len()];
        for _ in 0..500 {
            let number = draw(arcs.len() as u64) as usize;
            up[number] = draw(3) > 0;
            kept.set_up(number as u32, up[number]);
            let mut fresh = LeastDelayTrees::new(nodes, arcs.clone());
            for (number, &is_up) in up.iter().enumerate() {
                fresh.set_up(number as u32, is_up);
            }
            for root in 0..nodes as u32 {
                assert_eq!(towards(&mut kept, root), towards(&mut fresh, root));
            }
        }
    }
}
