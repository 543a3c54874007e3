//! Encoding with protected bytes: no added token may be recognised that touches one of them, all else
//! is as in `tokenizers`.
//!
//! The crate finds added tokens itself and cannot be told to leave one out, so this file does that
//! search again (after `AddedVocabulary` of tokenizers 0.22) within the stretches between protected
//! ranges, and hands the split text to the crate's own normalizer, pre-tokenizer and model. With
//! nothing protected the result equals `Tokenizer::encode`; the tests hold it to that.

use crate::abi::Failure;
use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use regex::Regex;
use std::collections::HashSet;
use std::ops::Range as ByteRange;
use tokenizers::tokenizer::normalizer::Range;
use tokenizers::tokenizer::{
    AddedToken, Model, NormalizedString, Normalizer, OffsetType, PreTokenizedString, PreTokenizer,
    Token, Tokenizer,
};

/// Added tokens that are looked for in the same form of the text.
struct TokenSet {
    automaton: AhoCorasick,
    tokens: Vec<(u32, AddedToken)>,
}

impl TokenSet {
    fn new(tokens: Vec<(u32, AddedToken)>, patterns: Vec<String>) -> Result<Self, Failure> {
        let automaton = AhoCorasickBuilder::new()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&patterns)
            .map_err(|e| Failure::corrupt(format!("added tokens: {e}")))?;
        Ok(TokenSet { automaton, tokens })
    }
}

/// A piece of text with the added token that it is, if it is one.
type Piece = (Option<u32>, ByteRange<usize>);

pub struct SegmentEncoder {
    word: Regex,
    /// Tokens looked for in the text as it stands.
    raw: TokenSet,
    /// Tokens looked for after normalization.
    normalized: TokenSet,
    special_ids: HashSet<u32>,
}

impl SegmentEncoder {
    pub fn new(tokenizer: &Tokenizer) -> Result<Self, Failure> {
        let mut all: Vec<_> = tokenizer.get_added_tokens_decoder().into_iter().collect();
        all.sort_by_key(|(id, _)| *id);
        let special_ids = all.iter().filter(|(_, t)| t.special).map(|(id, _)| *id).collect();
        let (normalized, raw): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, t)| t.normalized);
        let mut patterns = Vec::new();
        for (_, token) in &normalized {
            let mut pattern = NormalizedString::from(token.content.as_str());
            if let Some(normalizer) = tokenizer.get_normalizer() {
                normalizer.normalize(&mut pattern).map_err(|e| Failure::corrupt(e.to_string()))?;
            }
            patterns.push(pattern.get().to_string());
        }
        let raw_patterns = raw.iter().map(|(_, t)| t.content.clone()).collect();
        Ok(SegmentEncoder {
            word: Regex::new(r"\w").expect("constant"),
            raw: TokenSet::new(raw, raw_patterns)?,
            normalized: TokenSet::new(normalized, patterns)?,
            special_ids,
        })
    }

    /// Ids of `text`, without those that a post-processor adds. `protected` is sorted, disjoint and
    /// on character boundaries.
    pub fn encode(
        &self,
        tokenizer: &Tokenizer,
        text: &str,
        protected: &[ByteRange<usize>],
    ) -> Result<Vec<u32>, Failure> {
        let failed = |e: tokenizers::Error| Failure::invalid(format!("cannot tokenise: {e}"));
        let mut pieces = PreTokenizedString::from(text);
        pieces
            .split(|_, piece| Ok(self.split(&piece, &self.raw, protected)))
            .map_err(failed)?;
        pieces
            .split(|_, mut piece| {
                if let Some(normalizer) = tokenizer.get_normalizer() {
                    normalizer.normalize(&mut piece)?;
                }
                Ok(self.split(&piece, &self.normalized, protected))
            })
            .map_err(failed)?;
        if let Some(pre_tokenizer) = tokenizer.get_pre_tokenizer() {
            pre_tokenizer.pre_tokenize(&mut pieces).map_err(failed)?;
        }
        pieces
            .tokenize(|piece| self.model_tokens(tokenizer, piece.get()))
            .map_err(failed)?;
        let encoding = pieces.into_encoding(None, 0, OffsetType::None).map_err(failed)?;
        Ok(encoding.get_ids().to_vec())
    }

    /// The model's tokens of plain text. A model may hold a special token in its own vocabulary
    /// (Unigram, WordLevel) and make it from text; such text is cut inside the token's string.
    fn model_tokens(&self, tokenizer: &Tokenizer, text: &str) -> tokenizers::Result<Vec<Token>> {
        let tokens = tokenizer.get_model().tokenize(text)?;
        for token in tokens.iter().filter(|t| self.special_ids.contains(&t.id)) {
            let string = tokenizer.id_to_token(token.id).unwrap_or_default();
            let Some(at) = text.find(&string) else {
                continue; // the model's "unknown" token, made from something else
            };
            let first = string.chars().next().map_or(0, char::len_utf8);
            if first == 0 || first == string.len() {
                return Err(format!("cannot keep {string:?} as text").into());
            }
            let (left, right) = text.split_at(at + first);
            let mut safe = self.model_tokens(tokenizer, left)?;
            safe.extend(self.model_tokens(tokenizer, right)?);
            return Ok(safe);
        }
        Ok(tokens)
    }

    fn split(
        &self,
        text: &NormalizedString,
        set: &TokenSet,
        protected: &[ByteRange<usize>],
    ) -> Vec<(NormalizedString, Option<Vec<Token>>)> {
        let local = local_ranges(text, protected);
        self.find(text.get(), set, &local)
            .into_iter()
            .filter_map(|(id, range)| {
                let slice = text.slice(Range::Normalized(range))?;
                let tokens = id.map(|id| {
                    let value = slice.get().to_owned();
                    let n = value.len();
                    vec![Token::new(id, value, (0, n))]
                });
                Some((slice, tokens))
            })
            .collect()
    }

    fn is_word(&self, c: Option<char>) -> bool {
        c.is_some_and(|c| self.word.is_match(c.encode_utf8(&mut [0; 4])))
    }

    /// Cuts `text` into added tokens and what lies between them.
    fn find(&self, text: &str, set: &TokenSet, protected: &[ByteRange<usize>]) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut done = 0;
        let mut stretch_begin = 0;
        let ends = protected.iter().map(|r| (r.start, r.end)).chain([(text.len(), text.len())]);
        for (stretch_end, next_begin) in ends {
            if stretch_begin < stretch_end {
                for found in set.automaton.find_iter(&text[stretch_begin..stretch_end]) {
                    let (id, token) = &set.tokens[found.pattern().as_usize()];
                    let mut start = stretch_begin + found.start();
                    let mut end = stretch_begin + found.end();
                    if token.single_word
                        && (self.is_word(text[..start].chars().next_back())
                            || self.is_word(text[end..].chars().next()))
                    {
                        continue;
                    }
                    if token.lstrip {
                        start = text[..start].trim_end().len().max(done);
                    }
                    if token.rstrip {
                        end = text.len() - text[end..].trim_start().len();
                    }
                    if start < done || end <= start {
                        continue; // an rstrip token before has swallowed it
                    }
                    if done < start {
                        pieces.push((None, done..start));
                    }
                    pieces.push((Some(*id), start..end));
                    done = end;
                }
            }
            stretch_begin = next_begin;
        }
        if done < text.len() {
            pieces.push((None, done..text.len()));
        }
        pieces
    }
}

/// The parts of `protected` (bytes of the original) that lie in `text`, as bytes of its present form.
/// Linear in the text: a user may write very many reserved strings.
fn local_ranges(text: &NormalizedString, protected: &[ByteRange<usize>]) -> Vec<ByteRange<usize>> {
    let (begin, end) = text.offsets_original();
    let first = protected.partition_point(|r| r.end <= begin);
    let inside: Vec<ByteRange<usize>> = protected[first..]
        .iter()
        .take_while(|r| r.start < end)
        .map(|r| r.start.max(begin) - begin..r.end.min(end) - begin)
        .collect();
    if inside.is_empty() || text.get() == text.get_original() {
        return inside;
    }
    // A character of the normalized text is protected when anything it was made from is.
    let mut local: Vec<ByteRange<usize>> = Vec::new();
    let mut next = 0;
    for (at, c) in text.get().char_indices() {
        let here = at..at + c.len_utf8();
        let Some(source) = text.convert_offsets(Range::Normalized(here.clone())) else {
            continue;
        };
        while next < inside.len() && inside[next].end <= source.start {
            next += 1;
        }
        if inside.get(next).is_none_or(|r| source.is_empty() || r.start >= source.end) {
            continue;
        }
        match local.last_mut() {
            Some(last) if last.end == here.start => last.end = here.end,
            _ => local.push(here),
        }
    }
    local
}
