//! Flows and answers as flat arrays: bytes of native numbers, which NumPy reads without a copy.

use ::gomr::{Cut, Flow, Objective};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::{flow_of, CutFields, FlowFields, InvalidInput, Network};

fn invalid(field: &str, reason: impl Into<String>) -> PyErr {
    InvalidInput::new_err((field.to_owned(), reason.into()))
}

fn numbers<const N: usize, T>(
    field: &str,
    bytes: &[u8],
    read: impl Fn([u8; N]) -> T,
) -> PyResult<Vec<T>> {
    let chunks = bytes.chunks_exact(N);
    if !chunks.remainder().is_empty() {
        return Err(invalid(field, format!("is no array of {N}-byte numbers")));
    }
    let values = chunks.map(|chunk| {
        let mut number = [0; N];
        number.copy_from_slice(chunk);
        read(number)
    });
    Ok(values.collect())
}

pub(crate) fn indices(field: &str, bytes: &[u8]) -> PyResult<Vec<u32>> {
    numbers(field, bytes, u32::from_ne_bytes)
}

pub(crate) fn floats(field: &str, bytes: &[u8]) -> PyResult<Vec<f64>> {
    numbers(field, bytes, f64::from_ne_bytes)
}

fn bytes_of<'py, const N: usize, T: Copy>(
    py: Python<'py>,
    values: &[T],
    write: impl Fn(T) -> [u8; N],
) -> Bound<'py, PyBytes> {
    let bytes: Vec<u8> = values.iter().flat_map(|&value| write(value)).collect();
    PyBytes::new(py, &bytes)
}

/// The flows of a problem.
#[pyclass(module = "gomr._native", frozen)]
pub(crate) struct Flows {
    pub flows: Vec<Flow>,
}

#[pymethods]
impl Flows {
    #[new]
    fn new(flows: Vec<FlowFields>) -> Self {
        Self {
            flows: flows.into_iter().map(flow_of).collect(),
        }
    }

    #[staticmethod]
    fn from_columns(sources: &[u8], destinations: &[u8], rates_bps: &[u8]) -> PyResult<Self> {
        let sources = indices("sources", sources)?;
        let destinations = indices("destinations", destinations)?;
        let rates = floats("rates_bps", rates_bps)?;
        if sources.len() != rates.len() || destinations.len() != rates.len() {
            return Err(invalid("rates_bps", "has another length than the ends"));
        }
        let ends = sources.into_iter().zip(destinations);
        let flows = ends.zip(rates).map(|((source, destination), rate_bps)| {
            Flow::new(source as usize, destination as usize, rate_bps)
        });
        Ok(Self {
            flows: flows.collect(),
        })
    }

    fn __len__(&self) -> usize {
        self.flows.len()
    }
}

/// Paths of all flows.
#[pyclass(module = "gomr._native", frozen)]
pub(crate) struct PathRates {
    pub paths: ::gomr::PathRates,
}

#[pymethods]
impl PathRates {
    #[new]
    fn new(flow: &[u8], rate_bps: &[u8], start: &[u8], arcs: &[u8]) -> PyResult<Self> {
        let paths = ::gomr::PathRates {
            flow: indices("flow", flow)?,
            rate_bps: floats("rate_bps", rate_bps)?,
            start: indices("start", start)?,
            arcs: indices("arcs", arcs)?,
        };
        let ends = (paths.start.first(), paths.start.last());
        let whole = ends == (Some(&0), Some(&(paths.arcs.len() as u32)));
        let rising = paths.start.windows(2).all(|pair| pair[0] <= pair[1]);
        if !whole || !rising || paths.start.len() != paths.flow.len() + 1 {
            return Err(invalid("start", "does not divide the arcs among the paths"));
        }
        if paths.rate_bps.len() != paths.flow.len() {
            return Err(invalid("rate_bps", "is not one number a path"));
        }
        Ok(Self { paths })
    }

    #[getter]
    fn flow<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        bytes_of(py, &self.paths.flow, u32::to_ne_bytes)
    }

    #[getter]
    fn rate_bps<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        bytes_of(py, &self.paths.rate_bps, f64::to_ne_bytes)
    }

    #[getter]
    fn start<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        bytes_of(py, &self.paths.start, u32::to_ne_bytes)
    }

    #[getter]
    fn arcs<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        bytes_of(py, &self.paths.arcs, u32::to_ne_bytes)
    }
}

/// What an answer is worth.
#[pyclass(module = "gomr._native", frozen, get_all)]
pub(crate) struct Audit {
    admitted_bps: f64,
    requested_bps: f64,
    cost_bps_s: f64,
    value: f64,
    upper_bound: f64,
    max_violation_bps: f64,
    loads_bps: Vec<f64>,
}

/// Scales an answer's rates down to the limits that rounding has put them over.
#[pyfunction]
pub(crate) fn fit(
    py: Python<'_>,
    network: &Network,
    flows: &Flows,
    answer: &PathRates,
) -> PyResult<PathRates> {
    check_answer(network, flows, &answer.paths)?;
    let problem = network.with(flows);
    let mut paths = answer.paths.clone();
    py.detach(|| paths.fit(&problem));
    Ok(PathRates { paths })
}

/// Checks an answer and computes what its prices prove.
#[pyfunction]
#[pyo3(signature = (network, flows, answer, objective, prices, cuts))]
pub(crate) fn audit(
    py: Python<'_>,
    network: &Network,
    flows: &Flows,
    answer: &PathRates,
    objective: &str,
    prices: Vec<f64>,
    cuts: Vec<CutFields>,
) -> PyResult<Audit> {
    let objective = objective_of(objective)?;
    check_answer(network, flows, &answer.paths)?;
    let problem = network.with(flows);
    let cuts: Vec<Cut> = cuts
        .into_iter()
        .map(|(prices, stopped)| Cut { prices, stopped })
        .collect();
    let outside = |cut: &Cut| cut.stopped.iter().any(|&f| f as usize >= flows.flows.len());
    if cuts.iter().any(outside) {
        return Err(invalid("cuts", "name a flow that is not there"));
    }
    let audited = py.detach(|| ::gomr::audit(&problem, &answer.paths, objective, &prices, &cuts));
    let audited = audited.map_err(|reason| invalid("answer", reason))?;
    Ok(Audit {
        admitted_bps: audited.admitted_bps,
        requested_bps: audited.requested_bps,
        cost_bps_s: audited.cost_bps_s,
        value: audited.value,
        upper_bound: audited.upper_bound,
        max_violation_bps: audited.max_violation_bps,
        loads_bps: audited.loads_bps,
    })
}

pub(crate) fn objective_of(name: &str) -> PyResult<Objective> {
    Objective::from_name(name).ok_or_else(|| invalid("objective", format!("{name:?} is not known")))
}

fn check_answer(network: &Network, flows: &Flows, paths: &::gomr::PathRates) -> PyResult<()> {
    let arcs = network.problem.arcs.len();
    if paths.arcs.iter().any(|&arc| arc as usize >= arcs) {
        return Err(invalid(
            "arcs",
            format!("go beyond the {arcs} of the network"),
        ));
    }
    let count = flows.flows.len();
    if paths.flow.iter().any(|&flow| flow as usize >= count) {
        return Err(invalid(
            "flow",
            format!("goes beyond the {count} there are"),
        ));
    }
    Ok(())
}
