//! Grammars that constrain an answer (llguidance): compiled against a tokenizer, asked for a mask of
//! allowed tokens before each step.

use crate::abi::{report, value_or, Bytes, Failure, Text, STATE};
use crate::detokenize::{byte_of_char, byte_of_fallback_token, DecoderKind};
use crate::tokenizer::TextTokenizer;
use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv};
use llguidance::{JsonCompileOptions, Matcher, ParserFactory};
use std::sync::Arc;

/// The tokenizer as llguidance sees it.
struct Env {
    trie: TokTrie,
    tokenizer: Arc<TextTokenizer>,
}

impl TokenizerEnv for Env {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }
    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| self.ids_within_text(text))
    }
}

impl Env {
    /// Ids of `text` in the middle of an answer. At the start of a text some tokenizers put a space
    /// in front, so the text is encoded behind a line break, whose ids are taken off again.
    fn ids_within_text(&self, text: &str) -> Vec<TokenId> {
        let encode = |text: &str| {
            let whole = 0..text.len();
            self.tokenizer.encode_protected(text, &[whole]).unwrap_or_default()
        };
        let ids = encode(&format!("\n{text}"));
        match ids.strip_prefix(encode("\n").as_slice()) {
            Some(rest) => rest.to_vec(),
            None => self.trie.greedy_tokenize(text.as_bytes()),
        }
    }
}

/// The bytes each token stands for; special tokens carry the trie's marker.
fn token_bytes(tokenizer: &TextTokenizer) -> Vec<Vec<u8>> {
    (0..tokenizer.vocab_size() as u32)
        .map(|id| {
            let Some(token) = tokenizer.inner.id_to_token(id) else {
                return Vec::new();
            };
            if tokenizer.is_special(id) {
                return [&[TokTrie::SPECIAL_TOKEN_MARKER], token.as_bytes()].concat();
            }
            match tokenizer.decoder_kind {
                DecoderKind::ByteLevel => token
                    .chars()
                    .map(byte_of_char)
                    .collect::<Option<Vec<u8>>>()
                    .unwrap_or_else(|| token.clone().into_bytes()),
                DecoderKind::ByteFallback | DecoderKind::Words => match byte_of_fallback_token(&token) {
                    Some(byte) => vec![byte],
                    None => token.replace('\u{2581}', " ").into_bytes(),
                },
            }
        })
        .collect()
}

pub struct Factory(ParserFactory);

fn make_factory(tokenizer: &Arc<TextTokenizer>, eos: u32) -> Result<Factory, Failure> {
    let words = token_bytes(tokenizer);
    let trie = TokTrie::from(&TokRxInfo::new(words.len() as u32, eos), &words);
    let env: TokEnv = Arc::new(Env { trie, tokenizer: tokenizer.clone() });
    let mut factory = ParserFactory::new_simple(&env).map_err(|e| Failure::invalid(e.to_string()))?;
    factory.quiet();
    Ok(Factory(factory))
}

/// White space between two parts of an answer. Unbounded, a model that has lost its way goes on with
/// blanks until its tokens are used up, and the answer is no JSON.
const WHITESPACE: &str = r"[\x20\x0A\x0D\x09]{1,40}";

/// The schema with the bound on white space, unless it has options of its own (`x-guidance`).
fn bounded(mut schema: serde_json::Value) -> serde_json::Value {
    if schema.is_object() && schema.get("x-guidance").is_none() {
        let options =
            JsonCompileOptions { whitespace_pattern: Some(WHITESPACE.into()), ..Default::default() };
        options.apply_to(&mut schema);
    }
    schema
}

fn grammar(kind: i32, text: &str) -> Result<TopLevelGrammar, Failure> {
    let json = |text: &str| {
        serde_json::from_str::<serde_json::Value>(text)
            .map_err(|e| Failure::invalid(format!("grammar is not JSON: {e}")))
    };
    match kind {
        0 => Ok(TopLevelGrammar::from_json_schema(bounded(json(text)?))),
        1 => Ok(TopLevelGrammar::from_regex(text)),
        2 => Ok(TopLevelGrammar::from_lark(text.to_string())),
        3 => {
            let choices: Vec<String> = serde_json::from_value(json(text)?)
                .map_err(|_| Failure::invalid("choices must be a JSON array of strings"))?;
            if choices.is_empty() {
                return Err(Failure::invalid("choices are empty"));
            }
            let escaped: Vec<String> = choices.iter().map(|c| regex::escape(c)).collect();
            Ok(TopLevelGrammar::from_regex(&format!("({})", escaped.join("|"))))
        }
        _ => Err(Failure::invalid(format!("no grammar kind {kind}"))),
    }
}

/// Stack of a compilation. The compiler follows rules and references by recursion, one frame of a few
/// KiB each; a grammar of the longest that callers let through (64 KiB) has some 10,000 of them. Only
/// what is used becomes memory.
const COMPILE_STACK_BYTES: usize = 256 << 20;

fn on_deep_stack<T: Send>(work: impl FnOnce() -> Result<T, Failure> + Send) -> Result<T, Failure> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .stack_size(COMPILE_STACK_BYTES)
            .spawn_scoped(scope, work)
            .map_err(|e| Failure::invalid(format!("no thread for the grammar's compiler: {e}")))?;
        // A panic goes on here, where the caller turns it into an error.
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn compile(factory: &Factory, kind: i32, text: &str) -> Result<Matcher, Failure> {
    let matcher = Matcher::new(factory.0.create_parser(grammar(kind, text)?));
    match matcher.get_error() {
        Some(text) => Err(Failure::invalid(text)),
        None => Ok(matcher),
    }
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tt_grammar_factory_new(
    tokenizer: *const Arc<TextTokenizer>,
    eos: u32,
    out: *mut *mut Factory,
    error: *mut Text,
) -> i32 {
    report(error, || {
        *out = Box::into_raw(Box::new(make_factory(&*tokenizer, eos)?));
        Ok(())
    })
}

/// # Safety
/// `factory` comes from `tt_grammar_factory_new` and is not used again.
#[no_mangle]
pub unsafe extern "C" fn tt_grammar_factory_free(factory: *mut Factory) {
    if !factory.is_null() {
        drop(Box::from_raw(factory));
    }
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tt_matcher_new(
    factory: *const Factory,
    kind: i32,
    text: Bytes,
    out: *mut *mut Matcher,
    error: *mut Text,
) -> i32 {
    report(error, || {
        let text = text.as_str("the grammar")?;
        let factory = &*factory;
        *out = Box::into_raw(Box::new(on_deep_stack(|| compile(factory, kind, text))?));
        Ok(())
    })
}

/// A copy with lexer caches of its own, so that both may be used by different threads.
///
/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tt_matcher_clone(
    matcher: *const Matcher,
    out: *mut *mut Matcher,
    error: *mut Text,
) -> i32 {
    report(error, || {
        *out = Box::into_raw(Box::new((*matcher).deep_clone()));
        Ok(())
    })
}

/// # Safety
/// See the header; `words` points at `n_words` writable words.
#[no_mangle]
pub unsafe extern "C" fn tt_matcher_mask(
    matcher: *mut Matcher,
    words: *mut u32,
    n_words: usize,
    error: *mut Text,
) -> i32 {
    report(error, || {
        let matcher = &mut *matcher;
        if matcher.is_stopped() {
            return Err(Failure::new(STATE, "the grammar has stopped"));
        }
        let mask = matcher.compute_mask().map_err(|e| Failure::invalid(e.to_string()))?;
        let out = std::slice::from_raw_parts_mut(words, n_words);
        let source = mask.as_slice();
        for (index, word) in out.iter_mut().enumerate() {
            *word = source.get(index).copied().unwrap_or(0);
        }
        Ok(())
    })
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tt_matcher_consume(matcher: *mut Matcher, id: u32, error: *mut Text) -> i32 {
    report(error, || {
        let taken = (*matcher).try_consume_tokens(&[id]).map_err(|e| Failure::invalid(e.to_string()))?;
        if taken == 1 {
            Ok(())
        } else {
            Err(Failure::invalid(format!("the grammar does not allow token {id} here")))
        }
    })
}

/// # Safety
/// `matcher` comes from `tt_matcher_new`.
#[no_mangle]
pub unsafe extern "C" fn tt_matcher_is_stopped(matcher: *const Matcher) -> bool {
    value_or(true, || (*matcher).is_stopped())
}

/// # Safety
/// `matcher` comes from `tt_matcher_new`.
#[no_mangle]
pub unsafe extern "C" fn tt_matcher_is_accepting(matcher: *mut Matcher) -> bool {
    value_or(false, || (*matcher).is_accepting().unwrap_or(false))
}

/// # Safety
/// `matcher` comes from `tt_matcher_new` and is not used again.
#[no_mangle]
pub unsafe extern "C" fn tt_matcher_free(matcher: *mut Matcher) {
    if !matcher.is_null() {
        drop(Box::from_raw(matcher));
    }
}
