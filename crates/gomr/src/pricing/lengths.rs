//! Arc lengths: cost and price, for each ACK ratio.

use crate::graph::{Graph, NONE};

/// Length of an arc for flows with an ACK ratio; infinite when they cannot use it.
pub(crate) fn arc_length(
    graph: &Graph,
    arc: usize,
    ack_ratio: f64,
    price: &[f64],
    usable: &[bool],
) -> f64 {
    if !usable[arc] {
        return f64::INFINITY;
    }
    let length = price[arc].max(0.0);
    let reverse = graph.reverse[arc];
    if ack_ratio == 0.0 || reverse == NONE {
        return length;
    }
    if !usable[reverse as usize] {
        return f64::INFINITY;
    }
    length + ack_ratio * price[reverse as usize].max(0.0)
}

/// Arc lengths, for each ACK ratio.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lengths {
    ratios: Vec<f64>,
    lengths: Vec<Vec<f64>>,
    /// Version since which each length, by class, is as it is.
    since: Vec<Vec<u32>>,
    version: u32,
}

impl Lengths {
    /// Number of the class of an ACK ratio; its lengths are set by the next [`Lengths::update`].
    pub fn class(&mut self, ack_ratio: f64) -> usize {
        let known = self.ratios.iter().position(|&ratio| ratio == ack_ratio);
        known.unwrap_or_else(|| {
            self.ratios.push(ack_ratio);
            self.lengths.push(Vec::new());
            self.since.push(Vec::new());
            self.ratios.len() - 1
        })
    }

    /// Takes the lengths `cost + price`; arcs that are not `usable` are out.
    pub fn update(&mut self, graph: &Graph, cost: &[f64], price: &[f64], usable: &[bool]) {
        let next = self.version + 1;
        let classes = self.ratios.iter().zip(&mut self.lengths);
        for ((&ratio, lengths), since) in classes.zip(&mut self.since) {
            if lengths.is_empty() {
                self.version = next;
            }
            lengths.resize(graph.arcs(), f64::INFINITY);
            since.resize(graph.arcs(), next);
            for (arc, length) in lengths.iter_mut().enumerate() {
                let now = cost[arc] + arc_length(graph, arc, ratio, price, usable);
                if std::mem::replace(length, now) != now {
                    since[arc] = next;
                    self.version = next;
                }
            }
        }
    }

    /// The lengths of a class.
    pub fn of(&self, class: usize) -> &[f64] {
        &self.lengths[class]
    }

    /// The lengths of each class.
    pub fn all(&self) -> &[Vec<f64>] {
        &self.lengths
    }

    /// The ACK ratio of a class.
    pub fn ratio(&self, class: usize) -> f64 {
        self.ratios[class]
    }

    /// Version since which each length of a class is as it is.
    pub fn since(&self, class: usize) -> &[u32] {
        &self.since[class]
    }

    /// Changes when a length does; never 0 after the first update with a class.
    pub fn version(&self) -> u32 {
        self.version
    }
}
