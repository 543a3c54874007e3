/* C ABI of rust/text_ffi. Included by src/text and its tests only.
 *
 * Every function that can fail returns a tt_status and, when `error` is not null, fills it with one
 * line of text (free it with tt_text_free). No function unwinds into C. Strings are UTF-8 and not
 * terminated by zero. Handles of tokenizers, templates and grammar factories may be used by several
 * threads at once; detokenizers, matchers and hashers by one at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t tt_status;
enum {
  TT_OK = 0,
  TT_INVALID = 1,  /* the caller's input */
  TT_CORRUPT = 2,  /* a checkpoint's file */
  TT_LIMIT = 3,    /* over a limit of time, memory or output */
  TT_STATE = 4,    /* not possible in this state */
  TT_INTERNAL = 5, /* a panic was caught */
};

/* Borrowed for the duration of a call. */
typedef struct {
  const uint8_t* data;
  size_t size;
} tt_bytes;

/* Owned by the caller until freed; start from {NULL, 0}. */
typedef struct {
  uint8_t* data;
  size_t size;
} tt_text;
typedef struct {
  uint32_t* data;
  size_t size;
} tt_ids;

void tt_text_free(tt_text text);
void tt_ids_free(tt_ids ids);

/* ---- Tokenizers ---- */
typedef struct tt_tokenizer tt_tokenizer;

/* `json`: the text of a tokenizer.json. `config`: a JSON object {added_tokens: [{id?, content,
 * flags...}], special: [strings], bos?, eos?, add_bos?, add_eos?}. */
tt_status tt_tokenizer_new(tt_bytes json, tt_bytes config, tt_tokenizer** out, tt_text* error);
void tt_tokenizer_free(tt_tokenizer* tokenizer);
tt_status tt_tokenizer_encode(const tt_tokenizer* tokenizer, tt_bytes text, bool add_special,
                              tt_ids* out, tt_text* error);
/* No added token is recognised that touches a byte of the ranges: `n_ranges` pairs of begin and end,
 * sorted, disjoint, on character boundaries. */
tt_status tt_tokenizer_encode_protected(const tt_tokenizer* tokenizer, tt_bytes text,
                                        const size_t* ranges, size_t n_ranges, tt_ids* out,
                                        tt_text* error);
tt_status tt_tokenizer_decode(const tt_tokenizer* tokenizer, const uint32_t* ids, size_t n_ids,
                              bool skip_special, tt_text* out);
size_t tt_tokenizer_vocab_size(const tt_tokenizer* tokenizer);
/* -1 when there is no such token. */
int64_t tt_tokenizer_token_to_id(const tt_tokenizer* tokenizer, tt_bytes token);
bool tt_tokenizer_id_to_token(const tt_tokenizer* tokenizer, uint32_t id, tt_text* out);
bool tt_tokenizer_is_special(const tt_tokenizer* tokenizer, uint32_t id);
/* A JSON array of strings, by id. */
tt_status tt_tokenizer_special_strings(const tt_tokenizer* tokenizer, tt_text* out);

/* ---- Streaming detokenizers ---- */
typedef struct tt_detokenizer tt_detokenizer;

/* Keeps the tokenizer alive by itself. */
tt_detokenizer* tt_detokenizer_new(const tt_tokenizer* tokenizer, bool skip_special);
tt_status tt_detokenizer_push(tt_detokenizer* state, uint32_t id, tt_text* out);
tt_status tt_detokenizer_flush(tt_detokenizer* state, tt_text* out);
void tt_detokenizer_free(tt_detokenizer* state);

/* ---- Chat templates ---- */
typedef struct tt_template tt_template;

typedef struct {
  uint64_t fuel;           /* template instructions */
  size_t max_output_bytes; /* of the output; memory on the way is bounded by a multiple of it */
  double max_seconds;
} tt_render_limits;

tt_status tt_template_new(tt_bytes source, tt_render_limits limits, tt_template** out,
                          tt_text* error);
/* `context`: a JSON object, the template's variables. */
tt_status tt_template_render(const tt_template* tmpl, tt_bytes context, tt_render_limits limits,
                             tt_text* out, tt_text* error);
void tt_template_free(tt_template* tmpl);

/* ---- Grammars ---- */
typedef struct tt_grammar_factory tt_grammar_factory;
typedef struct tt_matcher tt_matcher;

tt_status tt_grammar_factory_new(const tt_tokenizer* tokenizer, uint32_t eos,
                                 tt_grammar_factory** out, tt_text* error);
void tt_grammar_factory_free(tt_grammar_factory* factory);
/* `kind`: 0 JSON schema, 1 regular expression, 2 Lark, 3 JSON array of choices. */
tt_status tt_matcher_new(const tt_grammar_factory* factory, int32_t kind, tt_bytes text,
                         tt_matcher** out, tt_text* error);
/* A matcher in the same state that shares nothing with the first. */
tt_status tt_matcher_clone(const tt_matcher* matcher, tt_matcher** out, tt_text* error);
/* Bit i of the words is token i, lowest bit first; words beyond the vocabulary become 0. */
tt_status tt_matcher_mask(tt_matcher* matcher, uint32_t* words, size_t n_words, tt_text* error);
tt_status tt_matcher_consume(tt_matcher* matcher, uint32_t id, tt_text* error);
bool tt_matcher_is_stopped(const tt_matcher* matcher);
bool tt_matcher_is_accepting(tt_matcher* matcher);
void tt_matcher_free(tt_matcher* matcher);

/* ---- BLAKE3 ---- */
typedef struct tt_blake3_hasher tt_blake3_hasher;

void tt_blake3(tt_bytes bytes, uint8_t out[32]);
tt_blake3_hasher* tt_blake3_new(void);
void tt_blake3_update(tt_blake3_hasher* hasher, tt_bytes bytes);
void tt_blake3_finish(const tt_blake3_hasher* hasher, uint8_t out[32]);
void tt_blake3_free(tt_blake3_hasher* hasher);

/* ---- Base64 ---- */

/* Standard alphabet, with or without padding; `out` gets the bytes. TT_INVALID says where the text is wrong. */
tt_status tt_base64_decode(tt_bytes text, tt_text* out, tt_text* error);

#ifdef __cplusplus
}
#endif
