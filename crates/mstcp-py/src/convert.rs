//! What the endpoint says, as Python's values.

use mstcp_net::Errno;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

/// An errno as Python's exception, with its sentence.
pub(crate) fn os_error(errno: Errno) -> PyErr {
    let text = std::io::Error::from(errno).to_string();
    let sentence = text
        .split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned();
    PyOSError::new_err((errno.raw_os_error(), sentence))
}
