#pragma once

#include <cstdint>

namespace triptych {

/// Number format that media are encoded in.
enum class Precision : uint8_t { kF32, kF16, kInt8 };

/// How much more memory a media item really takes than the sum of its tensors: 1.8 for f32, 1.3 for
/// f16 and 1.0 for int8 to start with, then a running mean of what was measured. One a modality.
class ByteFactor {
 public:
  explicit ByteFactor(Precision precision);

  /// Bytes to reserve for `n_bytes` of pixels, tower state and features, rounded up.
  uint64_t reserve(uint64_t n_bytes) const;
  /// An item of `n_bytes` took `measured` at its peak. Zeros are ignored.
  void observe(uint64_t n_bytes, uint64_t measured);
  double value() const { return factor_; }

 private:
  double factor_;
};

}  // namespace triptych
