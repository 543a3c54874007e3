#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"

namespace triptych {

/// Which tokens may come next in one answer: a grammar, as the sampler sees it. Used by one thread
/// at a time, which may change from call to call: the mask may be worked out by a worker while the
/// step that gives the logits runs.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;

  /// Words of a mask: one bit a token id, lowest bit first. Ids beyond are not allowed.
  virtual size_t mask_words() const = 0;
  /// Writes the mask of tokens that may come next, end tokens exactly where the answer may end.
  /// kInvalidArgument when no token of the vocabulary can go on: the constraint cannot be met.
  virtual Status allowed(std::span<uint32_t> mask) = 0;
  /// Goes on behind `token`, which must be allowed and no end token.
  virtual Status accept(int32_t token) = 0;
  /// True when nothing may follow: the answer ends without an end token being drawn.
  virtual bool finished() const = 0;
};

/// Starts the constraint of each answer to a request. Shared by threads.
class TokenConstraintSource {
 public:
  virtual ~TokenConstraintSource() = default;

  /// A constraint in its first state; cheap beside compiling it. Those of several answers share
  /// nothing.
  virtual Result<std::unique_ptr<TokenConstraint>> start() const = 0;
};

}  // namespace triptych
