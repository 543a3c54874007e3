//! Everything that Triptych takes from Rust, behind one C ABI: tokenizers, chat templates, grammars,
//! BLAKE3 and base64. The C side is `include/triptych_text.h`; what each function does stands there.
//!
//! Rules of this crate: every exported function catches panics and reports them as `TT_INTERNAL`;
//! handles are opaque and immutable unless the header says otherwise; memory that goes out is freed
//! by the matching `*_free`.

mod abi;
mod base64_decode;
mod budget;
mod detokenize;
mod grammar;
mod hash;
mod json_dumps;
mod jinja;
mod python_str;
mod segments;
mod template;
mod tokenizer;
