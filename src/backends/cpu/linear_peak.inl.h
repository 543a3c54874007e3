#pragma once

#include "backends/cpu/linear_micro.inl.h"

namespace triptych {
namespace {

/// kChains independent chains of f32 multiply-adds in registers.
template <int kChains>
int64_t lanes_peak(int64_t steps, float* sink) {
  Lanes acc[kChains];
  const Lanes x = Lanes::splat(sink[0]);
  for (Lanes& a : acc) a = x;
  for (int64_t i = 0; i < steps; ++i) {
    unroll<kChains>([&](auto c)
                        __attribute__((always_inline)) { acc[c.value] = fma(acc[c.value], x, x); });
  }
  for (int c = 1; c < kChains; ++c) acc[0] = acc[0] + acc[c];
  acc[0].store(sink);
  return steps * kChains * 16 * 2;
}

}  // namespace
}  // namespace triptych
