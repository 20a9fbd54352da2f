//! `mstcp._core.SendRoom`: what may wait unsent in a plain connection's socket.

use mstcp_net::{sys, Room};
use pyo3::prelude::*;

use crate::convert::os_error;

/// What may wait unsent in a socket that the endpoint does not have: a plain connection's.
#[pyclass(module = "mstcp._core")]
struct SendRoom(Room);

#[pymethods]
impl SendRoom {
    #[new]
    #[pyo3(signature = (descriptor, /))]
    fn new(descriptor: i32) -> Self {
        Self(Room::new(descriptor))
    }

    #[pyo3(signature = (rate_bps, frame_payload_bytes, header_bytes, /))]
    fn pace(
        &mut self,
        rate_bps: Option<f64>,
        frame_payload_bytes: usize,
        header_bytes: usize,
    ) -> PyResult<Option<usize>> {
        let paced = self.0.pace(rate_bps, frame_payload_bytes, header_bytes);
        paced.map_err(os_error)?;
        Ok(self.0.limit())
    }

    #[pyo3(signature = (size, held, /))]
    fn has_room(&mut self, size: usize, held: usize) -> bool {
        self.0.ask(size, held).0
    }

    #[pyo3(signature = (count, /))]
    fn sent(&mut self, count: usize) {
        self.0.on_sent(count);
    }
}

#[pyfunction]
#[pyo3(signature = (descriptor, /))]
fn unacknowledged_bytes(descriptor: i32) -> usize {
    sys::unacknowledged_bytes(descriptor)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SendRoom>()?;
    module.add_function(wrap_pyfunction!(unacknowledged_bytes, module)?)
}
