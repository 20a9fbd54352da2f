//! `mstcp._core.Client` and `Admission`: who may open a connection or join one.

use mstcp_proto::handshake::{self, Admitted, NotAdmitted, Proof};
use mstcp_proto::hello::{self, Hello};
use mstcp_proto::RECORD_OVERHEAD_BYTES;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::{local, remote};

type ConnectionId = [u8; 16];

#[pyclass(module = "mstcp._core", frozen)]
struct Greeting(handshake::Greeting);

#[pymethods]
impl Greeting {
    #[getter]
    fn bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.bytes)
    }

    #[getter]
    fn stream_id(&self) -> u32 {
        self.0.hello.stream_id
    }
}

#[pyclass(module = "mstcp._core")]
struct Client(handshake::Client);

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (secret, connection_id, stream_count, frame_payload_bytes, has_records=false, /))]
    fn new(
        secret: &[u8],
        connection_id: ConnectionId,
        stream_count: u32,
        frame_payload_bytes: u32,
        has_records: bool,
    ) -> Self {
        let client =
            handshake::Client::new(secret, connection_id, stream_count, frame_payload_bytes);
        Self(match has_records {
            true => client.with_records(),
            false => client,
        })
    }

    #[pyo3(signature = (nonce, priority, early_data, /))]
    fn greet(&mut self, nonce: Proof, priority: u32, early_data: &[u8]) -> PyResult<Greeting> {
        let greeting = self.0.greet(nonce, priority, early_data);
        greeting.map(Greeting).map_err(local)
    }

    #[pyo3(signature = (greeting, answer, /))]
    fn answered<'py>(
        &mut self,
        py: Python<'py>,
        greeting: &Greeting,
        answer: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let confirm = self.0.on_answer(&greeting.0, answer).map_err(remote)?;
        Ok(PyBytes::new(py, &confirm))
    }
}

/// A stream that is let in or, with a code, turned down.
#[pyclass(module = "mstcp._core", frozen)]
struct Verdict {
    code: Option<u16>,
    reason: String,
    answer: Vec<u8>,
    confirm: Proof,
    hello: Option<Hello>,
}

impl Verdict {
    fn of(outcome: Result<Admitted, NotAdmitted>) -> PyResult<Self> {
        let (code, reason, answer) = match outcome {
            Ok(admitted) => {
                return Ok(Self {
                    code: None,
                    reason: String::new(),
                    answer: admitted.answer,
                    confirm: admitted.confirm,
                    hello: Some(admitted.hello),
                })
            }
            Err(NotAdmitted::Refused {
                code,
                reason,
                answer,
            }) => (Some(code), reason, answer),
            Err(NotAdmitted::Ended { answer }) => (None, String::new(), answer),
            Err(NotAdmitted::Malformed(error)) => return Err(remote(error)),
        };
        Ok(Self {
            code,
            reason,
            answer,
            confirm: Proof::default(),
            hello: None,
        })
    }

    fn number(&self, field: impl FnOnce(&Hello) -> u32) -> u32 {
        self.hello.as_ref().map_or(0, field)
    }
}

#[pymethods]
impl Verdict {
    #[getter]
    fn code(&self) -> Option<u16> {
        self.code
    }

    #[getter]
    fn reason(&self) -> &str {
        &self.reason
    }

    #[getter]
    fn answer<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.answer)
    }

    #[getter]
    fn confirm<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.confirm)
    }

    #[getter]
    fn confirm_frame<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &handshake::confirm_frame(&self.confirm))
    }

    #[getter]
    fn stream_id(&self) -> u32 {
        self.number(|hello| hello.stream_id)
    }

    #[getter]
    fn frame_payload_bytes(&self) -> u32 {
        self.number(|hello| hello.frame_payload_bytes)
    }

    #[getter]
    fn priority(&self) -> u32 {
        self.number(|hello| hello.priority)
    }

    #[getter]
    fn early_data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let early = self.hello.as_ref().map(|hello| &hello.early_data[..]);
        PyBytes::new(py, early.unwrap_or_default())
    }
}

#[pyclass(module = "mstcp._core")]
struct Admission(handshake::Admission);

#[pymethods]
impl Admission {
    #[new]
    #[pyo3(signature = (secret, most_connections, requires_records=false, /))]
    fn new(secret: &[u8], most_connections: usize, requires_records: bool) -> Self {
        let admission = handshake::Admission::new(secret, most_connections);
        Self(match requires_records {
            true => admission.requiring_records(),
            false => admission,
        })
    }

    #[pyo3(signature = (now_ns, opening, nonce, alive_streams, /))]
    fn admit(
        &mut self,
        now_ns: u64,
        opening: &[u8],
        nonce: Proof,
        alive_streams: Option<usize>,
    ) -> PyResult<Verdict> {
        Verdict::of(self.0.admit(now_ns, opening, nonce, |_| alive_streams))
    }
}

#[pyfunction]
#[pyo3(signature = (prefix, /))]
fn hello_rest_bytes(prefix: &[u8]) -> PyResult<usize> {
    let prefix = prefix.try_into().map_err(|_| {
        PyValueError::new_err(format!(
            "the prefix has {} bytes, not {}",
            prefix.len(),
            hello::PREFIX_BYTES
        ))
    })?;
    hello::rest_bytes(prefix).map_err(remote)
}

/// What a hello says: versions, connection, stream, streams, frame payload, nonce, early data, refusal, priority, records.
type Fields<'py> = (
    (u32, u32),
    Bound<'py, PyBytes>,
    u32,
    u32,
    u32,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    u32,
    u32,
    u32,
);

#[pyfunction]
#[pyo3(signature = (body, /))]
fn decode_hello<'py>(py: Python<'py>, body: &[u8]) -> PyResult<Fields<'py>> {
    let hello = Hello::decode_body(body).map_err(remote)?;
    Ok((
        (hello.version, hello.least_version),
        PyBytes::new(py, &hello.connection_id),
        hello.stream_id,
        hello.stream_count,
        hello.frame_payload_bytes,
        PyBytes::new(py, &hello.nonce),
        PyBytes::new(py, &hello.early_data),
        hello.refusal,
        hello.priority,
        hello.records,
    ))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("HELLO_PREFIX_BYTES", hello::PREFIX_BYTES)?;
    module.add("HELLO_PROOF_BYTES", hello::PROOF_BYTES)?;
    module.add("CONFIRM_BYTES", handshake::CONFIRM_BYTES)?;
    module.add("MAX_EARLY_BYTES", hello::MAX_EARLY_BYTES)?;
    module.add("RECORD_OVERHEAD_BYTES", RECORD_OVERHEAD_BYTES)?;
    module.add("MAX_PRIORITY", hello::MAX_PRIORITY)?;
    module.add_class::<Client>()?;
    module.add_class::<Greeting>()?;
    module.add_class::<Admission>()?;
    module.add_class::<Verdict>()?;
    module.add_function(wrap_pyfunction!(hello_rest_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(decode_hello, module)?)
}
