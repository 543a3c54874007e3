#include "text/grammar.h"

#include <algorithm>
#include <sstream>

#include "text/ffi.h"

namespace triptych {

struct GrammarMatcher::State {
  State(tt_matcher* matcher, size_t vocabulary) : raw(matcher), n_tokens(vocabulary) {}
  ~State() { tt_matcher_free(raw); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  tt_matcher* raw;
  size_t n_tokens;
};

struct GrammarCompiler::State {
  State(std::shared_ptr<const Tokenizer> source, tt_grammar_factory* factory)
      : tokenizer(std::move(source)), raw(factory) {}
  ~State() { tt_grammar_factory_free(raw); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  std::shared_ptr<const Tokenizer> tokenizer;
  tt_grammar_factory* raw;
};

namespace {

/// Compilers of grammars descend by recursion, so depth is bounded before they look. Brackets that
/// are escaped do not count; those in quotes do, as what is a quote depends on the kind.
Status check_size(std::string_view text) {
  if (text.size() > kMaxGrammarBytes) {
    return out_of_range("grammar: it has " + std::to_string(text.size()) + " bytes; it may have " +
                        std::to_string(kMaxGrammarBytes));
  }
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\') ++i;
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') depth = std::max(0, depth - 1);
    if (depth > kMaxGrammarDepth) {
      return invalid_argument("grammar: brackets are nested deeper than " +
                              std::to_string(kMaxGrammarDepth));
    }
  }
  return Status::ok();
}

/// A message of several lines as one, without the lines that only point at a column and without the
/// dump of the parser's state that may follow.
Status on_one_line(const Status& status) {
  if (status.is_ok()) return status;
  std::string out;
  std::istringstream lines(status.message().substr(0, status.message().find("<state>")));
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.find_first_not_of(" \t|");
    if (begin == std::string::npos || line.find_first_not_of(" ^|") == std::string::npos) continue;
    out += (out.empty() ? "" : " ") + line.substr(begin);
  }
  return {status.code(), std::move(out)};
}

}  // namespace

GrammarMatcher::GrammarMatcher(std::unique_ptr<State> state) : state_(std::move(state)) {}
GrammarMatcher::~GrammarMatcher() = default;
GrammarMatcher::GrammarMatcher(GrammarMatcher&&) noexcept = default;
GrammarMatcher& GrammarMatcher::operator=(GrammarMatcher&&) noexcept = default;

Result<GrammarMatcher> GrammarMatcher::fork() const {
  tt_matcher* raw = nullptr;
  ffi::Text error;
  const tt_status status = tt_matcher_clone(state_->raw, &raw, error.out());
  TRIPTYCH_RETURN_IF_ERROR(ffi::to_status(status, error));
  return GrammarMatcher(std::make_unique<State>(raw, state_->n_tokens));
}

size_t GrammarMatcher::mask_words() const { return (state_->n_tokens + 31) / 32; }

Status GrammarMatcher::compute_mask(std::span<uint32_t> mask) {
  if (mask.size() != mask_words()) {
    return invalid_argument("the mask has " + std::to_string(mask.size()) + " words, not " +
                            std::to_string(mask_words()));
  }
  ffi::Text error;
  const tt_status status = tt_matcher_mask(state_->raw, mask.data(), mask.size(), error.out());
  return on_one_line(ffi::to_status(status, error));
}

Status GrammarMatcher::consume(TokenId id) {
  if (id < 0) return invalid_argument("no token has the id " + std::to_string(id));
  ffi::Text error;
  const tt_status status = tt_matcher_consume(state_->raw, static_cast<uint32_t>(id), error.out());
  return on_one_line(ffi::to_status(status, error));
}

bool GrammarMatcher::is_stopped() const { return tt_matcher_is_stopped(state_->raw); }
bool GrammarMatcher::is_accepting() const { return tt_matcher_is_accepting(state_->raw); }

GrammarCompiler::GrammarCompiler(std::unique_ptr<State> state) : state_(std::move(state)) {}
GrammarCompiler::~GrammarCompiler() = default;

Result<std::shared_ptr<const GrammarCompiler>> GrammarCompiler::make(
    std::shared_ptr<const Tokenizer> tokenizer) {
  const auto eos = tokenizer->eos_id();
  if (!eos) return failed_precondition("grammars need a tokenizer with an eos_token");
  tt_grammar_factory* raw = nullptr;
  ffi::Text error;
  const tt_status status = tt_grammar_factory_new(tokenizer->handle_->raw,
                                                  static_cast<uint32_t>(*eos), &raw, error.out());
  TRIPTYCH_RETURN_IF_ERROR(ffi::to_status(status, error));
  auto state = std::make_unique<State>(std::move(tokenizer), raw);
  return std::shared_ptr<const GrammarCompiler>(new GrammarCompiler(std::move(state)));
}

Result<GrammarMatcher> GrammarCompiler::compile(GrammarKind kind, std::string_view text) const {
  TRIPTYCH_RETURN_IF_ERROR(check_size(text));
  tt_matcher* raw = nullptr;
  ffi::Text error;
  const tt_status status =
      tt_matcher_new(state_->raw, static_cast<int32_t>(kind), ffi::bytes(text), &raw, error.out());
  TRIPTYCH_RETURN_IF_ERROR(on_one_line(ffi::to_status(status, error)).with_context("grammar"));
  return GrammarMatcher(
      std::make_unique<GrammarMatcher::State>(raw, state_->tokenizer->vocab_size()));
}

}  // namespace triptych
