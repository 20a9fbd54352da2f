//! What all connections of the process may promise to receive.

use std::sync::{Arc, OnceLock};

use mstcp_proto::Budget;
use pyo3::prelude::*;

/// Unless the application says otherwise.
const RECEIVE_BUDGET_BYTES: u64 = 1 << 30;

pub fn budget() -> &'static Arc<Budget> {
    static BUDGET: OnceLock<Arc<Budget>> = OnceLock::new();
    BUDGET.get_or_init(|| Arc::new(Budget::new(RECEIVE_BUDGET_BYTES)))
}

#[pyfunction]
#[pyo3(signature = (limit_bytes, /))]
fn limit_receive_memory(limit_bytes: u64) {
    budget().set_limit_bytes(limit_bytes);
}

#[pyfunction]
fn receive_memory() -> (u64, u64) {
    (budget().promised_bytes(), budget().limit_bytes())
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(limit_receive_memory, module)?)?;
    module.add_function(wrap_pyfunction!(receive_memory, module)?)
}
