#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weights/checkpoint.h"

namespace triptych {

/// Strict binding of a checkpoint's tensors to a model: every tensor is taken once, or ignored by
/// name; `finish` reports whatever is left. One thread; borrows the checkpoint.
class WeightLoader {
 public:
  explicit WeightLoader(const Checkpoint& checkpoint);

  const Checkpoint& checkpoint() const { return checkpoint_; }

  /// True when the checkpoint has `name`, bound or not.
  bool has(std::string_view name) const { return checkpoint_.find(name) != nullptr; }

  /// Binds tensor `name` of exactly this shape. kInvalidArgument names file, tensor, the expected
  /// and the found shape, or the names that come near a missing one; kUnsupported a stored type
  /// that we do not read; kInternal when it is taken twice.
  Result<const TensorInfo*> take(std::string_view name, const Shape& shape);
  /// The same, but null when the checkpoint has no such tensor.
  Result<const TensorInfo*> take_optional(std::string_view name, const Shape& shape);
  /// Binds a tensor of any float dtype and gives its values, row-major, as f32.
  Result<std::vector<float>> take_f32(std::string_view name, const Shape& shape);
  /// The same, but empty when the checkpoint has no such tensor.
  Result<std::vector<float>> take_f32_optional(std::string_view name, const Shape& shape);

  /// Leaves aside all unbound tensors that match `pattern` ('*' stands for any run of characters),
  /// with the reason that `report` shows. Patterns that match nothing are fine. Applies at
  /// `finish`, so order does not matter; a taken tensor is never ignored.
  void ignore(std::string pattern, std::string reason);

  /// kInvalidArgument naming the first tensors that are neither bound nor ignored, and how many.
  Status finish();

  struct Ignored {
    const TensorInfo* tensor;
    std::string reason;
  };
  /// What `finish` left aside.
  const std::vector<Ignored>& report() const { return ignored_; }

 private:
  struct Pattern {
    std::string text;
    std::string reason;
  };
  Status missing(std::string_view name, const Shape& shape) const;

  const Checkpoint& checkpoint_;
  std::vector<bool> bound_;
  std::vector<Pattern> patterns_;
  std::vector<Ignored> ignored_;
};

}  // namespace triptych
