#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "request/sampling_params.h"
#include "text/tokenizer.h"

namespace triptych {

/// The state of one constrained answer: which tokens may come next. Not shared by threads.
class GrammarMatcher {
 public:
  ~GrammarMatcher();
  GrammarMatcher(GrammarMatcher&&) noexcept;
  GrammarMatcher& operator=(GrammarMatcher&&) noexcept;

  /// A matcher in the same state that shares nothing with this one, so that another thread may use
  /// it.
  Result<GrammarMatcher> fork() const;

  /// Words of a mask: one bit a token id, lowest bit first.
  size_t mask_words() const;
  /// Writes the mask of allowed tokens; `mask` has mask_words() words. EOS is allowed where the
  /// grammar may end. kFailedPrecondition once the grammar is stopped.
  Status compute_mask(std::span<uint32_t> mask);
  /// Advances by a token; kInvalidArgument when the grammar does not allow it.
  Status consume(TokenId id);
  /// True when nothing may follow but the end of the answer.
  bool is_stopped() const;
  /// True when the text so far is a whole sentence of the grammar.
  bool is_accepting() const;

 private:
  friend class GrammarCompiler;
  struct State;
  explicit GrammarMatcher(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

inline constexpr size_t kMaxGrammarBytes = size_t{64} << 10;
inline constexpr int kMaxGrammarDepth = 64;

/// Compiles grammars against one tokenizer; made once a model, shared by threads.
class GrammarCompiler {
 public:
  static Result<std::shared_ptr<const GrammarCompiler>> make(
      std::shared_ptr<const Tokenizer> tokenizer);
  ~GrammarCompiler();

  /// kInvalidArgument with the compiler's message for a grammar that does not parse or is nested
  /// deeper than kMaxGrammarDepth brackets; kOutOfRange for one longer than kMaxGrammarBytes.
  Result<GrammarMatcher> compile(GrammarKind kind, std::string_view text) const;

 private:
  struct State;
  explicit GrammarCompiler(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace triptych
