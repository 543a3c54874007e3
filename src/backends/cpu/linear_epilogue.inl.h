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
  return times_exp2(p, n);
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

template <Activation act>
inline Lanes activate(Lanes x) {
  if constexpr (act == Activation::kGeluErf) return gelu_erf(x);
  if constexpr (act == Activation::kGeluTanh) return gelu_tanh(x);
  if constexpr (act == Activation::kQuickGelu) return times_sigmoid(x, x * Lanes::splat(1.702f));
  if constexpr (act == Activation::kSilu) return times_sigmoid(x, x);
  if constexpr (act == Activation::kRelu) return max_of(Lanes::zero(), x);
  return x;
}

/// Writes `rows` rows of n columns, at most 16, from `row` and `column` on; `sums(r)` gives them.
/// `whole`: n is 16.
template <bool whole, typename Sums>
inline void write_rows(const LinearArgs& linear, int64_t row, int64_t column, int rows, int n,
                       Sums sums) {
  float* out = linear.out + row * linear.ldo + column;
  const float* residual =
      linear.residual != nullptr ? linear.residual + row * linear.ld_residual + column : nullptr;
  for (int r = 0; r < rows; ++r, out += linear.ldo) {
    Lanes sum = sums(r);
    if (residual != nullptr) {
      sum = sum + (whole ? Lanes::load(residual) : Lanes::load_first(residual, n));
      residual += linear.ld_residual;
    }
    if (whole) {
      sum.store(out);
    } else {
      sum.store_first(out, n);
    }
  }
}

template <Activation act>
inline void gated_epilogue(const EpilogueArgs& args) {
  const LinearArgs linear = *args.linear;  // a copy: stores to the output cannot change it
  const bool biased = linear.bias != nullptr;
  for (int p = 0; p < args.panels; p += 2) {
    const float* gate = args.tile + p * args.tile_rows * 16;
    const float* up = gate + args.tile_rows * 16;
    const float* bias = linear.bias + (args.panel0 + p) * kPanelRows;
    const Lanes gate_bias = biased ? Lanes::load(bias) : Lanes::zero();
    const Lanes up_bias = biased ? Lanes::load(bias + 16) : Lanes::zero();
    const int64_t column = (args.panel0 + p) / 2 * kPanelRows;
    write_rows<true>(linear, args.row0, column, args.rows, 16, [&](int r) {
      Lanes g = Lanes::load(gate + r * 16);
      Lanes u = Lanes::load(up + r * 16);
      if (biased) {
        g = g + gate_bias;
        u = u + up_bias;
      }
      return activate<act>(g) * u;
    });
  }
}

template <Activation act>
inline void plain_epilogue(const EpilogueArgs& args) {
  const LinearArgs linear = *args.linear;  // a copy: stores to the output cannot change it
  const bool biased = linear.bias != nullptr;
  for (int p = 0; p < args.panels; ++p) {
    const float* tile = args.tile + p * args.tile_rows * 16;
    const int64_t column = (args.panel0 + p) * kPanelRows;
    const int64_t left = linear.w.n - column;
    const int n = left < 16 ? static_cast<int>(left) : 16;
    const Lanes bias = biased ? Lanes::load_first(linear.bias + column, n) : Lanes::zero();
    const auto sums = [&](int r) {
      Lanes sum = Lanes::load(tile + r * 16);
      if (biased) sum = sum + bias;
      return activate<act>(sum);
    };
    if (n == 16) {
      write_rows<true>(linear, args.row0, column, args.rows, 16, sums);
    } else {
      write_rows<false>(linear, args.row0, column, args.rows, n, sums);
    }
  }
}

template <Activation act>
void epilogue_with(const EpilogueArgs& args) {
  return args.linear->gated ? gated_epilogue<act>(args) : plain_epilogue<act>(args);
}

void linear_epilogue(const EpilogueArgs& args) {
  switch (args.linear->act) {
    case Activation::kNone:
      return epilogue_with<Activation::kNone>(args);
    case Activation::kGeluErf:
      return epilogue_with<Activation::kGeluErf>(args);
    case Activation::kGeluTanh:
      return epilogue_with<Activation::kGeluTanh>(args);
    case Activation::kQuickGelu:
      return epilogue_with<Activation::kQuickGelu>(args);
    case Activation::kSilu:
      return epilogue_with<Activation::kSilu>(args);
    case Activation::kRelu:
      return epilogue_with<Activation::kRelu>(args);
  }
}

}  // namespace
}  // namespace triptych
