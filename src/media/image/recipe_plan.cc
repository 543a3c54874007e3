#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "media/image/recipe.h"

namespace triptych {
namespace {

constexpr int64_t kMaxOutputPixels = int64_t{64} << 20;

struct Size {
  int64_t height;
  int64_t width;
};

/// Python's int(a * b / c): an exact product, one rounded division, truncation.
int64_t scaled(int64_t a, int64_t b, int64_t c) {
  return static_cast<int64_t>(static_cast<double>(a * b) / static_cast<double>(c));
}

Size shortest_edge(const Size& in, int64_t size) {
  if (in.width <= in.height) return {scaled(size, in.height, in.width), size};
  return {size, scaled(size, in.width, in.height)};
}

/// get_size_with_aspect_ratio of transformers: the cap on the longer side may shrink the shorter
/// one below the size asked for; the operations are in its order, because their rounding shows.
Size shortest_edge_capped(const Size& in, int64_t size, int64_t cap) {
  const auto height = static_cast<double>(in.height);
  const auto width = static_cast<double>(in.width);
  const double low = std::min(height, width);
  const double high = std::max(height, width);
  double raw = static_cast<double>(size);
  if (high / low * raw > static_cast<double>(cap)) {
    raw = static_cast<double>(cap) * low / high;
    size = static_cast<int64_t>(std::nearbyint(raw));  // Python rounds halves to even
  }
  if ((in.height <= in.width && in.height == size) || (in.width <= in.height && in.width == size)) {
    return in;
  }
  if (in.width < in.height) return {static_cast<int64_t>(raw * height / width), size};
  return {size, static_cast<int64_t>(raw * width / height)};
}

Size longest_edge(const Size& in, int64_t size) {
  if (in.height >= in.width) {
    return {size, std::max<int64_t>(scaled(in.width, size, in.height), 1)};
  }
  return {std::max<int64_t>(scaled(in.height, size, in.width), 1), size};
}

/// get_image_size_for_max_height_width of transformers.
Size within(const Size& in, int64_t max_height, int64_t max_width) {
  const double scale = std::min(static_cast<double>(max_height) / static_cast<double>(in.height),
                                static_cast<double>(max_width) / static_cast<double>(in.width));
  return {static_cast<int64_t>(static_cast<double>(in.height) * scale),
          static_cast<int64_t>(static_cast<double>(in.width) * scale)};
}

Size resized_size(const Size& in, const ImageRecipe& recipe) {
  switch (recipe.resize_rule) {
    case ImageRecipe::ResizeRule::kNone:
      break;
    case ImageRecipe::ResizeRule::kExact:
      return {recipe.size_height, recipe.size_width};
    case ImageRecipe::ResizeRule::kShortestEdge:
      return recipe.size_longest > 0
                 ? shortest_edge_capped(in, recipe.size_shortest, recipe.size_longest)
                 : shortest_edge(in, recipe.size_shortest);
    case ImageRecipe::ResizeRule::kLongestEdge:
      return longest_edge(in, recipe.size_longest);
    case ImageRecipe::ResizeRule::kWithin:
      return within(in, recipe.size_height, recipe.size_width);
  }
  return in;
}

/// Half of a difference, rounded down for negative ones as well: Python's a // 2.
int64_t floor_half(int64_t a) { return a >= 0 ? a / 2 : -((1 - a) / 2); }

}  // namespace

Result<ImagePlan> plan_image(int64_t width, int64_t height, const ImageRecipe& recipe) {
  if (width < 1 || height < 1) {
    return invalid_argument(fmt::format("a picture of {} x {} has a side below 1", width, height));
  }
  ImagePlan plan;
  plan.source_width = plan.padded_width = width;
  plan.source_height = plan.padded_height = height;
  if (recipe.pad_to_square) {
    const int64_t side = std::max(width, height);
    plan.padded_width = plan.padded_height = side;
    plan.pad_left = (side - width) / 2;
    plan.pad_top = (side - height) / 2;
  }
  const Size resized = resized_size({plan.padded_height, plan.padded_width}, recipe);
  if (resized.width < 1 || resized.height < 1) {
    return invalid_argument(
        fmt::format("a picture of {} x {} is too narrow: it would be resized to {} x {}", width,
                    height, resized.width, resized.height));
  }
  plan.resized_width = plan.width = resized.width;
  plan.resized_height = plan.height = resized.height;
  if (recipe.center_crop) {
    plan.width = recipe.crop_width;
    plan.height = recipe.crop_height;
    plan.crop_left = floor_half(resized.width - plan.width);
    plan.crop_top = floor_half(resized.height - plan.height);
  }
  if (plan.width > kMaxOutputPixels / plan.height) {
    return out_of_range(
        fmt::format("a picture of {} x {} would become {} x {} pixels; at most {} are taken", width,
                    height, plan.width, plan.height, kMaxOutputPixels));
  }
  return plan;
}

}  // namespace triptych
