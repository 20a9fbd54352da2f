//! `gomr._native`: the routing engine for Python. Converts and nothing else; see `gomr/_native.pyi`.
// The functions' documentation for users is in the stub; PyO3's macros make items of their own.
#![allow(missing_docs)]

mod columns;
mod least_delay;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::gomr::{Apart, Changes, Effort, Error, FlowAllocation, HaltTest, Problem};
use pyo3::exceptions::{PyLookupError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use columns::{floats, objective_of, Audit, Flows, PathRates};

pyo3::create_exception!(gomr._native, InvalidInput, PyValueError);
pyo3::create_exception!(gomr._native, NotSolved, PyRuntimeError);
pyo3::create_exception!(gomr._native, TimeIsUp, NotSolved);

fn refuse(error: Error) -> PyErr {
    match error {
        Error::Invalid { field, reason } => InvalidInput::new_err((field, reason)),
        Error::UnknownFlow { .. } => PyLookupError::new_err(error.to_string()),
        Error::NotSolved {
            reason,
            stage,
            effort,
        } => NotSolved::new_err((reason, State::new(stage, effort))),
        Error::Halted { stage, effort } => {
            TimeIsUp::new_err(("the time is up".to_owned(), State::new(stage, effort)))
        }
    }
}

/// How far an engine had come, a dict in Python.
#[derive(IntoPyObject)]
struct State {
    stage: &'static str,
    pivots: usize,
    pricing_passes: usize,
    paths: usize,
    full_edges: usize,
}

impl State {
    fn new(stage: &'static str, effort: Effort) -> Self {
        Self {
            stage,
            pivots: effort.pivots,
            pricing_passes: effort.passes,
            paths: effort.columns,
            full_edges: effort.saturated,
        }
    }
}

/// Tail, head, capacity (bit/s), delay (s), reverse arc.
type ArcFields = (usize, usize, f64, f64, Option<usize>);

/// Source, destination, rate (bit/s), weight, ACK ratio, longest delay (s), fixed paths, ACK path.
pub(crate) type FlowFields = (
    usize,
    usize,
    f64,
    f64,
    f64,
    Option<f64>,
    Option<Vec<Vec<usize>>>,
    Option<Vec<usize>>,
);

pub(crate) fn flow_of(fields: FlowFields) -> ::gomr::Flow {
    let (source, destination, rate_bps, weight, ack_ratio, max_delay_s, fixed_paths, ack_path) =
        fields;
    ::gomr::Flow {
        source,
        destination,
        rate_bps,
        weight,
        ack_ratio,
        ack_path,
        max_delay_s,
        fixed_paths,
    }
}

/// Price of each arc, and the flows that these prices stop.
pub(crate) type CutFields = (Vec<f64>, Vec<u32>);

/// An answer with prices and cuts.
type Proved = (PathRates, Vec<f64>, Vec<CutFields>);

/// The number of a flow, and its paths: what stands for their arcs, and rate (bit/s).
type FlowPaths<'py> = (usize, Vec<(Bound<'py, PyTuple>, f64)>);

/// Totals, and what changed.
type Changed<'py> = (Summary, Vec<FlowPaths<'py>>);

/// Totals, what changed, and whether that is the end of it.
type MinimumReallocation<'py> = (Summary, Vec<FlowPaths<'py>>, bool);

#[pyclass(module = "gomr._native", frozen, get_all)]
struct Summary {
    admitted_bps: f64,
    requested_bps: f64,
    cost_bps_s: f64,
    max_utilisation: f64,
    value: f64,
    upper_bound: f64,
    gap: f64,
    max_violation_bps: f64,
    pivots: usize,
    columns: usize,
}

impl From<::gomr::Summary> for Summary {
    fn from(from: ::gomr::Summary) -> Self {
        Self {
            admitted_bps: from.admitted_bps,
            requested_bps: from.requested_bps,
            cost_bps_s: from.cost_bps_s,
            max_utilisation: from.max_utilisation,
            value: from.certificate.value,
            upper_bound: from.certificate.upper_bound,
            gap: from.certificate.gap,
            max_violation_bps: from.certificate.max_violation_bps,
            pivots: from.effort.pivots,
            columns: from.effort.columns,
        }
    }
}

#[pyclass(module = "gomr._native", frozen)]
pub(crate) struct Network {
    pub(crate) problem: Problem,
    search: ::gomr::PathSearch,
    /// What stands for each arc in paths.
    labels: Vec<Py<PyAny>>,
}

impl Network {
    /// The problem of these flows.
    pub(crate) fn with(&self, flows: &Flows) -> Problem {
        Problem {
            flows: flows.flows.clone(),
            ..self.problem.clone()
        }
    }

    fn paths_of<'py>(&self, py: Python<'py>, flow: &FlowAllocation) -> PyResult<FlowPaths<'py>> {
        let paths = flow.paths.iter().map(|path| {
            let labels = path.arcs.iter().map(|&arc| &self.labels[arc]);
            PyTuple::new(py, labels).map(|labels| (labels, path.rate_bps))
        });
        Ok((flow.flow, paths.collect::<PyResult<_>>()?))
    }

    fn changed<'py>(&self, py: Python<'py>, changes: Changes) -> PyResult<Changed<'py>> {
        let paths = changes.flows.iter().map(|flow| self.paths_of(py, flow));
        let paths = paths.collect::<PyResult<_>>()?;
        Ok((changes.summary.into(), paths))
    }
}

#[pymethods]
impl Network {
    #[new]
    fn new(nodes: usize, arcs: Vec<ArcFields>, labels: Vec<Py<PyAny>>) -> PyResult<Self> {
        if labels.len() != arcs.len() {
            let reason = format!("are {}: there are {} arcs", labels.len(), arcs.len());
            return Err(InvalidInput::new_err(("labels".to_owned(), reason)));
        }
        let arcs = arcs.into_iter();
        let arcs = arcs.map(|(tail, head, capacity_bps, delay_s, reverse)| ::gomr::Arc {
            tail,
            head,
            capacity_bps,
            delay_s,
            reverse,
        });
        let problem = Problem {
            nodes,
            arcs: arcs.collect(),
            flows: Vec::new(),
        };
        problem.validate().map_err(refuse)?;
        let search = ::gomr::PathSearch::new(&problem);
        Ok(Self {
            problem,
            search,
            labels,
        })
    }

    fn shortest_paths(
        &self,
        py: Python<'_>,
        source: usize,
        destination: usize,
        count: usize,
    ) -> PyResult<Vec<Vec<usize>>> {
        py.detach(|| ::gomr::shortest_paths(&self.problem, source, destination, count))
            .map_err(refuse)
    }

    fn cheapest_path(
        &self,
        source: usize,
        destination: usize,
        lengths: Vec<f64>,
        max_delay_s: Option<f64>,
    ) -> PyResult<Option<Vec<u32>>> {
        let search = &self.search;
        let found = search.cheapest(lengths, source, destination, max_delay_s);
        found.map_err(refuse)
    }

    #[pyo3(signature = (flows, load=1.0, *, threads=1, time_limit_s=None, most_looks=None))]
    fn max_concurrent(
        &self,
        py: Python<'_>,
        flows: &Flows,
        load: f64,
        threads: usize,
        time_limit_s: Option<f64>,
        most_looks: Option<u64>,
    ) -> PyResult<Option<(f64, f64, bool)>> {
        let problem = self.with(flows);
        let halt = halt_after(time_limit_s, most_looks);
        let scaling = py.detach(|| ::gomr::max_concurrent(&problem, load, threads, halt));
        let scaling = scaling.map_err(refuse)?;
        Ok(scaling.map(|scaling| (scaling.factor, scaling.upper_bound, scaling.complete)))
    }

    #[pyo3(signature = (flows, *, time_limit_s=None))]
    fn max_concurrent_by_symmetry(
        &self,
        py: Python<'_>,
        flows: &Flows,
        time_limit_s: Option<f64>,
    ) -> PyResult<Option<(f64, f64)>> {
        let problem = self.with(flows);
        let halt = halt_after(time_limit_s, None);
        let scaling = py.detach(|| ::gomr::max_concurrent_by_symmetry(&problem, halt));
        let scaling = scaling.map_err(refuse)?;
        Ok(scaling.map(|scaling| (scaling.factor, scaling.upper_bound)))
    }

    #[pyo3(signature = (flows, *, threads=1, time_limit_s=None))]
    fn route_by_source(
        &self,
        py: Python<'_>,
        flows: &Flows,
        threads: usize,
        time_limit_s: Option<f64>,
    ) -> PyResult<Option<(PathRates, Vec<f64>, bool)>> {
        let problem = self.with(flows);
        let halt = halt_after(time_limit_s, None);
        let routed = py.detach(|| ::gomr::route_by_source(&problem, threads, halt));
        let routed = routed.map_err(refuse)?;
        Ok(routed.map(|routed| {
            let paths = routed.answer;
            (PathRates { paths }, routed.prices, routed.complete)
        }))
    }

    #[pyo3(signature = (flows, objective, *, time_limit_s=None))]
    fn solve_by_symmetry(
        &self,
        py: Python<'_>,
        flows: &Flows,
        objective: &str,
        time_limit_s: Option<f64>,
    ) -> PyResult<Option<Proved>> {
        let (problem, objective) = (self.with(flows), objective_of(objective)?);
        let halt = halt_after(time_limit_s, None);
        let solved = py.detach(|| ::gomr::solve_by_symmetry(&problem, objective, halt));
        Ok(solved.map_err(refuse)?.map(|solved| {
            let cuts = solved.cuts.into_iter().map(|cut| (cut.prices, cut.stopped));
            let paths = solved.answer;
            (PathRates { paths }, solved.prices, cuts.collect())
        }))
    }

    #[pyo3(signature = (source, destination, count, *, nodes))]
    fn disjoint_paths(
        &self,
        py: Python<'_>,
        source: usize,
        destination: usize,
        count: usize,
        nodes: bool,
    ) -> PyResult<Vec<Vec<usize>>> {
        let apart = if nodes { Apart::Nodes } else { Apart::Arcs };
        py.detach(|| ::gomr::disjoint_paths(&self.problem, source, destination, count, apart))
            .map_err(refuse)
    }
}

#[pyclass(module = "gomr._native")]
struct Engine {
    inner: ::gomr::Engine,
    network: Py<Network>,
}

#[pymethods]
impl Engine {
    #[new]
    #[pyo3(signature = (network, flows, objective, *, threads=1))]
    fn new(network: Py<Network>, flows: &Flows, objective: &str, threads: usize) -> PyResult<Self> {
        let objective = objective_of(objective)?;
        let problem = network.get().with(flows);
        let mut inner = ::gomr::Engine::new(&problem, objective).map_err(refuse)?;
        inner.set_threads(threads);
        Ok(Self { inner, network })
    }

    /// The rates of flows 0, 1, …, all at once.
    #[pyo3(signature = (rates_bps, /))]
    fn change_rates(&mut self, rates_bps: &[u8]) -> PyResult<()> {
        let rates_bps = floats("rates_bps", rates_bps)?;
        self.inner.change_rates(&rates_bps).map_err(refuse)
    }

    #[pyo3(signature = (*, time_limit_s=None, most_looks=None))]
    fn path_rates(
        &mut self,
        py: Python<'_>,
        time_limit_s: Option<f64>,
        most_looks: Option<u64>,
    ) -> PyResult<PathRates> {
        self.inner.set_halt(halt_after(time_limit_s, most_looks));
        let inner = &mut self.inner;
        let paths = py.detach(|| inner.path_rates()).map_err(refuse)?;
        Ok(PathRates { paths })
    }

    fn path_rates_so_far(&self, py: Python<'_>) -> PathRates {
        let inner = &self.inner;
        let paths = py.detach(|| inner.path_rates_so_far());
        PathRates { paths }
    }

    fn prices_so_far(&self) -> (Vec<f64>, Vec<CutFields>) {
        let (prices, cuts) = self.inner.prices_so_far();
        let cuts = cuts.into_iter().map(|cut| (cut.prices, cut.stopped));
        (prices, cuts.collect())
    }

    #[pyo3(signature = (flow, /))]
    fn add_flow(&mut self, flow: FlowFields) -> PyResult<usize> {
        self.inner.add_flow(flow_of(flow)).map_err(refuse)
    }

    #[pyo3(signature = (flow, /))]
    fn remove_flow(&mut self, flow: usize) -> PyResult<()> {
        self.inner.remove_flow(flow).map_err(refuse)
    }

    #[pyo3(signature = (flow, rate_bps, /))]
    fn change_rate(&mut self, flow: usize, rate_bps: f64) -> PyResult<()> {
        self.inner.change_rate(flow, rate_bps).map_err(refuse)
    }

    #[pyo3(signature = (arc, /))]
    fn fail_link(&mut self, arc: usize) -> PyResult<()> {
        self.inner.fail_link(arc).map_err(refuse)
    }

    #[pyo3(signature = (arc, /))]
    fn restore_link(&mut self, arc: usize) -> PyResult<()> {
        self.inner.restore_link(arc).map_err(refuse)
    }

    #[pyo3(signature = (arc, capacity_bps, /))]
    fn set_capacity(&mut self, arc: usize, capacity_bps: f64) -> PyResult<()> {
        self.inner.set_capacity(arc, capacity_bps).map_err(refuse)
    }

    #[pyo3(signature = (*, time_limit_s=None))]
    fn solve(&mut self, py: Python<'_>, time_limit_s: Option<f64>) -> PyResult<Summary> {
        self.limit(time_limit_s);
        let inner = &mut self.inner;
        let solved = py.detach(|| inner.solve()).map_err(refuse)?;
        Ok(solved.into())
    }

    #[pyo3(signature = (*, time_limit_s=None))]
    fn changes<'py>(
        &mut self,
        py: Python<'py>,
        time_limit_s: Option<f64>,
    ) -> PyResult<Changed<'py>> {
        self.limit(time_limit_s);
        let inner = &mut self.inner;
        let changes = py.detach(|| inner.changes()).map_err(refuse)?;
        self.network.get().changed(py, changes)
    }

    #[pyo3(signature = (resized, *, time_limit_s=None))]
    fn minimum_reallocation<'py>(
        &mut self,
        py: Python<'py>,
        resized: Vec<usize>,
        time_limit_s: Option<f64>,
    ) -> PyResult<MinimumReallocation<'py>> {
        self.limit(time_limit_s);
        let inner = &mut self.inner;
        let solved = py
            .detach(|| inner.minimum_reallocation(&resized))
            .map_err(refuse)?;
        let (summary, paths) = self.network.get().changed(py, solved.changes)?;
        Ok((summary, paths, solved.complete))
    }

    fn changes_so_far<'py>(&mut self, py: Python<'py>) -> PyResult<Changed<'py>> {
        let inner = &mut self.inner;
        let changes = py.detach(|| inner.changes_so_far()).map_err(refuse)?;
        self.network.get().changed(py, changes)
    }

    fn copy(&self, py: Python<'_>) -> Self {
        let inner = &self.inner;
        Self {
            inner: py.detach(|| inner.clone()),
            network: self.network.clone_ref(py),
        }
    }

    fn ignore_delays(&mut self) {
        self.inner.ignore_delays();
    }

    fn forget_poor_paths(&mut self) {
        self.inner.forget_poor_paths();
    }

    fn keep_shares(&mut self) {
        self.inner.keep_shares();
    }

    #[pyo3(signature = (flow, rates, /))]
    fn set_reported(&mut self, flow: usize, rates: Vec<(Vec<usize>, f64)>) -> PyResult<()> {
        let arcs = self.network.get().problem.arcs.len();
        if rates.iter().flat_map(|one| &one.0).any(|&arc| arc >= arcs) {
            let reason = format!("go beyond the {arcs} arcs of the network");
            return Err(InvalidInput::new_err(("rates".to_owned(), reason)));
        }
        self.inner.set_reported(flow, rates).map_err(refuse)
    }

    fn prices(&mut self, py: Python<'_>) -> PyResult<Vec<f64>> {
        let inner = &mut self.inner;
        py.detach(|| inner.prices()).map_err(refuse)
    }
}

impl Engine {
    fn limit(&mut self, time_limit_s: Option<f64>) {
        self.inner.set_halt(halt_after(time_limit_s, None));
    }
}

/// Halts when so much time has passed since the call, never for a time beyond what a clock counts, or at the look after so
/// many: the same on every machine.
fn halt_after(time_limit_s: Option<f64>, most_looks: Option<u64>) -> Option<HaltTest> {
    let limit = time_limit_s.and_then(|s| Duration::try_from_secs_f64(s.max(0.0)).ok());
    let until = limit.and_then(|limit| Instant::now().checked_add(limit));
    if until.is_none() && most_looks.is_none() {
        return None;
    }
    let left = AtomicU64::new(most_looks.unwrap_or(u64::MAX));
    let look = move || left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
    Some(Arc::new(move || {
        look().is_err() || until.is_some_and(|until| Instant::now() >= until)
    }))
}

#[pymodule]
#[pyo3(name = "_native")]
fn gomr_native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add_class::<PathRates>()?;
    module.add_class::<Audit>()?;
    module.add_class::<Engine>()?;
    module.add_class::<Flows>()?;
    module.add_class::<least_delay::LeastDelayTrees>()?;
    module.add_class::<Network>()?;
    module.add_class::<Summary>()?;
    module.add_function(wrap_pyfunction!(columns::audit, module)?)?;
    module.add_function(wrap_pyfunction!(columns::fit, module)?)?;
    module.add("InvalidInput", py.get_type::<InvalidInput>())?;
    module.add("NotSolved", py.get_type::<NotSolved>())?;
    module.add("TimeIsUp", py.get_type::<TimeIsUp>())
}
