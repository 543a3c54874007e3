//! Base64 of RFC 4648, as data URIs hold it.

use crate::abi::{report, Bytes, Failure, Text};

/// # Safety
/// Pointers as in the header.
#[no_mangle]
pub unsafe extern "C" fn tt_base64_decode(text: Bytes, out: *mut Text, error: *mut Text) -> i32 {
    report(error, || {
        let bytes = base64::decode_config(text.as_slice(), base64::STANDARD)
            .map_err(|e| Failure::invalid(format!("this is no base64: {e}")))?;
        (*out).set(bytes);
        Ok(())
    })
}
