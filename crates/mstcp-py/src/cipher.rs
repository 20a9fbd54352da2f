//! What lies between a stream's frames and its socket, where Python made it: TLS of the module `ssl`, or records.

use std::io;

use mstcp_net::{Cipher, CipherLayer, Layer};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::handshake::Records;

/// An object with the methods of `mstcp.layer.StreamLayer`.
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
        let done = Python::try_attach(|py| work(self.0.bind(py)));
        done.and_then(Result::ok)
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

impl Cipher for PythonCipher {
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
        self.call(|object| {
            let data = PyBytes::new(object.py(), bytes);
            let decrypted = object.call_method1("decrypt", (data,))?;
            plain.extend_from_slice(decrypted.downcast::<PyBytes>()?.as_bytes());
            let answer = object.call_method0("answer")?;
            out.extend_from_slice(answer.downcast::<PyBytes>()?.as_bytes());
            object.getattr("ended")?.extract()
        })
    }
}
