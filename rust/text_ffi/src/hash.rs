//! BLAKE3, whole and incremental.

use crate::abi::{value_or, Bytes};

/// # Safety
/// `bytes` as in the header; `out` points at 32 writable bytes.
#[no_mangle]
pub unsafe extern "C" fn tt_blake3(bytes: Bytes, out: *mut u8) {
    let hash = value_or([0; 32], || *blake3::hash(bytes.as_slice()).as_bytes());
    std::ptr::copy_nonoverlapping(hash.as_ptr(), out, hash.len());
}

#[no_mangle]
pub extern "C" fn tt_blake3_new() -> *mut blake3::Hasher {
    value_or(std::ptr::null_mut(), || Box::into_raw(Box::new(blake3::Hasher::new())))
}

/// # Safety
/// `hasher` comes from `tt_blake3_new`; `bytes` as in the header.
#[no_mangle]
pub unsafe extern "C" fn tt_blake3_update(hasher: *mut blake3::Hasher, bytes: Bytes) {
    value_or((), || {
        (*hasher).update(bytes.as_slice());
    })
}

/// # Safety
/// `hasher` comes from `tt_blake3_new`; `out` points at 32 writable bytes.
#[no_mangle]
pub unsafe extern "C" fn tt_blake3_finish(hasher: *const blake3::Hasher, out: *mut u8) {
    let hash = value_or([0; 32], || *(*hasher).finalize().as_bytes());
    std::ptr::copy_nonoverlapping(hash.as_ptr(), out, hash.len());
}

/// # Safety
/// `hasher` comes from `tt_blake3_new` and is not used again.
#[no_mangle]
pub unsafe extern "C" fn tt_blake3_free(hasher: *mut blake3::Hasher) {
    if !hasher.is_null() {
        drop(Box::from_raw(hasher));
    }
}
