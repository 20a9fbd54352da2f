//! What switches do with packets, as programs of steps.
//!
//! A packet carries a cursor into one table of steps: a link to take, a split to draw at, or the end. Pinned, shortest and
//! hashed paths are rows of links; PPFS is a split in front of several rows, at the first switch of the path, so that the
//! draw happens there and then, for each packet by itself.

use crate::prefetch::prefetch;
use crate::random::{below, SplitMix64};

/// What happens next to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It is queued on this link.
    Link(u32),
    /// A switch draws its path.
    Split(u32),
    /// It is at its destination.
    Deliver,
}

const KIND_BITS: u32 = 2;

/// A path and its weight.
#[derive(Debug, Clone, PartialEq)]
pub struct WeightedPath {
    /// The links, first to last.
    pub links: Vec<u32>,
    /// Share of the packets, in any unit; not negative.
    pub weight: f64,
}

/// The steps of all routes, and the splits.
#[derive(Debug, Default)]
pub struct Switches {
    steps: Vec<u32>,
    splitters: Vec<Splitter>,
}

impl Switches {
    /// The step at `cursor`.
    pub fn step(&self, cursor: u32) -> Step {
        let code = self.steps[cursor as usize];
        match code & ((1 << KIND_BITS) - 1) {
            0 => Step::Link(code >> KIND_BITS),
            1 => Step::Split(code >> KIND_BITS),
            _ => Step::Deliver,
        }
    }

    /// Fetch the step at `cursor`.
    pub(crate) fn prefetch(&self, cursor: u32) {
        prefetch(&self.steps[cursor as usize]);
    }

    /// Add a route over one path; returns the cursor at its beginning.
    pub fn pin(&mut self, links: &[u32]) -> u32 {
        let cursor = self.steps.len() as u32;
        self.steps
            .extend(links.iter().map(|link| link << KIND_BITS));
        self.steps.push(2);
        cursor
    }

    /// Add a route that is drawn for each packet where the paths part; the weights' sum is not 0.
    pub fn split(&mut self, paths: &[WeightedPath], rng: SplitMix64) -> u32 {
        let shared = shared_length(paths);
        let branches = paths
            .iter()
            .map(|path| self.pin(&path.links[shared..]))
            .collect();
        let cursor = self.steps.len() as u32;
        self.steps.extend(
            paths[0].links[..shared]
                .iter()
                .map(|link| link << KIND_BITS),
        );
        self.steps
            .push((self.splitters.len() as u32) << KIND_BITS | 1);
        self.splitters.push(Splitter::new(paths, branches, rng));
        cursor
    }

    /// Draw the path of a packet: the cursor to go on at.
    pub fn draw(&mut self, splitter: u32) -> u32 {
        self.splitters[splitter as usize].draw()
    }

    /// Packets that took each path of a route, if it is a split one.
    pub fn split_counts(&self, mut cursor: u32) -> Option<&[u64]> {
        loop {
            match self.step(cursor) {
                Step::Link(_) => cursor += 1,
                Step::Split(index) => return Some(&self.splitters[index as usize].counts),
                Step::Deliver => return None,
            }
        }
    }
}

/// How many links all paths begin with: to the switch where they part, which is the first one where all paths are simple
/// and of least cost, and never behind a switch that could have split.
fn shared_length(paths: &[WeightedPath]) -> usize {
    let first = &paths[0].links;
    (0..first.len())
        .take_while(|&at| {
            paths
                .iter()
                .all(|path| path.links.get(at) == Some(&first[at]))
        })
        .count()
}

#[derive(Debug)]
struct Splitter {
    /// Upper bounds of the paths' shares of [0, 2^63).
    bounds: Vec<u64>,
    branches: Vec<u32>,
    counts: Vec<u64>,
    rng: SplitMix64,
}

impl Splitter {
    fn new(paths: &[WeightedPath], branches: Vec<u32>, rng: SplitMix64) -> Self {
        const WHOLE: f64 = (1u64 << 63) as f64;
        let total: f64 = paths.iter().map(|path| path.weight).sum();
        let mut sum = 0.0;
        let mut bounds: Vec<u64> = paths
            .iter()
            .map(|path| {
                sum += path.weight;
                (sum / total * WHOLE) as u64
            })
            .collect();
        // Rounding must leave no gap at the end; what follows the last path with a weight is empty.
        let last = paths
            .iter()
            .rposition(|path| path.weight > 0.0)
            .unwrap_or(0);
        bounds[last..].fill(1 << 63);
        Self {
            bounds,
            counts: vec![0; branches.len()],
            branches,
            rng,
        }
    }

    fn draw(&mut self) -> u32 {
        let point = below(&mut self.rng, 1 << 63);
        let chosen = self.bounds.partition_point(|&bound| bound <= point);
        self.counts[chosen] += 1;
        self.branches[chosen]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SeedableRng;

    fn walk(switches: &mut Switches, mut cursor: u32) -> Vec<u32> {
        let mut links = Vec::new();
        loop {
            match switches.step(cursor) {
                Step::Link(link) => {
                    links.push(link);
                    cursor += 1;
                }
                Step::Split(splitter) => cursor = switches.draw(splitter),
                Step::Deliver => return links,
            }
        }
    }

    #[test]
    fn a_pinned_route_is_its_links() {
        let mut switches = Switches::default();
        switches.pin(&[9]);
        let cursor = switches.pin(&[3, 1, 2]);
        assert_eq!(walk(&mut switches, cursor), [3, 1, 2]);
        assert_eq!(switches.split_counts(cursor), None);
    }

    #[test]
    fn a_split_route_follows_its_weights() {
        let mut switches = Switches::default();
        let paths = [
            (vec![0, 1, 5], 1.0),
            (vec![0, 2, 3, 5], 0.0),
            (vec![0, 4, 5], 3.0),
            (vec![0, 6], 0.0),
        ];
        let paths = paths.map(|(links, weight)| WeightedPath { links, weight });
        let cursor = switches.split(&paths, SplitMix64::seed_from_u64(5));
        assert_eq!(switches.step(cursor), Step::Link(0));
        for _ in 0..100_000 {
            let walked = walk(&mut switches, cursor);
            assert!(walked == paths[0].links || walked == paths[2].links);
        }
        let counts = switches.split_counts(cursor).unwrap();
        assert_eq!(counts.iter().sum::<u64>(), 100_000);
        assert!((24_500..25_500).contains(&counts[0]), "{counts:?}");
        assert_eq!((counts[1], counts[3]), (0, 0));
    }
}
