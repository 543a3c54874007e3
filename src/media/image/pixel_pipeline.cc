#include "media/image/pixel_pipeline.h"

#include <algorithm>
#include <cstring>

namespace triptych {
namespace {

/// The part of the resized picture that the output shows.
ResizeWindow window_of(const ImagePlan& plan) {
  ResizeWindow window;
  window.left = std::max<int64_t>(plan.crop_left, 0);
  window.top = std::max<int64_t>(plan.crop_top, 0);
  window.width = std::min(plan.crop_left + plan.width, plan.resized_width) - window.left;
  window.height = std::min(plan.crop_top + plan.height, plan.resized_height) - window.top;
  return window;
}

/// The 256 values that a channel can take. transformers multiplies in float64, casts to float32 and
/// normalises in float32; so does this.
std::array<float, 256> channel_values(const ImageRecipe& recipe, size_t channel) {
  std::array<float, 256> values;
  const auto mean = static_cast<float>(recipe.mean[channel]);
  const auto std = static_cast<float>(recipe.std[channel]);
  for (size_t byte = 0; byte < values.size(); ++byte) {
    auto value = static_cast<float>(byte);
    if (recipe.rescale) {
      value = static_cast<float>(static_cast<double>(byte) * recipe.rescale_factor);
    }
    values[byte] = recipe.normalize ? (value - mean) / std : value;
  }
  return values;
}

}  // namespace

PaddedRows::PaddedRows(const ImagePlan& plan, const ImageRecipe& recipe)
    : rows_(kRowsAtOnce, plan.padded_width),
      left_(plan.pad_left),
      source_end_(plan.pad_left + plan.source_width),
      width_(plan.padded_width),
      color_(recipe.pad_color) {
  for (int64_t i = 0; i < kRowsAtOnce; ++i) {
    for (size_t c = 0; c < 3; ++c) {
      std::memset(rows_.row(i)[c], color_[c], static_cast<size_t>(width_));
    }
  }
}

PlanarRow PaddedRows::source_row(int64_t i) {
  const PlanarRow row = rows_.row(i);
  return {row[0] + left_, row[1] + left_, row[2] + left_};
}

void PaddedRows::close_row(int64_t i) {
  if (source_end_ == width_) return;
  for (size_t c = 0; c < 3; ++c) {
    std::memset(rows_.row(i)[c] + source_end_, color_[c],
                static_cast<size_t>(width_ - source_end_));
  }
}

PixelPipeline::PixelPipeline(const ImageRecipe& recipe, const ImagePlan& plan)
    : recipe_(recipe),
      plan_(plan),
      window_(window_of(plan)),
      resizer_({plan.padded_width, plan.padded_height, plan.resized_width, plan.resized_height,
                window_, recipe.filter}),
      first_row_(std::clamp<int64_t>(resizer_.first_row() - plan.pad_top, 0, plan.source_height)),
      end_row_(std::clamp<int64_t>(resizer_.end_row() - plan.pad_top, 0, plan.source_height)),
      values_{channel_values(recipe, 0), channel_values(recipe, 1), channel_values(recipe, 2)} {}

void PixelPipeline::put_rows(int64_t y, int64_t n_rows, const PaddedRows& rows) {
  std::array<ConstPlanarRow, kRowsAtOnce> padded;
  for (int64_t i = 0; i < n_rows; ++i) padded[static_cast<size_t>(i)] = rows.padded_row(i);
  resizer_.put_rows(plan_.pad_top + y, n_rows, padded.data());
}

void PixelPipeline::put_padding_rows() {
  if (plan_.padded_height == plan_.source_height) return;
  const PaddedRows rows = make_rows();  // as made, they hold padding only
  const auto put_range = [&](int64_t begin, int64_t end) {
    for (int64_t y = begin; y < end; y += kRowsAtOnce) {
      put_rows(y - plan_.pad_top, std::min(kRowsAtOnce, end - y), rows);
    }
  };
  put_range(0, plan_.pad_top);
  put_range(plan_.pad_top + plan_.source_height, plan_.padded_height);
}

void PixelPipeline::write_row(int64_t y, uint8_t* scratch, PixelTensor* out) const {
  const int64_t source_y = plan_.crop_top + y - window_.top;
  const bool inside = source_y >= 0 && source_y < window_.height;
  ConstPlanarRow row{};
  if (inside) row = resizer_.output_row(source_y, scratch);
  const int64_t left = window_.left - plan_.crop_left;  // border of zeros before the window
  for (size_t c = 0; c < 3; ++c) {
    const std::array<float, 256>& values = values_[c];
    float* to = out->values.data() + (static_cast<int64_t>(c) * plan_.height + y) * plan_.width;
    if (!inside || window_.width != plan_.width) std::fill_n(to, plan_.width, values[0]);
    if (!inside) continue;
    for (int64_t x = 0; x < window_.width; ++x) to[left + x] = values[row[c][x]];
  }
}

PixelTensor PixelPipeline::finish(ThreadPool& pool) {
  put_padding_rows();
  PixelTensor out;
  out.height = plan_.height;
  out.width = plan_.width;
  out.values.resize(static_cast<size_t>(3 * plan_.height * plan_.width));
  pool.parallel_for(plan_.height, 8, [&](int64_t begin, int64_t end) {
    const auto scratch = resizer_.output_scratch();
    for (int64_t y = begin; y < end; ++y) write_row(y, scratch.get(), &out);
  });
  return out;
}

}  // namespace triptych
