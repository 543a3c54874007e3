//! The shared parts of the C ABI: byte slices in, owned buffers out, status codes, panic capture.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Once;

/// Status codes; the header has the same numbers.
pub const OK: i32 = 0;
pub const INVALID: i32 = 1;
pub const CORRUPT: i32 = 2;
pub const LIMIT: i32 = 3;
pub const STATE: i32 = 4;
pub const INTERNAL: i32 = 5;

/// An error on its way to C: a code and one line of text.
#[derive(Debug)]
pub struct Failure {
    pub code: i32,
    pub text: String,
}

impl Failure {
    pub fn new(code: i32, text: impl Into<String>) -> Self {
        Failure { code, text: text.into() }
    }
    pub fn invalid(text: impl Into<String>) -> Self {
        Failure::new(INVALID, text)
    }
    pub fn corrupt(text: impl Into<String>) -> Self {
        Failure::new(CORRUPT, text)
    }
}

/// Bytes borrowed from C for the duration of a call.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bytes {
    data: *const u8,
    size: usize,
}

impl Bytes {
    /// # Safety
    /// `data` must point at `size` readable bytes, or `size` must be 0.
    pub unsafe fn as_slice(&self) -> &[u8] {
        if self.size == 0 {
            &[]
        } else {
            std::slice::from_raw_parts(self.data, self.size)
        }
    }

    /// # Safety
    /// As `as_slice`.
    pub unsafe fn as_str(&self, what: &str) -> Result<&str, Failure> {
        std::str::from_utf8(self.as_slice()).map_err(|e| {
            Failure::invalid(format!("{what} is not valid UTF-8 at byte {}", e.valid_up_to()))
        })
    }
}

/// A byte buffer owned by C until `tt_text_free`.
#[repr(C)]
pub struct Text {
    data: *mut u8,
    size: usize,
}

impl Text {
    pub fn set(&mut self, text: impl Into<Vec<u8>>) {
        let boxed = text.into().into_boxed_slice();
        self.size = boxed.len();
        self.data = Box::into_raw(boxed) as *mut u8;
    }
}

/// A buffer of ids owned by C until `tt_ids_free`.
#[repr(C)]
pub struct Ids {
    data: *mut u32,
    size: usize,
}

impl Ids {
    pub fn set(&mut self, ids: Vec<u32>) {
        let boxed = ids.into_boxed_slice();
        self.size = boxed.len();
        self.data = Box::into_raw(boxed) as *mut u32;
    }
}

/// # Safety
/// `text` must have been filled by this library and not freed before.
#[no_mangle]
pub unsafe extern "C" fn tt_text_free(text: Text) {
    if !text.data.is_null() {
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(text.data, text.size)));
    }
}

/// # Safety
/// `ids` must have been filled by this library and not freed before.
#[no_mangle]
pub unsafe extern "C" fn tt_ids_free(ids: Ids) {
    if !ids.data.is_null() {
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(ids.data, ids.size)));
    }
}

/// The text of a panic's payload.
pub fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|s| s.to_string())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "unknown panic".to_string())
}

/// Runs `body`, turning a panic into a `Failure`. The default hook would print a trace for each.
pub fn contained<T>(body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    static SILENCE: Once = Once::new();
    SILENCE.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        Err(Failure::new(INTERNAL, format!("panic: {}", panic_text(payload.as_ref()))))
    })
}

/// Runs the body of an exported function and reports its outcome to C.
///
/// # Safety
/// `error` must be null or point at a writable `Text`.
pub unsafe fn report(error: *mut Text, body: impl FnOnce() -> Result<(), Failure>) -> i32 {
    match contained(body) {
        Ok(()) => OK,
        Err(failure) => {
            if let Some(out) = error.as_mut() {
                out.set(failure.text);
            }
            failure.code
        }
    }
}

/// As `report` for functions whose value is simple: a panic gives `fallback`.
pub fn value_or<T>(fallback: T, body: impl FnOnce() -> T) -> T {
    contained(|| Ok(body())).unwrap_or(fallback)
}
