//! What the endpoint says, as Python's values.

use mstcp_net::Errno;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

/// An errno as Python's exception, with its sentence.
pub(crate) fn os_error(errno: Errno) -> PyErr {
    PyOSError::new_err((errno.raw_os_error(), sentence(errno)))
}

/// What the system says of an errno.
pub(crate) fn sentence(errno: Errno) -> String {
    let text = std::io::Error::from(errno).to_string();
    let sentence = text.split(" (os error").next();
    sentence.unwrap_or_default().to_owned()
}
