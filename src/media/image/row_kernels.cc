#include "media/image/row_kernels.h"

// Highway compiles this file once for each SIMD level and picks one at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "media/image/row_kernels.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>
#include <hwy/targets.h>

HWY_BEFORE_NAMESPACE();
namespace triptych {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// kWeightPadding is a multiple of the lanes of every level.
using WeightTag = hn::CappedTag<int32_t, 16>;

constexpr int32_t kHalf = 1 << (kWeightBits - 1);

HWY_INLINE uint8_t clamp_to_byte(int32_t v) {
  return static_cast<uint8_t>(v < 0 ? 0 : v > 255 ? 255 : v);
}

void split_channels(const uint8_t* HWY_RESTRICT rgb, int64_t n, const PlanarRow& out) {
  const hn::CappedTag<uint8_t, 64> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::Vec<decltype(d)> r, g, b;
    hn::LoadInterleaved3(d, rgb + 3 * i, r, g, b);
    hn::StoreU(r, d, out[0] + i);
    hn::StoreU(g, d, out[1] + i);
    hn::StoreU(b, d, out[2] + i);
  }
  for (; i < n; ++i) {
    for (size_t c = 0; c < 3; ++c) out[c][i] = rgb[3 * i + static_cast<int64_t>(c)];
  }
}

void join_channels(const ConstPlanarRow& in, int64_t n, uint8_t* HWY_RESTRICT rgb) {
  const hn::CappedTag<uint8_t, 64> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreInterleaved3(hn::LoadU(d, in[0] + i), hn::LoadU(d, in[1] + i), hn::LoadU(d, in[2] + i),
                          d, rgb + 3 * i);
  }
  for (; i < n; ++i) {
    for (size_t c = 0; c < 3; ++c) rgb[3 * i + static_cast<int64_t>(c)] = in[c][i];
  }
}

/// One output sample of all channels of kRows rows.
template <int kRows>
HWY_INLINE void horizontal_sample(const ConstPlanarRow* in, const int32_t* HWY_RESTRICT weights,
                                  int64_t start, int64_t count, uint8_t (*out)[3]) {
  const WeightTag d;
  const hn::Rebind<uint8_t, WeightTag> d_byte;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  using Vec = hn::Vec<WeightTag>;
  Vec sums[kRows][3];
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < 3; ++c) sums[r][c] = hn::Zero(d);
  }
  for (int64_t k = 0; k < count; k += lanes) {
    const Vec w = hn::LoadU(d, weights + k);
    for (int r = 0; r < kRows; ++r) {
      for (int c = 0; c < 3; ++c) {
        const Vec samples = hn::PromoteTo(d, hn::LoadU(d_byte, in[r][c] + start + k));
        sums[r][c] = hn::Add(sums[r][c], hn::Mul(samples, w));
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < 3; ++c) {
      const int32_t sum = hn::GetLane(hn::SumOfLanes(d, sums[r][c]));
      out[r][c] = clamp_to_byte((sum + kHalf) >> kWeightBits);
    }
  }
}

template <int kRows>
HWY_INLINE void horizontal_block(const ConstPlanarRow* in, const AxisWeights& axis,
                                 const PlanarRow* out) {
  for (int64_t i = 0; i < axis.n_out(); ++i) {
    uint8_t samples[kRows][3];
    horizontal_sample<kRows>(in, axis.weights.data() + i * axis.stride,
                             axis.start[static_cast<size_t>(i)], axis.count[static_cast<size_t>(i)],
                             samples);
    for (int r = 0; r < kRows; ++r) {
      for (int c = 0; c < 3; ++c) out[r][c][i] = samples[r][c];
    }
  }
}

void horizontal_rows(const ConstPlanarRow* in, int64_t n_rows, const AxisWeights& axis,
                     const PlanarRow* out) {
  if (n_rows == kRowsAtOnce) {
    horizontal_block<kRowsAtOnce>(in, axis, out);
    return;
  }
  for (int64_t r = 0; r < n_rows; ++r) horizontal_block<1>(in + r, axis, out + r);
}

void vertical_row(const uint8_t* HWY_RESTRICT rows, int64_t stride,
                  const int32_t* HWY_RESTRICT weights, int64_t n_rows, int64_t n_bytes,
                  uint8_t* HWY_RESTRICT out) {
  const WeightTag d;
  const hn::Rebind<uint8_t, WeightTag> d_byte;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto half = hn::Set(d, kHalf);
  for (int64_t x = 0; x < n_bytes; x += 4 * lanes) {
    auto s0 = half, s1 = half, s2 = half, s3 = half;
    const uint8_t* in = rows + x;
    for (int64_t k = 0; k < n_rows; ++k, in += stride) {
      const auto w = hn::Set(d, weights[k]);
      const auto load = [&](int64_t j) HWY_ATTR {
        return hn::PromoteTo(d, hn::LoadU(d_byte, in + j * lanes));
      };
      s0 = hn::Add(s0, hn::Mul(load(0), w));
      s1 = hn::Add(s1, hn::Mul(load(1), w));
      s2 = hn::Add(s2, hn::Mul(load(2), w));
      s3 = hn::Add(s3, hn::Mul(load(3), w));
    }
    const auto store = [&](hn::Vec<WeightTag> sum, int64_t j) HWY_ATTR {
      const auto shifted = hn::ShiftRight<kWeightBits>(sum);
      hn::StoreU(hn::DemoteTo(d_byte, shifted), d_byte, out + x + j * lanes);
    };
    store(s0, 0);
    store(s1, 1);
    store(s2, 2);
    store(s3, 3);
  }
}

/// Even and odd outputs of the triangle filter over `sums`, which has its edge values repeated at
/// [-1] and [n]: (3 a + left + kEven) >> kShift and (3 a + right + kOdd) >> kShift.
template <int kShift, int kEven, int kOdd>
HWY_INLINE void triangle(const uint16_t* HWY_RESTRICT sums, int64_t n, uint8_t* HWY_RESTRICT out) {
  const hn::CappedTag<uint16_t, 32> d;
  const hn::Rebind<uint8_t, decltype(d)> d_byte;
  const hn::RebindToSigned<decltype(d)> d_signed;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto three = hn::Set(d, 3);
  const auto even_bias = hn::Set(d, kEven);
  const auto odd_bias = hn::Set(d, kOdd);
  for (int64_t i = 0; i < n; i += lanes) {
    const auto here = hn::Mul(hn::LoadU(d, sums + i), three);
    const auto left = hn::LoadU(d, sums + i - 1);
    const auto right = hn::LoadU(d, sums + i + 1);
    const auto even = hn::ShiftRight<kShift>(hn::Add(hn::Add(here, left), even_bias));
    const auto odd = hn::ShiftRight<kShift>(hn::Add(hn::Add(here, right), odd_bias));
    hn::StoreInterleaved2(hn::DemoteTo(d_byte, hn::BitCast(d_signed, even)),
                          hn::DemoteTo(d_byte, hn::BitCast(d_signed, odd)), d_byte, out + 2 * i);
  }
}

void upsample_h2v2(const uint8_t* HWY_RESTRICT near, const uint8_t* HWY_RESTRICT far, int64_t n,
                   uint16_t* HWY_RESTRICT sums, uint8_t* HWY_RESTRICT out) {
  const hn::CappedTag<uint16_t, 32> d;
  const hn::Rebind<uint8_t, decltype(d)> d_byte;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto three = hn::Set(d, 3);
  uint16_t* first = sums + 1;
  for (int64_t i = 0; i < n; i += lanes) {
    const auto a = hn::PromoteTo(d, hn::LoadU(d_byte, near + i));
    const auto b = hn::PromoteTo(d, hn::LoadU(d_byte, far + i));
    hn::StoreU(hn::Add(hn::Mul(a, three), b), d, first + i);
  }
  first[-1] = first[0];
  first[n] = first[n - 1];
  triangle<4, 8, 7>(first, n, out);
}

void upsample_h2v1(const uint8_t* HWY_RESTRICT row, int64_t n, uint16_t* HWY_RESTRICT sums,
                   uint8_t* HWY_RESTRICT out) {
  const hn::CappedTag<uint16_t, 32> d;
  const hn::Rebind<uint8_t, decltype(d)> d_byte;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  uint16_t* first = sums + 1;
  for (int64_t i = 0; i < n; i += lanes) {
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(d_byte, row + i)), d, first + i);
  }
  first[-1] = first[0];
  first[n] = first[n - 1];
  triangle<2, 1, 2>(first, n, out);
}

void ycc_to_rgb(const uint8_t* HWY_RESTRICT y, const uint8_t* HWY_RESTRICT cb,
                const uint8_t* HWY_RESTRICT cr, int64_t n, const PlanarRow& out) {
  // 1.40200, 1.77200, 0.71414 and 0.34414 with 16 fractional bits.
  constexpr int32_t kCrToR = 91881;
  constexpr int32_t kCbToB = 116130;
  constexpr int32_t kCrToG = 46802;
  constexpr int32_t kCbToG = 22554;
  const hn::CappedTag<int32_t, 16> d;
  const hn::Rebind<uint8_t, decltype(d)> d_byte;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto center = hn::Set(d, 128);
  const auto half = hn::Set(d, 1 << 15);
  for (int64_t i = 0; i < n; i += lanes) {
    const auto luma = hn::PromoteTo(d, hn::LoadU(d_byte, y + i));
    const auto blue = hn::Sub(hn::PromoteTo(d, hn::LoadU(d_byte, cb + i)), center);
    const auto red = hn::Sub(hn::PromoteTo(d, hn::LoadU(d_byte, cr + i)), center);
    const auto store = [&](hn::Vec<decltype(d)> chroma, uint8_t* to) HWY_ATTR {
      const auto rounded = hn::ShiftRight<16>(hn::Add(chroma, half));
      hn::StoreU(hn::DemoteTo(d_byte, hn::Add(luma, rounded)), d_byte, to + i);
    };
    store(hn::Mul(red, hn::Set(d, kCrToR)), out[0]);
    store(hn::Neg(hn::Add(hn::Mul(blue, hn::Set(d, kCbToG)), hn::Mul(red, hn::Set(d, kCrToG)))),
          out[1]);
    store(hn::Mul(blue, hn::Set(d, kCbToB)), out[2]);
  }
}

const char* level_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace triptych
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace triptych {

HWY_EXPORT(split_channels);
HWY_EXPORT(join_channels);
HWY_EXPORT(horizontal_rows);
HWY_EXPORT(vertical_row);
HWY_EXPORT(upsample_h2v2);
HWY_EXPORT(upsample_h2v1);
HWY_EXPORT(ycc_to_rgb);
HWY_EXPORT(level_name);

void split_channels(const uint8_t* rgb, int64_t n, const PlanarRow& out) {
  HWY_DYNAMIC_DISPATCH(split_channels)(rgb, n, out);
}

void join_channels(const ConstPlanarRow& in, int64_t n, uint8_t* rgb) {
  HWY_DYNAMIC_DISPATCH(join_channels)(in, n, rgb);
}

void horizontal_rows(const ConstPlanarRow* in, int64_t n_rows, const AxisWeights& axis,
                     const PlanarRow* out) {
  HWY_DYNAMIC_DISPATCH(horizontal_rows)(in, n_rows, axis, out);
}

void vertical_row(const uint8_t* rows, int64_t stride, const int32_t* weights, int64_t n_rows,
                  int64_t n_bytes, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(vertical_row)(rows, stride, weights, n_rows, n_bytes, out);
}

void upsample_h2v2(const uint8_t* near, const uint8_t* far, int64_t n, uint16_t* sums,
                   uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(upsample_h2v2)(near, far, n, sums, out);
}

void upsample_h2v1(const uint8_t* row, int64_t n, uint16_t* sums, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(upsample_h2v1)(row, n, sums, out);
}

void ycc_to_rgb(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, int64_t n,
                const PlanarRow& out) {
  HWY_DYNAMIC_DISPATCH(ycc_to_rgb)(y, cb, cr, n, out);
}

const char* row_kernels_level() { return HWY_DYNAMIC_DISPATCH(level_name)(); }

}  // namespace triptych
#endif  // HWY_ONCE
