//! Python's `bytes` objects as memory of the protocol core: written from, and read to, without copying.

use std::any::Any;
use std::ffi::c_int;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::sync::Arc;

use mstcp_net::memory::keep_freed_memory;
use mstcp_net::Memory;
use mstcp_proto::Slice;
use mstcp_proto::Storage;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

extern "C" {
    /// Part of Python's stable interface, but missing from pyo3-ffi's.
    fn _PyBytes_Resize(object: *mut *mut ffi::PyObject, size: ffi::Py_ssize_t) -> c_int;
}

/// From this size on a copy lets other threads run meanwhile.
const DETACHED_BYTES: usize = 1 << 16;

/// A `bytes` object: it never changes, and lives as long as this reference.
pub struct Bytes {
    owner: Py<PyBytes>,
    start: *const u8,
    length: usize,
}

// SAFETY: the bytes are immutable, and the reference to their owner may be dropped on any thread.
unsafe impl Send for Bytes {}
// SAFETY: as above.
unsafe impl Sync for Bytes {}

impl Bytes {
    /// Hold an object.
    pub fn new(object: &Bound<'_, PyBytes>) -> Self {
        let bytes = object.as_bytes();
        Self {
            start: bytes.as_ptr(),
            length: bytes.len(),
            owner: object.clone().unbind(),
        }
    }

    /// The object.
    pub fn object<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        self.owner.bind(py).clone()
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `start` and `length` are those of the owner's bytes.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

impl Storage for Bytes {
    fn bytes(&self) -> &[u8] {
        self.as_ref()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A new `bytes` object that nobody else has seen.
pub struct NewBytes {
    object: *mut ffi::PyObject,
    start: *mut u8,
    length: usize,
}

impl NewBytes {
    /// Make an object of this many bytes. They are 0 only where the system gave new memory: to fill them costs a fast
    /// receiver a sixth of its time.
    pub fn new(py: Python<'_>, length: usize) -> PyResult<Self> {
        keep_freed_memory();
        // SAFETY: Python makes a new object of `length` bytes, or NULL with its exception set.
        let object = unsafe { ffi::PyBytes_FromStringAndSize(std::ptr::null(), length as isize) };
        if object.is_null() {
            return Err(PyErr::fetch(py));
        }
        // SAFETY: it is a bytes object.
        let start = unsafe { ffi::PyBytes_AsString(object) }.cast::<u8>();
        Ok(Self {
            object,
            start,
            length,
        })
    }

    /// The memory, to be written to.
    pub fn buffer(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: nobody else knows the object, whose bytes lie there.
        unsafe { std::slice::from_raw_parts_mut(self.start.cast(), self.length) }
    }

    /// Cut it to its first `length` bytes, 1 at least, which have been written: an object like any other from now on.
    pub fn into_object(self, py: Python<'_>, length: usize) -> PyResult<Bound<'_, PyBytes>> {
        debug_assert!(1 <= length && length <= self.length);
        let mut this = ManuallyDrop::new(self);
        if length < this.length {
            // SAFETY: the only reference is ours; upon failure Python frees the object and sets its exception.
            if unsafe { _PyBytes_Resize(&mut this.object, length as isize) } != 0 {
                return Err(PyErr::fetch(py));
            }
        }
        // SAFETY: a bytes object, the reference to which passes on.
        Ok(unsafe { Bound::from_owned_ptr(py, this.object).cast_into_unchecked() })
    }

    /// As [`NewBytes::into_object`], for the protocol core to hold.
    pub fn finish(self, py: Python<'_>, length: usize) -> PyResult<Bytes> {
        Ok(Bytes::new(&self.into_object(py, length)?))
    }
}

impl Drop for NewBytes {
    fn drop(&mut self) {
        // SAFETY: the only reference is ours, and this is dropped only where Python is attached.
        unsafe { ffi::Py_DECREF(self.object) };
    }
}

/// `bytes` objects as the memory that payload is read to.
pub struct PythonMemory<'py>(pub Python<'py>);

impl Memory for PythonMemory<'_> {
    type Block = NewBytes;
    type Error = PyErr;

    fn block(&mut self, length: usize) -> PyResult<NewBytes> {
        NewBytes::new(self.0, length)
    }

    fn buffer(block: &mut NewBytes) -> &mut [MaybeUninit<u8>] {
        block.buffer()
    }

    fn finish(&mut self, block: NewBytes, length: usize) -> PyResult<Arc<dyn Storage>> {
        Ok(Arc::new(block.finish(self.0, length)?))
    }

    fn call<R: Send>(&self, call: impl FnOnce() -> R + Send) -> R {
        self.0.detach(call)
    }
}

/// What was taken as objects: those that were read to, and copies of what lies between them.
pub fn objects<'py>(py: Python<'py>, slices: &[Slice]) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let mut objects = Vec::with_capacity(4);
    let mut from = 0;
    for (at, slice) in slices.iter().enumerate() {
        let storage = slice.whole_storage();
        let Some(whole) = storage.and_then(|storage| storage.as_any().downcast_ref::<Bytes>())
        else {
            continue;
        };
        if from < at {
            objects.push(copy(py, &slices[from..at])?);
        }
        objects.push(whole.object(py));
        from = at + 1;
    }
    if from < slices.len() {
        objects.push(copy(py, &slices[from..])?);
    }
    Ok(objects)
}

/// Copy slices, not all empty, into one object.
fn copy<'py>(py: Python<'py>, slices: &[Slice]) -> PyResult<Bound<'py, PyBytes>> {
    let length = slices.iter().map(|slice| slice.len()).sum();
    let mut bytes = NewBytes::new(py, length)?;
    let buffer = bytes.buffer();
    let fill = move || {
        let mut rest = buffer;
        for slice in slices {
            let (part, following) = rest.split_at_mut(slice.len());
            // SAFETY: both are as long, and lie apart.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    slice.as_ptr(),
                    part.as_mut_ptr().cast(),
                    slice.len(),
                );
            }
            rest = following;
        }
    };
    if length >= DETACHED_BYTES {
        py.detach(fill);
    } else {
        fill();
    }
    bytes.into_object(py, length)
}
