//! Ids to text, one id at a time, never inside a character.
//!
//! `decode` of a whole answer runs the same code, so that pieces and whole agree by construction.

use crate::abi::{report, value_or, Failure, Text};
use crate::tokenizer::TextTokenizer;
use std::collections::VecDeque;
use std::sync::Arc;
use tokenizers::tokenizer::{Decoder, Tokenizer};

/// How the tokenizer's decoder makes bytes.
#[derive(Clone, Copy, PartialEq)]
pub enum DecoderKind {
    /// Every character of a token stands for one byte (GPT-2's table).
    ByteLevel,
    /// Tokens are text; `<0x0A>` stands for a byte.
    ByteFallback,
    /// Tokens are text.
    Words,
}

impl DecoderKind {
    pub fn of(tokenizer: &Tokenizer) -> Self {
        let json = serde_json::to_value(tokenizer.get_decoder()).unwrap_or_default();
        let mut steps = vec![&json];
        if let Some(list) = json.get("decoders").and_then(|d| d.as_array()) {
            steps = list.iter().collect();
        }
        let is = |name: &str| steps.iter().any(|s| s.get("type").is_some_and(|t| t == name));
        if is("ByteLevel") && steps.len() == 1 {
            DecoderKind::ByteLevel
        } else if is("ByteFallback") {
            DecoderKind::ByteFallback
        } else {
            DecoderKind::Words
        }
    }
}

/// The byte that a character of a byte-level token stands for (GPT-2's `bytes_to_unicode`).
pub fn byte_of_char(c: char) -> Option<u8> {
    let code = c as u32;
    match code {
        0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF => Some(code as u8),
        0x100..=0x120 => Some((code - 0x100) as u8),
        0x121..=0x142 => Some((code - 0x121 + 0x7F) as u8),
        0x143 => Some(0xAD),
        _ => None,
    }
}

/// The byte that `<0x0A>` stands for.
pub fn byte_of_fallback_token(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    (digits.len() == 2).then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

/// Moves the bytes of `held` that are decided into text: whole characters as they are, one U+FFFD for
/// each broken sequence. What stays is the start of a character, three bytes at most.
fn take_decided(held: &mut Vec<u8>, all: bool) -> String {
    let mut keep = 0;
    if !all {
        for n in 1..=3.min(held.len()) {
            let tail = &held[held.len() - n..];
            if let Err(e) = std::str::from_utf8(tail) {
                if e.valid_up_to() == 0 && e.error_len().is_none() {
                    keep = n;
                }
            }
        }
    }
    let decided: Vec<u8> = held.drain(..held.len() - keep).collect();
    String::from_utf8_lossy(&decided).into_owned()
}

/// Tokens of context that the decoder sees again, so that rules about the first token (Strip,
/// Metaspace) act on the answer's first token only.
const CONTEXT_TOKENS: usize = 4;

pub struct Detokenizer {
    tokenizer: Arc<TextTokenizer>,
    skip_special: bool,
    /// Bytes of an unfinished character.
    held: Vec<u8>,
    context: VecDeque<String>,
}

impl Detokenizer {
    pub fn new(tokenizer: Arc<TextTokenizer>, skip_special: bool) -> Self {
        Detokenizer { tokenizer, skip_special, held: Vec::new(), context: VecDeque::new() }
    }

    pub fn push(&mut self, id: u32) -> String {
        let Some(token) = self.tokenizer.inner.id_to_token(id) else {
            return String::new();
        };
        if self.skip_special && self.tokenizer.is_special(id) {
            return String::new();
        }
        match self.tokenizer.decoder_kind {
            DecoderKind::ByteLevel => {
                match token.chars().map(byte_of_char).collect::<Option<Vec<u8>>>() {
                    Some(bytes) => self.held.extend(bytes),
                    None => self.held.extend(token.as_bytes()),
                }
                take_decided(&mut self.held, false)
            }
            DecoderKind::ByteFallback => {
                if let Some(byte) = byte_of_fallback_token(&token) {
                    self.held.push(byte);
                    let text = take_decided(&mut self.held, false);
                    return self.text_of(text);
                }
                let cut_off = take_decided(&mut self.held, true);
                let mut text = self.text_of(cut_off);
                text.push_str(&self.text_of(token));
                text
            }
            DecoderKind::Words => self.text_of(token),
        }
    }

    pub fn flush(&mut self) -> String {
        let rest = take_decided(&mut self.held, true);
        match self.tokenizer.decoder_kind {
            DecoderKind::ByteLevel => rest,
            _ => self.text_of(rest),
        }
    }

    /// What `token` adds to the text, in its place behind the context.
    fn text_of(&mut self, token: String) -> String {
        if token.is_empty() {
            return token;
        }
        let before: Vec<String> = self.context.iter().cloned().collect();
        let mut with_token = before.clone();
        with_token.push(token.clone());
        let old = if before.is_empty() { String::new() } else { self.join(before) };
        let new = self.join(with_token);
        self.context.push_back(token);
        if self.context.len() > CONTEXT_TOKENS {
            self.context.pop_front();
        }
        match new.strip_prefix(&old) {
            Some(added) => added.to_string(),
            None => {
                let same = old.chars().zip(new.chars()).take_while(|(a, b)| a == b);
                new[same.map(|(a, _)| a.len_utf8()).sum::<usize>()..].to_string()
            }
        }
    }

    fn join(&self, tokens: Vec<String>) -> String {
        match self.tokenizer.inner.get_decoder() {
            Some(decoder) => decoder.decode(tokens).unwrap_or_default(),
            None => tokens.join(" "),
        }
    }
}

pub fn decode(tokenizer: &Arc<TextTokenizer>, ids: &[u32], skip_special: bool) -> String {
    let mut state = Detokenizer::new(tokenizer.clone(), skip_special);
    let mut text = String::new();
    for id in ids {
        text.push_str(&state.push(*id));
    }
    text.push_str(&state.flush());
    text
}

/// # Safety
/// `tokenizer` comes from `tt_tokenizer_new`.
#[no_mangle]
pub unsafe extern "C" fn tt_detokenizer_new(
    tokenizer: *const Arc<TextTokenizer>,
    skip_special: bool,
) -> *mut Detokenizer {
    value_or(std::ptr::null_mut(), || {
        Box::into_raw(Box::new(Detokenizer::new((*tokenizer).clone(), skip_special)))
    })
}

/// # Safety
/// `state` comes from `tt_detokenizer_new`; `out` is writable.
#[no_mangle]
pub unsafe extern "C" fn tt_detokenizer_push(state: *mut Detokenizer, id: u32, out: *mut Text) -> i32 {
    report(std::ptr::null_mut(), || {
        (*out).set((*state).push(id));
        Ok::<(), Failure>(())
    })
}

/// # Safety
/// As `tt_detokenizer_push`.
#[no_mangle]
pub unsafe extern "C" fn tt_detokenizer_flush(state: *mut Detokenizer, out: *mut Text) -> i32 {
    report(std::ptr::null_mut(), || {
        (*out).set((*state).flush());
        Ok::<(), Failure>(())
    })
}

/// # Safety
/// `state` comes from `tt_detokenizer_new` and is not used again.
#[no_mangle]
pub unsafe extern "C" fn tt_detokenizer_free(state: *mut Detokenizer) {
    if !state.is_null() {
        drop(Box::from_raw(state));
    }
}
