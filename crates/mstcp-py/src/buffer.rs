//! Python's buffers, such as `bytearray`, as memory to be received to.

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;

use pyo3::ffi;
use pyo3::prelude::*;

/// `Py_buffer` of CPython's buffer protocol. It is part of the stable interface from 3.11 on, and the same before.
#[repr(C)]
struct PyBuffer {
    buf: *mut c_void,
    obj: *mut ffi::PyObject,
    len: ffi::Py_ssize_t,
    itemsize: ffi::Py_ssize_t,
    readonly: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut ffi::Py_ssize_t,
    strides: *mut ffi::Py_ssize_t,
    suboffsets: *mut ffi::Py_ssize_t,
    internal: *mut c_void,
}

extern "C" {
    fn PyObject_GetBuffer(object: *mut ffi::PyObject, view: *mut PyBuffer, flags: c_int) -> c_int;
    fn PyBuffer_Release(view: *mut PyBuffer);
}

/// `PyBUF_SIMPLE | PyBUF_WRITABLE`
const WRITABLE: c_int = 1;

/// A buffer that stays as large as it is, and where it is, until this is dropped.
pub struct WritableBuffer<'py> {
    view: Box<PyBuffer>,
    _py: Python<'py>,
}

impl<'py> WritableBuffer<'py> {
    /// Hold an object's buffer; an exception if it has none, or one that cannot be written to in one piece.
    pub fn new(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        // SAFETY: all zeros are no pointers; Python fills the view, or sets its exception.
        unsafe {
            let mut view: Box<PyBuffer> = Box::new(std::mem::zeroed());
            if PyObject_GetBuffer(object.as_ptr(), &mut *view, WRITABLE) != 0 {
                return Err(PyErr::fetch(object.py()));
            }
            let _py = object.py();
            Ok(Self { view, _py })
        }
    }

    /// The memory. Other threads of the program may write there too, as with Python's own sockets.
    pub fn bytes(&mut self) -> &mut [MaybeUninit<u8>] {
        if self.view.len == 0 {
            return &mut [];
        }
        // SAFETY: Python says that this many bytes are there, and they stay while the view is held.
        unsafe { std::slice::from_raw_parts_mut(self.view.buf.cast(), self.view.len as usize) }
    }
}

impl Drop for WritableBuffer<'_> {
    fn drop(&mut self) {
        // SAFETY: the view was filled, and is released once, with Python attached.
        unsafe { PyBuffer_Release(&mut *self.view) };
    }
}
