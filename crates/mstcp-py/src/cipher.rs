//! What lies between a stream's frames and its socket, where Python made it: TLS of the module `ssl`.

use std::io;

use mstcp_net::{Cipher, CipherLayer, Ciphers, Layer};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A `mstcp.tls.TlsStream`.
#[derive(Debug)]
struct PythonCipher(Py<PyAny>);

/// The layer that an object stands for.
pub(crate) fn layer(object: &Bound<'_, PyAny>) -> Layer {
    let cipher = PythonCipher(object.clone().unbind());
    Layer::Cipher(CipherLayer::new(Box::new(cipher)))
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

    /// Append what a method of the object returns.
    fn append(&self, method: &str, out: &mut Vec<u8>) -> io::Result<()> {
        self.call(|object| {
            let bytes = object.call_method0(method)?;
            out.extend_from_slice(bytes.downcast::<PyBytes>()?.as_bytes());
            Ok(())
        })
    }
}

/// Makes the ciphers of a client's streams, by what a Python callable returns.
pub(crate) fn ciphers(make: Py<PyAny>) -> Ciphers {
    Ciphers::new(move || {
        // Without an interpreter the process is about to end.
        let made = Python::try_attach(|py| make.call0(py));
        let object = made.ok_or(io::ErrorKind::InvalidData)?;
        Ok(Box::new(PythonCipher(object.map_err(io::Error::other)?)))
    })
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

    fn begin(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        self.append("begin", out)
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
        let _ = self.append("end", out);
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
        self.append("answer", out)?;
        decrypted
    }
}
