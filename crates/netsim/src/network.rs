//! The graph: nodes, links in both directions, shortest paths.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::link::LinkSettings;
use crate::time::Nanos;

/// One direction of a link between two nodes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Arc {
    /// Node at which packets enter.
    pub tail: u32,
    /// Node at which they arrive.
    pub head: u32,
    /// Rate, delay, queue and faults.
    pub settings: LinkSettings,
}

/// Nodes are numbered in the order in which their names are first used. Link `i` has the arcs `2 i` and `2 i + 1`.
#[derive(Debug, Default)]
pub struct Network {
    names: Vec<String>,
    by_name: BTreeMap<String, u32>,
    arcs: Vec<Arc>,
    leaving: Vec<Vec<u32>>,
    /// Of two nodes the first arc from one to the other.
    between: BTreeMap<(u32, u32), u32>,
}

impl Network {
    /// The number of a node, new or known.
    pub fn intern(&mut self, name: &str) -> u32 {
        if let Some(&node) = self.by_name.get(name) {
            return node;
        }
        let node = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.by_name.insert(name.to_owned(), node);
        self.leaving.push(Vec::new());
        node
    }

    /// Join two nodes by a link, alike in both directions.
    pub fn join(&mut self, ends: [u32; 2], settings: LinkSettings) {
        for (tail, head) in [(ends[0], ends[1]), (ends[1], ends[0])] {
            let arc = self.arcs.len() as u32;
            self.leaving[tail as usize].push(arc);
            self.between.entry((tail, head)).or_insert(arc);
            self.arcs.push(Arc {
                tail,
                head,
                settings,
            });
        }
    }

    /// The number of a known node.
    pub fn node(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    /// The name of a node.
    pub fn name(&self, node: u32) -> &str {
        &self.names[node as usize]
    }

    /// All arcs.
    pub fn arcs(&self) -> &[Arc] {
        &self.arcs
    }

    /// The propagation delay of a path.
    pub fn delay(&self, path: &[u32]) -> Nanos {
        path.iter()
            .map(|&arc| self.arcs[arc as usize].settings.delay)
            .sum()
    }

    /// The first arc from one node to another.
    pub fn arc_between(&self, tail: u32, head: u32) -> Option<u32> {
        self.between.get(&(tail, head)).copied()
    }

    /// The arcs of a path of least delay: of several the one with the fewest links, then the first in the order of links.
    pub fn shortest_path(&self, source: u32, destination: u32) -> Option<Vec<u32>> {
        self.walk(source, destination, |_, candidates| candidates[0])
    }

    /// The arcs of one of the paths of least delay; each node takes the arc that `hash` of connection and node points to.
    pub fn hashed_path(
        &self,
        source: u32,
        destination: u32,
        hash: impl Fn(u32) -> u64,
    ) -> Option<Vec<u32>> {
        self.walk(source, destination, |node, candidates| {
            candidates[(hash(node) % candidates.len() as u64) as usize]
        })
    }

    /// Go from node to node along arcs that lie on a shortest path.
    fn walk(
        &self,
        source: u32,
        destination: u32,
        choose: impl Fn(u32, &[u32]) -> u32,
    ) -> Option<Vec<u32>> {
        let distance = self.distances_to(destination);
        let mut path = Vec::new();
        let mut node = source;
        while node != destination {
            let here = distance[node as usize]?;
            let candidates: Vec<u32> = self.leaving[node as usize]
                .iter()
                .copied()
                .filter(|&arc| {
                    let Arc { head, settings, .. } = self.arcs[arc as usize];
                    distance[head as usize]
                        == Some((here.0.wrapping_sub(settings.delay), here.1.wrapping_sub(1)))
                })
                .collect();
            let arc = choose(node, &candidates);
            path.push(arc);
            node = self.arcs[arc as usize].head;
        }
        Some(path)
    }

    /// Delay and number of links from each node to `destination` (Dijkstra; links are alike in both directions).
    fn distances_to(&self, destination: u32) -> Vec<Option<(Nanos, u32)>> {
        let mut distance = vec![None; self.names.len()];
        let mut frontier = BinaryHeap::from([Reverse(((0, 0), destination))]);
        while let Some(Reverse((so_far, node))) = frontier.pop() {
            if distance[node as usize].is_some() {
                continue;
            }
            distance[node as usize] = Some(so_far);
            for &arc in &self.leaving[node as usize] {
                let Arc { head, settings, .. } = self.arcs[arc as usize];
                if distance[head as usize].is_none() {
                    frontier.push(Reverse(((so_far.0 + settings.delay, so_far.1 + 1), head)));
                }
            }
        }
        distance
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MILLISECOND;

    fn network(links: &[(&str, &str, u64)]) -> Network {
        let mut network = Network::default();
        for &(a, b, delay_ms) in links {
            let ends = [network.intern(a), network.intern(b)];
            let settings = LinkSettings {
                rate_bps: 1_000_000,
                delay: delay_ms * MILLISECOND,
                queue_packets: None,
                queue_bytes: None,
                loss: 0.0,
                jitter: 0,
            };
            network.join(ends, settings);
        }
        network
    }

    fn names(network: &Network, path: &[u32]) -> String {
        path.iter()
            .map(|&arc| network.name(network.arcs()[arc as usize].head))
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn the_shortest_path_has_the_least_delay_then_the_fewest_links() {
        let net = network(&[
            ("A", "B", 4),
            ("A", "C", 1),
            ("C", "D", 1),
            ("D", "B", 1),
            ("A", "E", 2),
            ("E", "B", 1),
        ]);
        let path = net.shortest_path(0, 1).unwrap();
        assert_eq!(names(&net, &path), "E B");
        assert!(net.shortest_path(0, 0).unwrap().is_empty());
    }

    #[test]
    fn hashing_uses_all_paths_of_least_delay_and_no_other() {
        let net = network(&[
            ("A", "B", 1),
            ("B", "D", 1),
            ("A", "C", 1),
            ("C", "D", 1),
            ("A", "D", 3),
        ]);
        let destination = net.node("D").unwrap();
        let paths: Vec<String> = (0..2)
            .map(|hash| names(&net, &net.hashed_path(0, destination, |_| hash).unwrap()))
            .collect();
        assert_eq!(paths, ["B D", "C D"]);
    }

    #[test]
    fn nodes_that_are_apart_have_no_path() {
        let net = network(&[("A", "B", 1), ("C", "D", 1)]);
        assert_eq!(net.shortest_path(0, 2), None);
    }
}
