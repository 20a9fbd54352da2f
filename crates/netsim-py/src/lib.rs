//! `netsim_native`: the simulator for Python. Descriptions and results cross as JSON; see `netsim_native.pyi`.
// The functions' documentation for users is in the stub; PyO3's macros make items of their own.
#![allow(missing_docs)]

mod methods;

use netsim::methods::{BuiltInOnly, Methods};
use netsim::{Description, Simulation};
use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use methods::{Ack, Acked, FirstException, Loader, Subflow, View, Window};

create_exception!(netsim_native, InvalidDescription, PyValueError);

/// Events between two looks for Ctrl-C: some tens of milliseconds.
const EVENTS_PER_SLICE: u64 = 250_000;
/// With a trace, which is handed over after each slice: some megabytes.
const EVENTS_PER_TRACED_SLICE: u64 = 50_000;

fn failure(error: netsim::Error) -> PyErr {
    match error {
        netsim::Error::Description { place, reason } => {
            InvalidDescription::new_err((place, reason))
        }
        error => PyRuntimeError::new_err(error.to_string()),
    }
}

/// Make a run, with user-defined methods if `load` makes them.
fn begin(
    description: &str,
    load: Option<&Py<PyAny>>,
    raised: &FirstException,
) -> Result<Simulation, netsim::Error> {
    let description = Description::from_json(description)?;
    let own = load.map(|load| Loader::new(load, raised.clone()));
    let methods: &dyn Methods = match &own {
        Some(own) => own,
        None => &BuiltInOnly,
    };
    Simulation::with_methods(&description, methods)
}

#[pyfunction]
#[pyo3(signature = (description, /, trace=None, methods=None))]
fn run(
    py: Python<'_>,
    description: &str,
    trace: Option<&Bound<'_, PyAny>>,
    methods: Option<Py<PyAny>>,
) -> PyResult<String> {
    let raised = FirstException::default();
    let mut simulation = begin(description, methods.as_ref(), &raised).map_err(failure)?;
    let events = if trace.is_some() {
        EVENTS_PER_TRACED_SLICE
    } else {
        EVENTS_PER_SLICE
    };
    loop {
        let ended = py.detach(|| simulation.run(events));
        if let Some(error) = raised.take() {
            return Err(error);
        }
        let ended = ended.map_err(failure)?;
        let pieces = simulation.take_trace();
        if let Some(trace) = trace {
            for (name, bytes) in pieces {
                trace.call1((name, PyBytes::new(py, &bytes)))?;
            }
        }
        if ended {
            break;
        }
        py.check_signals()?;
    }
    Ok(py.detach(move || simulation.results().to_json()))
}

#[pyfunction]
#[pyo3(signature = (description, /, methods=None))]
fn check(description: &str, methods: Option<Py<PyAny>>) -> PyResult<()> {
    begin(description, methods.as_ref(), &FirstException::default()).map_err(failure)?;
    Ok(())
}

#[pymodule]
fn netsim_native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("InvalidDescription", py.get_type::<InvalidDescription>())?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(check, module)?)?;
    module.add_class::<Window>()?;
    module.add_class::<Acked>()?;
    module.add_class::<Subflow>()?;
    module.add_class::<View>()?;
    module.add_class::<Ack>()
}
