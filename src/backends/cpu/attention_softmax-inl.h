// Weights of a row's keys within one block: the exponential and what surrounds it. Compiled once a
// Highway target; part of attention_core-inl.h.
#if defined(TRIPTYCH_BACKENDS_CPU_ATTENTION_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIPTYCH_BACKENDS_CPU_ATTENTION_SOFTMAX_INL_H_
#undef TRIPTYCH_BACKENDS_CPU_ATTENTION_SOFTMAX_INL_H_
#else
#define TRIPTYCH_BACKENDS_CPU_ATTENTION_SOFTMAX_INL_H_
#endif

#include "backends/cpu/attention_tile.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace triptych {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32Tag = hn::ScalableTag<float>;
using F32Vec = hn::Vec<F32Tag>;
constexpr int kLanes = HWY_MAX_BYTES / 4;

/// 2^x for x <= 0, relative error below 1e-7; 0 below the smallest normal result, NaN for NaN.
/// Scores are kept in units of log2(e), so that softmax needs no other base. The polynomial is a
/// minimax fit of 2^r on [-1/2, 1/2].
HWY_INLINE F32Vec exp2_nonpositive(F32Vec x) {
  const F32Tag tag;
  const hn::RebindToSigned<F32Tag> itag;
  // Adding 1.5 * 2^23 rounds x to an integer, which then stands in the low mantissa bits.
  const F32Vec magic = hn::Set(tag, 12582912.0f);
  const F32Vec shifted = hn::Add(x, magic);
  const F32Vec r = hn::Sub(x, hn::Sub(shifted, magic));
  F32Vec p = hn::Set(tag, 1.5353366e-4f);
  p = hn::MulAdd(p, r, hn::Set(tag, 1.3398880e-3f));
  p = hn::MulAdd(p, r, hn::Set(tag, 9.6184369e-3f));
  p = hn::MulAdd(p, r, hn::Set(tag, 5.5503324e-2f));
  p = hn::MulAdd(p, r, hn::Set(tag, 2.4022648e-1f));
  p = hn::MulAdd(p, r, hn::Set(tag, 6.9314718e-1f));
  p = hn::MulAdd(p, r, hn::Set(tag, 1.0f));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(itag, shifted));
  const F32Vec result = hn::BitCast(tag, hn::Add(hn::BitCast(itag, p), exponent));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(tag, -125.0f)), result);
}

/// Scores of slots that hold no key, which may be anything, become -infinity for R rows.
template <int R>
HWY_NOINLINE void hide_empty_slots(const BlockSlots& block, float* s) {
  const F32Tag tag;
  const F32Vec hidden = hn::Set(tag, -HUGE_VALF);
  for (int64_t p = 0; p < kBlockPages; ++p) {
    const int64_t n = block.page_end[p] - p * kPageTokens;
    for (int64_t i = n / kLanes * kLanes; i < kPageTokens; i += kLanes) {
      const auto is_key = hn::FirstN(tag, static_cast<size_t>(n > i ? n - i : 0));
      float* scores = s + p * kPageTokens + i;
      for (int r = 0; r < R; ++r, scores += kBlockKeys) {
        hn::Store(hn::IfThenElse(is_key, hn::Load(tag, scores), hidden), tag, scores);
      }
    }
  }
}

/// A row's scores of keys [first, first + kLanes); those outside `keys` become -infinity.
HWY_INLINE F32Vec visible_scores(const float* s, int64_t first, KeyRange keys) {
  const F32Tag tag;
  F32Vec scores = hn::LoadU(tag, s + first);
  const F32Vec hidden = hn::Set(tag, -HUGE_VALF);
  if (first + kLanes > keys.to) {
    const auto before_end = hn::FirstN(tag, static_cast<size_t>(keys.to - first));
    scores = hn::IfThenElse(before_end, scores, hidden);
  }
  if (first < keys.from) {
    const auto before_start = hn::FirstN(tag, static_cast<size_t>(keys.from - first));
    scores = hn::IfThenElse(before_start, hidden, scores);
  }
  return scores;
}

constexpr int kBlockVecs = static_cast<int>(kBlockKeys) / kLanes;

HWY_INLINE float row_max(const float* s, KeyRange keys, float start) {
  const F32Tag tag;
  F32Vec m = hn::Set(tag, start);
  if (keys.whole_block()) {
#pragma GCC unroll 16
    for (int i = 0; i < kBlockVecs; ++i) m = hn::Max(m, hn::Load(tag, s + i * kLanes));
  } else {
    for (int64_t i = keys.from / kLanes * kLanes; i < keys.to; i += kLanes) {
      m = hn::Max(m, visible_scores(s, i, keys));
    }
  }
  return hn::GetLane(hn::MaxOfLanes(tag, m));
}

/// Scores become weights 2^(s - max), in place; returns their sum.
HWY_INLINE float row_weights(float* s, KeyRange keys, float max) {
  const F32Tag tag;
  const F32Vec wide_max = hn::Set(tag, max);
  F32Vec sum = hn::Zero(tag);
  if (keys.whole_block()) {  // the same additions, unrolled
#pragma GCC unroll 16
    for (int i = 0; i < kBlockVecs; ++i) {
      const F32Vec w = exp2_nonpositive(hn::Sub(hn::Load(tag, s + i * kLanes), wide_max));
      hn::Store(w, tag, s + i * kLanes);
      sum = hn::Add(sum, w);
    }
  } else {
    for (int64_t i = keys.from / kLanes * kLanes; i < keys.to; i += kLanes) {
      const F32Vec w = exp2_nonpositive(hn::Sub(visible_scores(s, i, keys), wide_max));
      hn::Store(w, tag, s + i);
      sum = hn::Add(sum, w);
    }
  }
  return hn::GetLane(hn::SumOfLanes(tag, sum));
}

}  // namespace HWY_NAMESPACE
}  // namespace triptych
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
