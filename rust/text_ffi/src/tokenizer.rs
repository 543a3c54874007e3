//! Tokenizers: loading as transformers loads them, encoding, decoding, the vocabulary.

use crate::abi::{report, value_or, Bytes, Failure, Ids, Text};
use crate::detokenize::{decode, DecoderKind};
use crate::segments::SegmentEncoder;
use serde::Deserialize;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tokenizers::tokenizer::{AddedToken, Tokenizer};

/// An entry of tokenizer_config.json's added_tokens_decoder.
#[derive(Deserialize, Clone)]
struct DeclaredToken {
    id: Option<u32>,
    content: String,
    #[serde(default)]
    single_word: bool,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
    normalized: Option<bool>,
    #[serde(default)]
    special: bool,
}

impl DeclaredToken {
    fn to_added(&self) -> AddedToken {
        AddedToken {
            content: self.content.clone(),
            single_word: self.single_word,
            lstrip: self.lstrip,
            rstrip: self.rstrip,
            normalized: self.normalized.unwrap_or(!self.special),
            special: self.special,
        }
    }
}

/// What beside tokenizer.json decides about a tokenizer; the C++ side writes it as JSON.
#[derive(Deserialize, Default)]
struct Config {
    #[serde(default)]
    added_tokens: Vec<DeclaredToken>,
    /// Strings of named and extra special tokens, in order.
    #[serde(default)]
    special: Vec<String>,
    bos: Option<String>,
    eos: Option<String>,
    add_bos: Option<bool>,
    add_eos: Option<bool>,
}

/// Far above any real vocabulary; tables by id stay small.
const MAX_VOCAB: usize = 1 << 24;

pub struct TextTokenizer {
    pub inner: Tokenizer,
    pub decoder_kind: DecoderKind,
    segments: SegmentEncoder,
    special_ids: HashSet<u32>,
    /// BOS and EOS to add in place of tokenizer.json's own post-processor, when the flags differ.
    frame: Option<(Option<u32>, Option<u32>)>,
    vocab_size: usize,
}

impl TextTokenizer {
    fn new(json: &[u8], config: Config) -> Result<Self, Failure> {
        let mut inner =
            Tokenizer::from_bytes(json).map_err(|e| Failure::corrupt(format!("not a tokenizer: {e}")))?;
        let _ = inner.with_truncation(None);
        inner.with_padding(None);
        add_declared(&mut inner, &config.added_tokens)?;
        add_special(&mut inner, &config)?;
        let added = inner.get_added_tokens_decoder();
        let special_ids = added.iter().filter(|(_, t)| t.special).map(|(id, _)| *id).collect();
        let vocab_size = inner.get_vocab(true).into_values().max().map_or(0, |m| m as usize + 1);
        if vocab_size > MAX_VOCAB {
            return Err(Failure::corrupt(format!("a token has the id {}", vocab_size - 1)));
        }
        let mut made = TextTokenizer {
            segments: SegmentEncoder::new(&inner)?,
            decoder_kind: DecoderKind::of(&inner),
            inner,
            special_ids,
            frame: None,
            vocab_size,
        };
        made.frame = made.frame_for(&config)?;
        Ok(made)
    }

    /// transformers lets add_bos_token and add_eos_token replace tokenizer.json's post-processor; a
    /// flag that is not given leaves its rule, which encoding an empty text shows.
    fn frame_for(&self, config: &Config) -> Result<Option<(Option<u32>, Option<u32>)>, Failure> {
        if config.add_bos.is_none() && config.add_eos.is_none() {
            return Ok(None);
        }
        let id_of = |name: &Option<String>| name.as_ref().and_then(|s| self.inner.token_to_id(s));
        let (bos, eos) = (id_of(&config.bos), id_of(&config.eos));
        let own = self.encode("", true)?;
        let wants = |flag: Option<bool>, id: Option<u32>, at: Option<&u32>| {
            flag.map_or(at.copied(), |yes| if yes { id } else { None })
        };
        let front = wants(config.add_bos, bos, own.first().filter(|id| Some(**id) == bos));
        let back = wants(config.add_eos, eos, own.last().filter(|id| Some(**id) == eos));
        let asked: Vec<u32> = front.into_iter().chain(back).collect();
        Ok(if asked == own { None } else { Some((front, back)) })
    }

    pub fn is_special(&self, id: u32) -> bool {
        self.special_ids.contains(&id)
    }

    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    pub fn encode(&self, text: &str, add_special: bool) -> Result<Vec<u32>, Failure> {
        let by_crate = add_special && self.frame.is_none();
        let encoding = self
            .inner
            .encode_fast(text, by_crate)
            .map_err(|e| Failure::invalid(format!("cannot tokenise: {e}")))?;
        let mut ids = encoding.get_ids().to_vec();
        if let (true, Some((bos, eos))) = (add_special, self.frame) {
            if let Some(bos) = bos {
                ids.insert(0, bos);
            }
            ids.extend(eos);
        }
        Ok(ids)
    }

    pub fn encode_protected(
        &self,
        text: &str,
        protected: &[std::ops::Range<usize>],
    ) -> Result<Vec<u32>, Failure> {
        self.segments.encode(&self.inner, text, protected)
    }
}

/// Adds what tokenizer_config.json declares and tokenizer.json lacks, in the order of ids.
fn add_declared(inner: &mut Tokenizer, declared: &[DeclaredToken]) -> Result<(), Failure> {
    let mut sorted: Vec<_> = declared.to_vec();
    sorted.sort_by_key(|t| t.id.unwrap_or(u32::MAX));
    for token in sorted.iter().filter(|t| t.id.is_some()) {
        let known = inner.token_to_id(&token.content).is_some();
        inner.add_tokens(&[token.to_added()]);
        let id = inner.token_to_id(&token.content);
        if !known && id != token.id {
            return Err(Failure::corrupt(format!(
                "added_tokens_decoder gives {:?} the id {}, but tokenizer.json leaves it {}",
                token.content,
                token.id.unwrap_or_default(),
                id.unwrap_or_default()
            )));
        }
    }
    Ok(())
}

/// Makes the named and extra special tokens special.
fn add_special(inner: &mut Tokenizer, config: &Config) -> Result<(), Failure> {
    let flags: HashMap<&str, AddedToken> =
        config.added_tokens.iter().map(|t| (t.content.as_str(), t.to_added())).collect();
    let present: HashMap<String, AddedToken> =
        inner.get_added_tokens_decoder().into_values().map(|t| (t.content.clone(), t)).collect();
    let tokens: Vec<AddedToken> = config
        .special
        .iter()
        .map(|content| {
            let known = present.get(content).or_else(|| flags.get(content.as_str()));
            let mut token = known.cloned().unwrap_or_else(|| AddedToken::from(content.clone(), true));
            token.special = true;
            token
        })
        .collect();
    inner.add_special_tokens(&tokens);
    Ok(())
}

type Handle = Arc<TextTokenizer>;

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tt_tokenizer_new(
    json: Bytes,
    config: Bytes,
    out: *mut *mut Handle,
    error: *mut Text,
) -> i32 {
    report(error, || {
        let config: Config = serde_json::from_slice(config.as_slice())
            .map_err(|e| Failure::corrupt(format!("tokenizer_config: {e}")))?;
        let made = TextTokenizer::new(json.as_slice(), config)?;
        *out = Box::into_raw(Box::new(Arc::new(made)));
        Ok(())
    })
}

/// # Safety
/// `tokenizer` comes from `tt_tokenizer_new` and is not used again.
#[no_mangle]
pub unsafe extern "C" fn tt_tokenizer_free(tokenizer: *mut Handle) {
    if !tokenizer.is_null() {
        drop(Box::from_raw(tokenizer));
    }
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tt_tokenizer_encode(
    tokenizer: *const Handle,
    text: Bytes,
    add_special: bool,
    out: *mut Ids,
    error: *mut Text,
) -> i32 {
    report(error, || {
        (*out).set((*tokenizer).encode(text.as_str("text")?, add_special)?);
        Ok(())
    })
}

/// # Safety
/// See the header; `ranges` points at `n_ranges` pairs of begin and end.
#[no_mangle]
pub unsafe extern "C" fn tt_tokenizer_encode_protected(
    tokenizer: *const Handle,
    text: Bytes,
    ranges: *const usize,
    n_ranges: usize,
    out: *mut Ids,
    error: *mut Text,
) -> i32 {
    report(error, || {
        let text = text.as_str("text")?;
        let flat = if n_ranges == 0 { &[] } else { std::slice::from_raw_parts(ranges, 2 * n_ranges) };
        let mut protected = Vec::with_capacity(n_ranges);
        let mut done = 0;
        for pair in flat.chunks_exact(2) {
            let (begin, end) = (pair[0], pair[1]);
            let whole = text.is_char_boundary(begin) && text.is_char_boundary(end);
            if begin < done || end < begin || !whole {
                return Err(Failure::invalid(format!("bad protected range {begin}..{end}")));
            }
            done = end;
            protected.push(begin..end);
        }
        (*out).set((*tokenizer).encode_protected(text, &protected)?);
        Ok(())
    })
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tt_tokenizer_decode(
    tokenizer: *const Handle,
    ids: *const u32,
    n_ids: usize,
    skip_special: bool,
    out: *mut Text,
) -> i32 {
    report(std::ptr::null_mut(), || {
        let ids = if n_ids == 0 { &[] } else { std::slice::from_raw_parts(ids, n_ids) };
        (*out).set(decode(&*tokenizer, ids, skip_special));
        Ok(())
    })
}

/// # Safety
/// `tokenizer` comes from `tt_tokenizer_new`.
#[no_mangle]
pub unsafe extern "C" fn tt_tokenizer_vocab_size(tokenizer: *const Handle) -> usize {
    value_or(0, || (*tokenizer).vocab_size())
}

/// # Safety
/// `tokenizer` comes from `tt_tokenizer_new`.
#[no_mangle]
pub unsafe extern "C" fn tt_tokenizer_token_to_id(tokenizer: *const Handle, token: Bytes) -> i64 {
    value_or(-1, || {
        let this = &*tokenizer;
        let string = std::str::from_utf8(token.as_slice()).ok();
        string.and_then(|t| this.inner.token_to_id(t)).map_or(-1, i64::from)
    })
}

/// # Safety
/// `tokenizer` comes from `tt_tokenizer_new`; `out` is writable.
#[no_mangle]
pub unsafe extern "C" fn tt_tokenizer_id_to_token(
    tokenizer: *const Handle,
    id: u32,
    out: *mut Text,
) -> bool {
    value_or(false, || {
        let token = (&*tokenizer).inner.id_to_token(id);
        let found = token.is_some();
        if let Some(token) = token {
            (*out).set(token);
        }
        found
    })
}

/// # Safety
/// `tokenizer` comes from `tt_tokenizer_new`.
#[no_mangle]
pub unsafe extern "C" fn tt_tokenizer_is_special(tokenizer: *const Handle, id: u32) -> bool {
    value_or(false, || (*tokenizer).is_special(id))
}

/// # Safety
/// `tokenizer` comes from `tt_tokenizer_new`; `out` is writable.
#[no_mangle]
pub unsafe extern "C" fn tt_tokenizer_special_strings(tokenizer: *const Handle, out: *mut Text) -> i32 {
    report(std::ptr::null_mut(), || {
        let this = &*tokenizer;
        let mut ids: Vec<u32> = this.special_ids.iter().copied().collect();
        ids.sort_unstable();
        let strings: Vec<String> =
            ids.into_iter().filter_map(|id| this.inner.id_to_token(id)).collect();
        (*out).set(serde_json::to_vec(&strings).unwrap_or_default());
        Ok(())
    })
}
