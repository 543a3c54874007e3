#include "media/image/resize_weights.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/checked.h"

namespace triptych {
namespace {

double box_filter(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }

double bilinear_filter(double x) {
  x = std::abs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

double hamming_filter(double x) {
  x = std::abs(x);
  if (x == 0.0) return 1.0;
  if (x >= 1.0) return 0.0;
  x *= std::numbers::pi;
  return std::sin(x) / x * (0.54f + 0.46f * std::cos(x));  // float constants, as Pillow has them
}

double bicubic_filter(double x) {
  constexpr double kA = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * kA;
  return 0.0;
}

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double lanczos_filter(double x) { return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0; }

struct FilterShape {
  double (*value)(double);
  double support;
};

FilterShape shape_of(ResampleFilter filter) {
  switch (filter) {
    case ResampleFilter::kBox:
      return {box_filter, 0.5};
    case ResampleFilter::kHamming:
      return {hamming_filter, 1.0};
    case ResampleFilter::kBicubic:
      return {bicubic_filter, 2.0};
    case ResampleFilter::kLanczos:
      return {lanczos_filter, 3.0};
    case ResampleFilter::kNearest:
    case ResampleFilter::kBilinear:
      break;
  }
  return {bilinear_filter, 1.0};
}

int32_t to_fixed(double weight) {
  const double scaled = weight * (1 << kWeightBits);
  return static_cast<int32_t>(weight < 0 ? scaled - 0.5 : scaled + 0.5);
}

/// A cast to int in Pillow: towards zero, also below it.
int64_t truncated(double x) { return static_cast<int64_t>(std::trunc(x)); }

/// Pillow walks nearest positions by repeated addition, and its rounding shows in the result.
void fill_nearest(int64_t n_in, double scale, int64_t begin, AxisWeights* axis) {
  double position = scale * 0.5;
  for (int64_t i = 0; i < begin; ++i) position += scale;
  for (auto& start : axis->start) {
    start = static_cast<int32_t>(std::min(static_cast<int64_t>(position), n_in - 1));
    position += scale;
  }
}

void fill_filtered(int64_t n_in, double scale, int64_t begin, const FilterShape& shape,
                   AxisWeights* axis) {
  const double filter_scale = std::max(scale, 1.0);
  const double support = shape.support * filter_scale;
  const double step = 1.0 / filter_scale;
  axis->stride = round_up(static_cast<int64_t>(std::ceil(support)) * 2 + 1, kWeightPadding);
  axis->weights.assign(static_cast<size_t>(axis->n_out() * axis->stride), 0);
  std::vector<double> exact(static_cast<size_t>(axis->stride));
  for (int64_t i = 0; i < axis->n_out(); ++i) {
    const double center = (static_cast<double>(begin + i) + 0.5) * scale;
    const auto low = std::max<int64_t>(truncated(center - support + 0.5), 0);
    const auto high = std::min<int64_t>(truncated(center + support + 0.5), n_in);
    double sum = 0.0;
    for (int64_t k = low; k < high; ++k) {
      const double weight = shape.value((static_cast<double>(k) - center + 0.5) * step);
      exact[static_cast<size_t>(k - low)] = weight;
      sum += weight;
    }
    int32_t* out = axis->weights.data() + i * axis->stride;
    for (int64_t k = 0; k < high - low; ++k) {
      const double weight = exact[static_cast<size_t>(k)];
      out[k] = to_fixed(sum != 0.0 ? weight / sum : weight);
    }
    axis->start[static_cast<size_t>(i)] = static_cast<int32_t>(low);
    axis->count[static_cast<size_t>(i)] = static_cast<int32_t>(high - low);
  }
}

}  // namespace

int64_t AxisWeights::first_in() const { return *std::min_element(start.begin(), start.end()); }

int64_t AxisWeights::end_in() const {
  int64_t end = 0;
  for (size_t i = 0; i < start.size(); ++i) end = std::max<int64_t>(end, start[i] + count[i]);
  return end;
}

AxisWeights make_axis_weights(int64_t n_in, int64_t n_out, int64_t begin, int64_t n,
                              ResampleFilter filter) {
  AxisWeights axis;
  axis.start.assign(static_cast<size_t>(n), 0);
  axis.count.assign(static_cast<size_t>(n), 1);
  const double scale = static_cast<double>(n_in) / static_cast<double>(n_out);
  if (n_in == n_out) {
    axis.identity = true;
    for (int64_t i = 0; i < n; ++i)
      axis.start[static_cast<size_t>(i)] = static_cast<int32_t>(begin + i);
  } else if (filter == ResampleFilter::kNearest) {
    fill_nearest(n_in, scale, begin, &axis);
  } else {
    fill_filtered(n_in, scale, begin, shape_of(filter), &axis);
  }
  return axis;
}

}  // namespace triptych
