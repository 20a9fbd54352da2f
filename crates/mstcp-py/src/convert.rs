//! What the endpoint says, as Python's values.

use mstcp_net::Errno;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

/// An errno as Python's exception, with its sentence.
pub(crate) fn os_error(errno: Errno) -> PyErr {
    let error = std::io::Error::from(errno);
    PyOSError::new_err((errno.raw_os_error(), sentence(&error)))
}

/// What an error says, without the system's number.
pub(crate) fn sentence(error: &dyn std::error::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error ") {
        Some((before, after)) => {
            let rest = after.split_once(')').map_or("", |(_, rest)| rest);
            format!("{before}{rest}")
        }
        None => text,
    }
}
