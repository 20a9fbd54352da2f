//! What a caller in C is told of failures.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, CStr, CString};
use std::fmt::Display;
use std::io::ErrorKind;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// A failure: a sentence and a number of errno.h.
pub(crate) struct CError {
    number: c_int,
    sentence: String,
}

thread_local! {
    static LAST: RefCell<(c_int, CString)> = RefCell::new((0, CString::default()));
}

impl CError {
    pub(crate) fn new(kind: ErrorKind, sentence: impl Display) -> Self {
        Self {
            number: number_of(kind),
            sentence: sentence.to_string(),
        }
    }

    pub(crate) fn invalid(sentence: impl Display) -> Self {
        Self::new(ErrorKind::InvalidInput, sentence)
    }
}

impl From<mstcp_tokio::Error> for CError {
    fn from(error: mstcp_tokio::Error) -> Self {
        Self::new(error.kind(), error)
    }
}

impl From<std::io::Error> for CError {
    fn from(error: std::io::Error) -> Self {
        Self::new(error.kind(), error)
    }
}

fn number_of(kind: ErrorKind) -> c_int {
    match kind {
        ErrorKind::WouldBlock => libc::EAGAIN,
        ErrorKind::InvalidInput => libc::EINVAL,
        ErrorKind::ConnectionRefused => libc::ECONNREFUSED,
        ErrorKind::ConnectionReset => libc::ECONNRESET,
        ErrorKind::ConnectionAborted => libc::ECONNABORTED,
        ErrorKind::BrokenPipe => libc::EPIPE,
        ErrorKind::TimedOut => libc::ETIMEDOUT,
        ErrorKind::InvalidData => libc::EPROTO,
        ErrorKind::AddrInUse => libc::EADDRINUSE,
        ErrorKind::AddrNotAvailable => libc::EADDRNOTAVAIL,
        ErrorKind::PermissionDenied => libc::EACCES,
        _ => libc::EIO,
    }
}

/// Do something for a caller in C; if it fails, note why and return `otherwise`.
pub(crate) fn guard<R>(otherwise: R, act: impl FnOnce() -> Result<R, CError>) -> R {
    let outcome = catch_unwind(AssertUnwindSafe(act));
    let failure = match outcome {
        Ok(Ok(result)) => return result,
        Ok(Err(failure)) => failure,
        Err(_) => CError::new(ErrorKind::Other, "a fault in the library: please report it"),
    };
    let sentence = CString::new(failure.sentence.replace('\0', " ")).unwrap_or_default();
    LAST.with(|last| *last.borrow_mut() = (failure.number, sentence));
    otherwise
}

pub(crate) fn last_text() -> *const c_char {
    LAST.with(|last| last.borrow().1.as_ptr())
}

pub(crate) fn last_number() -> c_int {
    LAST.with(|last| last.borrow().0)
}

/// # Safety
/// The pointer is NULL or a string.
pub(crate) unsafe fn text<'a>(pointer: *const c_char) -> Result<&'a str, CError> {
    if pointer.is_null() {
        return Err(CError::invalid("a string is NULL"));
    }
    let text = CStr::from_ptr(pointer).to_str();
    text.map_err(|_| CError::invalid("a string is not UTF-8"))
}

/// # Safety
/// The pointer is NULL or such an object.
pub(crate) unsafe fn object<'a, T>(pointer: *const T) -> Result<&'a T, CError> {
    let object = pointer.as_ref();
    object.ok_or_else(|| CError::invalid("a connection or listener is NULL: look at what made it"))
}

/// # Safety
/// The pointer is NULL or that of this many.
pub(crate) unsafe fn slice<'a, T>(pointer: *const T, count: usize) -> &'a [T] {
    match pointer.is_null() {
        true => &[],
        false => std::slice::from_raw_parts(pointer, count),
    }
}
