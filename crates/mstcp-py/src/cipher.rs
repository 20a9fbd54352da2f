//! What lies between a stream's frames and its socket, where Python made it: TLS of the module `ssl`, or records.

use std::io;

use mstcp_net::{Cipher, CipherLayer, Layer};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::handshake::Records;

/// A `mstcp.tls.TlsStream`.
#[derive(Debug)]
struct PythonCipher(Py<PyAny>);

/// The layer that an object stands for.
pub(crate) fn layer(object: &Bound<'_, PyAny>) -> PyResult<Layer> {
    if let Ok(records) = object.downcast::<Records>() {
        return Ok(Layer::Records(records.borrow().layer()));
    }
    let cipher = PythonCipher(object.clone().unbind());
    Ok(Layer::Cipher(CipherLayer::new(Box::new(cipher))))
}

impl PythonCipher {
    fn call<R>(
        &self,
        work: impl for<'py> FnOnce(&Bound<'py, PyAny>) -> PyResult<R>,
    ) -> io::Result<R> {
        // Without an interpreter the process is about to end.
        match Python::try_attach(|py| work(self.0.bind(py))) {
            Some(done) => done.map_err(io::Error::other),
            None => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Append what the object says of its own.
    fn answer(&self, out: &mut Vec<u8>) -> io::Result<()> {
        self.call(|object| {
            let answer = object.call_method0("answer")?;
            out.extend_from_slice(answer.downcast::<PyBytes>()?.as_bytes());
            Ok(())
        })
    }
}

/// The object behind a layer, if it is Python's.
pub(crate) fn object(py: Python<'_>, layer: Option<&Layer>) -> Option<Py<PyAny>> {
    let cipher = layer?.cipher()?.downcast_ref::<PythonCipher>()?;
    Some(cipher.0.clone_ref(py))
}

impl Cipher for PythonCipher {
    fn is_open(&self) -> bool {
        let is_open = self.call(|object| object.getattr("is_open")?.extract());
        is_open.unwrap_or(true)
    }

    fn overhead_bytes(&self) -> usize {
        let bytes = self.call(|object| object.getattr("overhead_bytes")?.extract());
        bytes.unwrap_or(0)
    }

    fn encrypt(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        self.call(|object| {
            let data = PyBytes::new(object.py(), bytes);
            let encrypted = object.call_method1("encrypt", (data,))?;
            out.extend_from_slice(encrypted.downcast::<PyBytes>()?.as_bytes());
            Ok(())
        })
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        // What cannot be said is not.
        let _ = self.call(|object| {
            let said = object.call_method0("end")?;
            out.extend_from_slice(said.downcast::<PyBytes>()?.as_bytes());
            Ok(())
        });
    }

    fn decrypt(
        &mut self,
        bytes: &[u8],
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> io::Result<bool> {
        let decrypted = self.call(|object| {
            let data = PyBytes::new(object.py(), bytes);
            let decrypted = object.call_method1("decrypt", (data,))?;
            plain.extend_from_slice(decrypted.downcast::<PyBytes>()?.as_bytes());
            object.getattr("ended")?.extract()
        });
        // Also where that failed: an alert tells the peer why.
        self.answer(out)?;
        decrypted
    }
}
