#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/dtype.h"

namespace triptych::ref {

/// A value as a cache of `dtype` keeps it.
inline float round_to(DType dtype, float v) {
  if (dtype == DType::kBF16) return bf16_to_f32(f32_to_bf16(v));
  if (dtype == DType::kF16) return f16_to_f32(f32_to_f16(v));
  return v;
}

/// Keys or values of one head: row j at data + j * stride.
struct HeadRows {
  const float* data;
  int64_t stride;
};

/// softmax(scale * q k^T) v of one query over rows [from, to) of k and v, in float64; keys and
/// values are first rounded to `dtype`.
inline std::vector<double> attend(const float* q, int64_t head_dim, HeadRows k, HeadRows v,
                                  int64_t from, int64_t to, double scale,
                                  DType dtype = DType::kF32) {
  std::vector<double> scores;
  for (int64_t j = from; j < to; ++j) {
    double dot = 0;
    for (int64_t d = 0; d < head_dim; ++d) {
      dot += static_cast<double>(q[d]) * round_to(dtype, k.data[j * k.stride + d]);
    }
    scores.push_back(dot * scale);
  }
  const double largest = *std::max_element(scores.begin(), scores.end());
  std::vector<double> out(static_cast<size_t>(head_dim), 0.0);
  double sum = 0;
  for (int64_t j = from; j < to; ++j) {
    const double weight = std::exp(scores[static_cast<size_t>(j - from)] - largest);
    sum += weight;
    for (int64_t d = 0; d < head_dim; ++d) {
      out[static_cast<size_t>(d)] += weight * round_to(dtype, v.data[j * v.stride + d]);
    }
  }
  for (double& o : out) o /= sum;
  return out;
}

/// Where a token stands: place in its sequence's table of pages, and slot there.
struct TokenPlace {
  int64_t page;
  int64_t slot;
};

/// Place of the token at `position`; `page_begin` as in SequenceRows.
inline TokenPlace place_of(const std::vector<int32_t>& page_begin, int64_t position) {
  int64_t page = 0;
  while (page_begin[static_cast<size_t>(page + 1)] <= position) ++page;
  return {page, position - page_begin[static_cast<size_t>(page)]};
}

}  // namespace triptych::ref
