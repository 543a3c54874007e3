// Keys and values of the cache's number formats to f32. Compiled once a Highway target; part of
// attention_paged-inl.h.
#if defined(TRIPTYCH_BACKENDS_CPU_ATTENTION_WIDEN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIPTYCH_BACKENDS_CPU_ATTENTION_WIDEN_INL_H_
#undef TRIPTYCH_BACKENDS_CPU_ATTENTION_WIDEN_INL_H_
#else
#define TRIPTYCH_BACKENDS_CPU_ATTENTION_WIDEN_INL_H_
#endif

#include "backends/cpu/attention_core-inl.h"

HWY_BEFORE_NAMESPACE();
namespace triptych {
namespace HWY_NAMESPACE {

/// kLanes values of binary16.
HWY_INLINE F32Vec widen_f16(const uint16_t* src) {
  const F32Tag tag;
#if HWY_MAX_BYTES >= 32
  const hn::Rebind<hwy::float16_t, F32Tag> half_tag;
  return hn::PromoteTo(tag, hn::LoadU(half_tag, reinterpret_cast<const hwy::float16_t*>(src)));
#else
  // Without F16C Highway does not keep infinity and NaN. Exponent and mantissa move into place;
  // the product corrects the bias and normalises subnormals, exactly.
  const hn::RebindToUnsigned<F32Tag> wide_tag;
  const hn::Rebind<uint16_t, F32Tag> half_tag;
  const auto bits = hn::PromoteTo(wide_tag, hn::LoadU(half_tag, src));
  const auto magnitude = hn::And(bits, hn::Set(wide_tag, 0x7fff));
  const auto finite = hn::BitCast(
      wide_tag, hn::Mul(hn::BitCast(tag, hn::ShiftLeft<13>(magnitude)), hn::Set(tag, 0x1p112f)));
  const auto special = hn::Or(hn::ShiftLeft<13>(magnitude), hn::Set(wide_tag, 0x7f800000u));
  const auto is_special = hn::Gt(hn::BitCast(hn::RebindToSigned<F32Tag>(), magnitude),
                                 hn::Set(hn::RebindToSigned<F32Tag>(), 0x7bff));
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(wide_tag, 0x8000)));
  const auto value = hn::IfThenElse(hn::RebindMask(wide_tag, is_special), special, finite);
  return hn::BitCast(tag, hn::Or(value, sign));
#endif
}

/// n elements to f32; n is a multiple of 16, a page holds no other sizes. `next` will be read
/// after it: fetched alongside, since pages are too short for the hardware to run ahead.
HWY_INLINE void widen(DType dtype, const std::byte* src, const std::byte* next, float* dst,
                      int64_t n) {
  const F32Tag tag;
  if (dtype == DType::kBF16) {
    const hn::Rebind<uint16_t, F32Tag> half_tag;
    const hn::RebindToUnsigned<F32Tag> wide_tag;
    const auto* in = reinterpret_cast<const uint16_t*>(src);
    for (int64_t i = 0; i < n; i += kLanes) {
      if (i % 32 == 0) __builtin_prefetch(next + 2 * i, 0, 2);
      const auto bits = hn::PromoteTo(wide_tag, hn::LoadU(half_tag, in + i));
      hn::StoreU(hn::BitCast(tag, hn::ShiftLeft<16>(bits)), tag, dst + i);
    }
  } else if (dtype == DType::kF16) {
    for (int64_t i = 0; i < n; i += kLanes) {
      if (i % 32 == 0) __builtin_prefetch(next + 2 * i, 0, 2);
      hn::StoreU(widen_f16(reinterpret_cast<const uint16_t*>(src) + i), tag, dst + i);
    }
  } else {
    std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(float));
  }
}

/// V of one page of one head, [16][head_dim] of the cache's dtype, as [16][padded_dim] f32.
inline void widen_values(const KvLayer& cache, const std::byte* src, const std::byte* next,
                         float* dst, int64_t padded_dim) {
  const int64_t d = cache.head_dim;
  widen(cache.dtype, src, next, dst, kPageTokens * d);
  if (padded_dim == d) return;
  // Spread the dense rows from the last to the first, so that none is overwritten before its move.
  for (int64_t t = kPageTokens - 1; t >= 0; --t) {
    std::memmove(dst + t * padded_dim, dst + t * d, static_cast<size_t>(d) * sizeof(float));
    for (int64_t i = d; i < padded_dim; ++i) dst[t * padded_dim + i] = 0;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace triptych
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
