//! Fetching what is needed soon into the nearest cache.

use std::mem::size_of_val;

const LINE_BYTES: usize = 64;

/// Begin to fetch a value, without waiting for it.
#[inline(always)]
pub(crate) fn prefetch<T: ?Sized>(value: &T) {
    prefetch_part(value, size_of_val(value));
}

/// Begin to fetch the first bytes of a value.
#[inline(always)]
#[allow(unsafe_code)]
pub(crate) fn prefetch_part<T: ?Sized>(value: &T, bytes: usize) {
    debug_assert!(bytes <= size_of_val(value));
    let first = (value as *const T).cast::<i8>();
    for offset in (0..bytes).step_by(LINE_BYTES) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the address is within the value, and a prefetch has no effect but on caches.
        unsafe {
            use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
            _mm_prefetch::<_MM_HINT_T0>(first.add(offset));
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (first, offset);
    }
}
