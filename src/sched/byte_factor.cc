#include "sched/byte_factor.h"

#include <algorithm>
#include <cmath>

namespace triptych {
namespace {

constexpr double kLeast = 1;  // tensors are there in full
constexpr double kMost = 4;
constexpr double kRise = 0.3;  // too little reserved is learnt faster than too much
constexpr double kFall = 0.05;

double starting_factor(Precision precision) {
  switch (precision) {
    case Precision::kF32:
      return 1.8;
    case Precision::kF16:
      return 1.3;
    case Precision::kInt8:
      return 1.0;
  }
  return 1.8;
}

}  // namespace

ByteFactor::ByteFactor(Precision precision) : factor_(starting_factor(precision)) {}

uint64_t ByteFactor::reserve(uint64_t n_bytes) const {
  return static_cast<uint64_t>(std::ceil(static_cast<double>(n_bytes) * factor_));
}

void ByteFactor::observe(uint64_t n_bytes, uint64_t measured) {
  if (n_bytes == 0 || measured == 0) return;
  const double ratio =
      std::clamp(static_cast<double>(measured) / static_cast<double>(n_bytes), kLeast, kMost);
  factor_ += (ratio > factor_ ? kRise : kFall) * (ratio - factor_);
}

}  // namespace triptych
