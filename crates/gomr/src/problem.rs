//! What is asked: a network, its capacities and the flows that want to cross it.

use std::fmt;

use crate::graph::{Graph, NONE};
use crate::solver::Effort;

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Arc {
    /// Node the arc leaves, below [`Problem::nodes`].
    pub tail: usize,
    /// Node the arc enters, below [`Problem::nodes`].
    pub head: usize,
    /// Capacity, bit/s; zero is a link that carries nothing.
    pub capacity_bps: f64,
    /// Propagation delay, seconds.
    pub delay_s: f64,
    /// Arc that carries the acknowledgements of data on this one; `None` loads no arc with them.
    pub reverse: Option<usize>,
}

impl Arc {
    /// An arc without a reverse.
    #[must_use]
    pub fn new(tail: usize, head: usize, capacity_bps: f64, delay_s: f64) -> Self {
        Self {
            tail,
            head,
            capacity_bps,
            delay_s,
            reverse: None,
        }
    }
}

/// A request for a rate between two nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Node the flow starts at.
    pub source: usize,
    /// Node the flow ends at; equal to `source` it is admitted in full and loads no arc.
    pub destination: usize,
    /// Wire rate asked for, bit/s.
    pub rate_bps: f64,
    /// Share of the flow in `fair` and `max_min` relative to others (no unit, above zero).
    pub weight: f64,
    /// Load of the acknowledgements per bit/s of data (0.0458 is one of 54 bytes per two 590-byte packets).
    pub ack_ratio: f64,
    /// Arcs that carry the acknowledgements of all its data; `None`: the reverse arcs of each path.
    pub ack_path: Option<Vec<usize>>,
    /// Longest delay a path of this flow may have, seconds.
    pub max_delay_s: Option<f64>,
    /// The only paths (arc indices) the flow may use; its rates on them are free.
    pub fixed_paths: Option<Vec<Vec<usize>>>,
}

impl Flow {
    /// A flow with weight 1, no ACK load and free choice of paths.
    #[must_use]
    pub fn new(source: usize, destination: usize, rate_bps: f64) -> Self {
        Self {
            source,
            destination,
            rate_bps,
            weight: 1.0,
            ack_ratio: 0.0,
            ack_path: None,
            max_delay_s: None,
            fixed_paths: None,
        }
    }
}

/// A network and its flows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Problem {
    /// Number of nodes; they are named 0, 1, ….
    pub nodes: usize,
    /// Directed arcs; parallel arcs are allowed.
    pub arcs: Vec<Arc>,
    /// Requests.
    pub flows: Vec<Flow>,
}

/// Why a problem, an event or a solve was refused.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// A field holds a value that has no meaning.
    Invalid {
        /// The field, for example `arcs[3].capacity_bps`.
        field: String,
        /// What is wrong with it and what is expected.
        reason: String,
    },
    /// An event names a flow that is not there.
    UnknownFlow {
        /// The number of the flow.
        flow: usize,
    },
    /// The time was up before the optimum; the next solve goes on from there.
    Halted {
        /// What was being solved for: `throughput`, `levels` or `utilisation`.
        stage: &'static str,
        /// Work done so far.
        effort: Effort,
    },
    /// The simplex stopped short of the optimum; nothing of its state is handed out.
    NotSolved {
        /// What it was doing.
        reason: String,
        /// What was being solved for, as in [`Error::Halted`].
        stage: &'static str,
        /// Work done so far.
        effort: Effort,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid { field, reason } => write!(f, "{field} {reason}"),
            Self::UnknownFlow { flow } => {
                write!(f, "there is no flow {flow}: it was removed or never added")
            }
            Self::Halted { stage, effort } => {
                write!(f, "halted after {} pivots ({stage})", effort.pivots)
            }
            Self::NotSolved {
                reason,
                stage,
                effort,
            } => {
                let pivots = effort.pivots;
                write!(f, "not solved after {pivots} pivots ({stage}): {reason}")
            }
        }
    }
}

impl std::error::Error for Error {}

pub(crate) fn invalid(field: String, reason: &str) -> Error {
    Error::Invalid {
        field,
        reason: reason.to_owned(),
    }
}

pub(crate) fn check_amount(field: impl Fn() -> String, value: f64) -> Result<(), Error> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    Err(invalid(
        field(),
        &format!("is {value}: it must be finite and not negative"),
    ))
}

impl Problem {
    /// Checks every field.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the first field that is wrong.
    pub fn validate(&self) -> Result<(), Error> {
        if self.nodes == 0 {
            return Err(invalid("nodes".into(), "is 0: a network has a node"));
        }
        for (index, arc) in self.arcs.iter().enumerate() {
            self.check_arc(index, arc)?;
        }
        for (index, flow) in self.flows.iter().enumerate() {
            check_flow(|| format!("flows[{index}]"), flow, self.nodes, &self.arcs)?;
        }
        Ok(())
    }

    fn check_arc(&self, index: usize, arc: &Arc) -> Result<(), Error> {
        for (name, node) in [("tail", arc.tail), ("head", arc.head)] {
            if node >= self.nodes {
                return Err(invalid(
                    format!("arcs[{index}].{name}"),
                    &format!("is {node}: the network has {} nodes", self.nodes),
                ));
            }
        }
        check_amount(|| format!("arcs[{index}].capacity_bps"), arc.capacity_bps)?;
        check_amount(|| format!("arcs[{index}].delay_s"), arc.delay_s)?;
        match arc.reverse {
            Some(reverse) if reverse >= self.arcs.len() => Err(invalid(
                format!("arcs[{index}].reverse"),
                &format!("is {reverse}: there are {} arcs", self.arcs.len()),
            )),
            _ => Ok(()),
        }
    }

    pub(crate) fn check_ends(&self, source: usize, destination: usize) -> Result<(), Error> {
        for (name, node) in [("source", source), ("destination", destination)] {
            if node >= self.nodes {
                let reason = format!("is {node}: the network has {} nodes", self.nodes);
                return Err(invalid(name.to_owned(), &reason));
            }
        }
        Ok(())
    }

    pub(crate) fn graph(&self) -> Graph {
        let ends = |end: fn(&Arc) -> usize| self.arcs.iter().map(|a| end(a) as u32).collect();
        Graph::new(
            self.nodes,
            ends(|a| a.tail),
            ends(|a| a.head),
            self.arcs.iter().map(|a| a.delay_s).collect(),
            self.arcs
                .iter()
                .map(|a| a.reverse.map_or(NONE, |r| r as u32))
                .collect(),
        )
    }
}

pub(crate) fn check_flow(
    name: impl Fn() -> String,
    flow: &Flow,
    nodes: usize,
    arcs: &[Arc],
) -> Result<(), Error> {
    let named = |field: &str| format!("{}.{field}", name());
    for (field, node) in [("source", flow.source), ("destination", flow.destination)] {
        if node >= nodes {
            return Err(invalid(
                named(field),
                &format!("is {node}: the network has {nodes} nodes"),
            ));
        }
    }
    check_amount(|| named("rate_bps"), flow.rate_bps)?;
    check_amount(|| named("ack_ratio"), flow.ack_ratio)?;
    check_amount(|| named("weight"), flow.weight)?;
    if flow.weight == 0.0 {
        return Err(invalid(named("weight"), "is 0: it must be above zero"));
    }
    if let Some(limit) = flow.max_delay_s {
        check_amount(|| named("max_delay_s"), limit)?;
    }
    for (index, path) in flow.fixed_paths.iter().flatten().enumerate() {
        let ends = (flow.source, flow.destination);
        check_path(&named(&format!("fixed_paths[{index}]")), ends, path, arcs)?;
    }
    if let Some(path) = &flow.ack_path {
        let start = path.first().and_then(|&arc| arcs.get(arc));
        let end = path.last().and_then(|&arc| arcs.get(arc));
        // Where nodes are split in two, its ends have other numbers than the flow's.
        let ends = start.zip(end).map(|(start, end)| (start.tail, end.head));
        let ends = ends.unwrap_or((flow.destination, flow.source));
        check_path(&named("ack_path"), ends, path, arcs)?;
    }
    Ok(())
}

fn check_path(name: &str, ends: (usize, usize), path: &[usize], arcs: &[Arc]) -> Result<(), Error> {
    let mut node = ends.0;
    let mut seen = vec![node];
    for &index in path {
        let Some(arc) = arcs.get(index) else {
            return Err(invalid(
                name.to_owned(),
                &format!("holds arc {index}, which is not there"),
            ));
        };
        if arc.tail != node {
            return Err(invalid(
                name.to_owned(),
                &format!("breaks before arc {index}"),
            ));
        }
        node = arc.head;
        if seen.contains(&node) {
            return Err(invalid(
                name.to_owned(),
                &format!("visits node {node} twice"),
            ));
        }
        seen.push(node);
    }
    if node != ends.1 {
        return Err(invalid(
            name.to_owned(),
            &format!("ends at node {node}, not at node {}", ends.1),
        ));
    }
    Ok(())
}
