#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "request/sampling_params.h"
#include "request/token_constraint.h"
#include "text/grammar.h"

namespace triptych {

/// Turns the grammars of requests into token constraints of one model. The compiler, which holds
/// the whole vocabulary in a tree, is made when the first grammar comes. Shared by threads.
class GrammarConstraints {
 public:
  /// `end_ids` end an answer of the model; where a grammar may end, these are allowed and no other
  /// end token. None: the tokenizer's own end token.
  GrammarConstraints(std::shared_ptr<const Tokenizer> tokenizer, std::vector<TokenId> end_ids);

  /// kInvalidArgument or kOutOfRange that starts with spec.source for a grammar that does not
  /// compile; kFailedPrecondition when the tokenizer has no end token.
  Result<std::shared_ptr<const TokenConstraintSource>> compile(const GrammarSpec& spec) const;

 private:
  Result<std::shared_ptr<const GrammarCompiler>> compiler() const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<TokenId> end_ids_;
  mutable std::mutex mutex_;  ///< of compiler_
  mutable std::shared_ptr<const GrammarCompiler> compiler_;
};

}  // namespace triptych
