#pragma once

// From raw sums to the output, over the Lanes that the including file chose: bias, activation,
// gate, residual. The same code for every element, whatever its place.

#include "backends/cpu/linear_isa.h"

namespace triptych {
namespace {

/// e^x, relative error below 2e-7, for x clamped to [-87.3, 88]. Cody and Waite's reduction with
/// the polynomial of Cephes' expf. NaN stays NaN.
inline Lanes exp_of(Lanes x) {
  x = max_of(Lanes::splat(-87.3f), min_of(Lanes::splat(88.0f), x));
  const Lanes n = round_of(x * Lanes::splat(1.44269504f));
  Lanes r = fma(n, Lanes::splat(-0.693359375f), x);
  r = fma(n, Lanes::splat(2.12194440e-4f), r);
  Lanes p = Lanes::splat(1.9875691500e-4f);
  p = fma(p, r, Lanes::splat(1.3981999507e-3f));
  p = fma(p, r, Lanes::splat(8.3334519073e-3f));
  p = fma(p, r, Lanes::splat(4.1665795894e-2f));
  p = fma(p, r, Lanes::splat(1.6666665459e-1f));
  p = fma(p, r, Lanes::splat(5.0000001201e-1f));
  p = fma(p, r * r, r + Lanes::splat(1.0f));
  return p * exp2_of_whole(n);
}

/// x / (1 + e^-y), that is x * sigmoid(y).
inline Lanes times_sigmoid(Lanes x, Lanes y) {
  const Lanes one = Lanes::splat(1.0f);
  return x / (one + exp_of(Lanes::zero() - y));
}

/// x * Phi(x) with Phi(-|x|) = erfc(|x| / sqrt 2) / 2 from Abramowitz and Stegun 7.1.26
/// (absolute error 1.5e-7), so that the negative tail does not cancel.
inline Lanes gelu_erf(Lanes x) {
  const Lanes z = abs_of(x) * Lanes::splat(0.70710678f);
  const Lanes one = Lanes::splat(1.0f);
  const Lanes t = one / fma(z, Lanes::splat(0.3275911f), one);
  Lanes p = Lanes::splat(0.5f * 1.061405429f);
  p = fma(p, t, Lanes::splat(0.5f * -1.453152027f));
  p = fma(p, t, Lanes::splat(0.5f * 1.421413741f));
  p = fma(p, t, Lanes::splat(0.5f * -0.284496736f));
  p = fma(p, t, Lanes::splat(0.5f * 0.254829592f));
  const Lanes tail = p * t * exp_of(Lanes::zero() - z * z);
  return x * where_negative(x, tail, one - tail);
}

/// x / 2 (1 + tanh(u)) = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3).
inline Lanes gelu_tanh(Lanes x) {
  const Lanes inner = fma(x * x * x, Lanes::splat(0.044715f), x);
  return times_sigmoid(x, inner * Lanes::splat(2.0f * 0.79788456f));
}

inline Lanes activate(Activation act, Lanes x) {
  switch (act) {
    case Activation::kNone:
      return x;
    case Activation::kGeluErf:
      return gelu_erf(x);
    case Activation::kGeluTanh:
      return gelu_tanh(x);
    case Activation::kQuickGelu:
      return times_sigmoid(x, x * Lanes::splat(1.702f));
    case Activation::kSilu:
      return times_sigmoid(x, x);
    case Activation::kRelu:
      return max_of(Lanes::zero(), x);
  }
  return x;
}

/// Writes columns [column, column + n) of an output row, n at most 16.
inline void finish_row(const LinearArgs& linear, Lanes sum, int64_t row, int64_t column, int n) {
  float* out = linear.out + row * linear.ldo + column;
  const float* residual =
      linear.residual != nullptr ? linear.residual + row * linear.ld_residual + column : nullptr;
  if (n == 16) {
    if (residual != nullptr) sum = sum + Lanes::load(residual);
    sum.store(out);
  } else {
    if (residual != nullptr) sum = sum + Lanes::load_first(residual, n);
    sum.store_first(out, n);
  }
}

inline void gated_epilogue(const EpilogueArgs& args) {
  const LinearArgs& linear = *args.linear;
  for (int p = 0; p < args.panels; p += 2) {
    const float* gate = args.tile + p * args.tile_rows * 16;
    const float* up = gate + args.tile_rows * 16;
    const int64_t column = (args.panel0 + p) / 2 * kPanelRows;
    const float* bias =
        linear.bias != nullptr ? linear.bias + (args.panel0 + p) * kPanelRows : nullptr;
    for (int r = 0; r < args.rows; ++r) {
      Lanes g = Lanes::load(gate + r * 16);
      Lanes u = Lanes::load(up + r * 16);
      if (bias != nullptr) {
        g = g + Lanes::load(bias);
        u = u + Lanes::load(bias + 16);
      }
      finish_row(linear, activate(linear.act, g) * u, args.row0 + r, column, 16);
    }
  }
}

void linear_epilogue(const EpilogueArgs& args) {
  const LinearArgs& linear = *args.linear;
  if (linear.gated) {
    gated_epilogue(args);
    return;
  }
  for (int p = 0; p < args.panels; ++p) {
    const float* tile = args.tile + p * args.tile_rows * 16;
    const int64_t column = (args.panel0 + p) * kPanelRows;
    const int64_t left = linear.w.n - column;
    const int n = left < 16 ? static_cast<int>(left) : 16;
    const Lanes bias =
        linear.bias != nullptr ? Lanes::load_first(linear.bias + column, n) : Lanes::zero();
    for (int r = 0; r < args.rows; ++r) {
      Lanes sum = Lanes::load(tile + r * 16);
      if (linear.bias != nullptr) sum = sum + bias;
      finish_row(linear, activate(linear.act, sum), args.row0 + r, column, n);
    }
  }
}

}  // namespace
}  // namespace triptych
