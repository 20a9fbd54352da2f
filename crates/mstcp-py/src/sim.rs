//! `mstcp._core.sim`: the simulator for Python. Descriptions and results cross as JSON; see `mstcp/_core/sim.pyi`.

use netsim::{Description, Simulation};
use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

create_exception!(mstcp._core.sim, InvalidDescription, PyValueError);

/// Events between two looks for Ctrl-C: some tens of milliseconds.
const EVENTS_PER_SLICE: u64 = 250_000;

fn failure(error: netsim::Error) -> PyErr {
    match error {
        netsim::Error::Description { place, reason } => {
            InvalidDescription::new_err((place, reason))
        }
        error => PyRuntimeError::new_err(error.to_string()),
    }
}

#[pyfunction]
#[pyo3(signature = (description, /))]
fn run(py: Python<'_>, description: &str) -> PyResult<String> {
    let description = Description::from_json(description).map_err(failure)?;
    let mut simulation = Simulation::new(&description).map_err(failure)?;
    while !py
        .detach(|| simulation.run(EVENTS_PER_SLICE))
        .map_err(failure)?
    {
        py.check_signals()?;
    }
    Ok(py.detach(move || simulation.results().to_json()))
}

#[pyfunction]
#[pyo3(signature = (description, /))]
fn check(description: &str) -> PyResult<()> {
    let description = Description::from_json(description).map_err(failure)?;
    Simulation::new(&description).map_err(failure)?;
    Ok(())
}

/// Add the submodule, and make it a module that `import mstcp._core.sim` finds.
pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = parent.py();
    let module = PyModule::new(py, "sim")?;
    module.setattr("__name__", "mstcp._core.sim")?;
    module.add("InvalidDescription", py.get_type::<InvalidDescription>())?;
    module.add_function(wrap_pyfunction!(run, &module)?)?;
    module.add_function(wrap_pyfunction!(check, &module)?)?;
    parent.add("sim", &module)?;
    let modules = py.import("sys")?.getattr("modules")?;
    modules.set_item("mstcp._core.sim", module)
}
