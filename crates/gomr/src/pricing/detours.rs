//! The shortest paths from a node that avoid some arcs, repaired when these change.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::graph::{Graph, NONE};

/// The shortest paths from a node that avoid all priced arcs.
#[derive(Clone, Debug)]
pub(crate) struct Detours {
    pub distance: Vec<f64>,
    pub parent: Vec<u32>,
    /// How many of the changes it knows of.
    pub applied: usize,
    /// Changes when a distance may have.
    pub version: u32,
}

/// Working memory of the repairs.
#[derive(Clone, Debug, Default)]
pub(crate) struct RepairScratch {
    /// 0: not looked at; 1: stays; 2: its way is gone.
    state: Vec<u8>,
    walk: Vec<u32>,
    gone: Vec<u32>,
    heap: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Detours {
    pub fn new(graph: &Graph, free: &[f64], avoided: &[bool], root: u32, applied: usize) -> Self {
        let mut ways = Self {
            distance: vec![f64::INFINITY; graph.nodes],
            parent: vec![NONE; graph.nodes],
            applied,
            version: 1,
        };
        ways.distance[root as usize] = 0.0;
        let mut heap = BinaryHeap::from([Reverse((0u64, root))]);
        ways.spread(graph, free, avoided, &mut heap);
        ways
    }

    /// Dijkstra from what is in the heap.
    fn spread(
        &mut self,
        graph: &Graph,
        free: &[f64],
        avoided: &[bool],
        heap: &mut BinaryHeap<Reverse<(u64, u32)>>,
    ) {
        while let Some(Reverse((bits, node))) = heap.pop() {
            let at = self.distance[node as usize];
            if bits > at.to_bits() {
                continue;
            }
            for &arc in graph.out(node as usize) {
                if avoided[arc as usize] {
                    continue;
                }
                let head = graph.head[arc as usize];
                let next = at + free[arc as usize];
                if next < self.distance[head as usize] {
                    self.distance[head as usize] = next;
                    self.parent[head as usize] = arc;
                    heap.push(Reverse((next.to_bits(), head)));
                }
            }
        }
    }

    /// Finds other paths where arcs are avoided from now on, and shorter ones over those that no longer are.
    pub fn repair(
        &mut self,
        graph: &Graph,
        free: &[f64],
        avoided: &[bool],
        root: u32,
        changes: &[u32],
        memory: &mut RepairScratch,
    ) {
        memory.heap.clear();
        let is_lost = |&arc: &u32| {
            avoided[arc as usize] && self.parent[graph.head[arc as usize] as usize] == arc
        };
        if changes.iter().any(is_lost) {
            self.version += 1;
            self.enter_again(graph, free, avoided, root, memory);
        }
        let lost = memory.heap.len();
        for &arc in changes.iter().filter(|&&arc| !avoided[arc as usize]) {
            let (tail, head) = (graph.tail[arc as usize], graph.head[arc as usize]);
            let over = self.distance[tail as usize] + free[arc as usize];
            if over < self.distance[head as usize] {
                self.distance[head as usize] = over;
                self.parent[head as usize] = arc;
                memory.heap.push(Reverse((over.to_bits(), head)));
            }
        }
        if memory.heap.len() > lost {
            self.version += 1;
        }
        self.spread(graph, free, avoided, &mut memory.heap);
    }

    /// Gives nodes whose way is gone the best way from one whose way is not, as far as there is one arc between.
    fn enter_again(
        &mut self,
        graph: &Graph,
        free: &[f64],
        avoided: &[bool],
        root: u32,
        memory: &mut RepairScratch,
    ) {
        self.list_gone(graph, avoided, root, memory);
        for &node in &memory.gone {
            self.distance[node as usize] = f64::INFINITY;
            self.parent[node as usize] = NONE;
        }
        for &node in &memory.gone {
            let mut least = f64::INFINITY;
            for &arc in graph.into(node as usize) {
                let tail = graph.tail[arc as usize] as usize;
                let next = self.distance[tail] + free[arc as usize];
                if memory.state[tail] == 1 && !avoided[arc as usize] && next < least {
                    least = next;
                    self.parent[node as usize] = arc;
                }
            }
            if least.is_finite() {
                self.distance[node as usize] = least;
                memory.heap.push(Reverse((least.to_bits(), node)));
            }
        }
    }

    /// Lists the nodes whose way is gone, and marks the others that can be reached.
    fn list_gone(&self, graph: &Graph, avoided: &[bool], root: u32, memory: &mut RepairScratch) {
        memory.state.clear();
        memory.state.resize(self.parent.len(), 0);
        memory.state[root as usize] = 1;
        memory.gone.clear();
        for node in 0..self.parent.len() as u32 {
            if !self.distance[node as usize].is_finite() {
                continue;
            }
            let mut at = node;
            let mut state = memory.state[at as usize];
            while state == 0 {
                memory.walk.push(at);
                let arc = self.parent[at as usize];
                at = graph.tail[arc as usize];
                state = match avoided[arc as usize] {
                    true => 2,
                    false => memory.state[at as usize],
                };
            }
            // What lies between the node and the first that is known shares its fate.
            while let Some(passed) = memory.walk.pop() {
                memory.state[passed as usize] = state;
                if state == 2 {
                    memory.gone.push(passed);
                }
            }
        }
    }
}
