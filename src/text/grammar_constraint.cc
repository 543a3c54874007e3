#include "text/grammar_constraint.h"

#include <algorithm>

namespace triptych {
namespace {

bool is_set(std::span<const uint32_t> mask, TokenId id) {
  return (mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0;
}

void set(std::span<uint32_t> mask, TokenId id) {
  mask[static_cast<size_t>(id) / 32] |= uint32_t{1} << (id % 32);
}

void clear(std::span<uint32_t> mask, TokenId id) {
  mask[static_cast<size_t>(id) / 32] &= ~(uint32_t{1} << (id % 32));
}

class GrammarConstraint : public TokenConstraint {
 public:
  /// The grammar's end is `eos`; that of the model's answers any of `ends`, which are below the
  /// vocabulary's size.
  GrammarConstraint(GrammarMatcher matcher, TokenId eos, std::vector<TokenId> ends)
      : matcher_(std::move(matcher)), eos_(eos), ends_(std::move(ends)) {}

  size_t mask_words() const override { return matcher_.mask_words(); }

  Status allowed(std::span<uint32_t> mask) override {
    bool may_end = finished();
    if (may_end) {
      std::fill(mask.begin(), mask.end(), 0);
    } else {
      if (Status status = matcher_.compute_mask(mask); !status.is_ok()) {
        return invalid_argument("the grammar cannot be followed further: " + status.message());
      }
      may_end = is_set(mask, eos_);
    }
    clear(mask, eos_);
    for (TokenId id : ends_) may_end ? set(mask, id) : clear(mask, id);
    return Status::ok();
  }

  Status accept(int32_t token) override { return matcher_.consume(token); }

  // A matcher also stops when it failed; then the text is no whole sentence.
  bool finished() const override { return matcher_.is_stopped() && matcher_.is_accepting(); }

 private:
  GrammarMatcher matcher_;
  TokenId eos_;
  std::vector<TokenId> ends_;
};

class CompiledGrammar : public TokenConstraintSource {
 public:
  CompiledGrammar(GrammarMatcher matcher, TokenId eos, std::vector<TokenId> ends)
      : matcher_(std::move(matcher)), eos_(eos), ends_(std::move(ends)) {}

  Result<std::unique_ptr<TokenConstraint>> start() const override {
    const std::lock_guard lock(mutex_);
    TRIPTYCH_ASSIGN_OR_RETURN(GrammarMatcher matcher, matcher_.fork());
    return std::unique_ptr<TokenConstraint>(
        std::make_unique<GrammarConstraint>(std::move(matcher), eos_, ends_));
  }

 private:
  mutable std::mutex mutex_;  ///< a matcher belongs to one thread at a time, also to be copied
  GrammarMatcher matcher_;    ///< in its first state
  TokenId eos_;
  std::vector<TokenId> ends_;
};

}  // namespace

GrammarConstraints::GrammarConstraints(std::shared_ptr<const Tokenizer> tokenizer,
                                       std::vector<TokenId> end_ids)
    : tokenizer_(std::move(tokenizer)), end_ids_(std::move(end_ids)) {
  const auto size = static_cast<TokenId>(tokenizer_->vocab_size());
  std::erase_if(end_ids_, [size](TokenId id) { return id < 0 || id >= size; });
}

Result<std::shared_ptr<const GrammarCompiler>> GrammarConstraints::compiler() const {
  const std::lock_guard lock(mutex_);
  if (compiler_ == nullptr) {
    TRIPTYCH_ASSIGN_OR_RETURN(compiler_, GrammarCompiler::make(tokenizer_));
  }
  return compiler_;
}

Result<std::shared_ptr<const TokenConstraintSource>> GrammarConstraints::compile(
    const GrammarSpec& spec) const {
  TRIPTYCH_ASSIGN_OR_RETURN(const std::shared_ptr<const GrammarCompiler> compiler,
                            this->compiler());
  Result<GrammarMatcher> matcher = compiler->compile(spec.kind, spec.text);
  if (!matcher.is_ok()) {
    return spec.source.empty() ? matcher.status() : matcher.status().with_context(spec.source);
  }
  const TokenId eos = *tokenizer_->eos_id();
  return std::shared_ptr<const TokenConstraintSource>(std::make_shared<CompiledGrammar>(
      std::move(*matcher), eos, end_ids_.empty() ? std::vector<TokenId>{eos} : end_ids_));
}

}  // namespace triptych
