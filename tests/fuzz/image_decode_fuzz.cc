#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "base/thread_pool.h"
#include "media/image/recipe.h"

// A picture that decodes has the sides that its header promised, and the streamed way to pixels
// gives what decoding first gives.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static triptych::ThreadPool pool(1);
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  triptych::DecodeOptions options;
  options.limits.max_pixels = 1 << 18;
  const auto image = triptych::decode_image(bytes, options);
  triptych::ImageRecipe recipe;
  recipe.resize_rule = triptych::ImageRecipe::ResizeRule::kExact;
  recipe.size_height = 9;
  recipe.size_width = 12;
  const auto streamed = triptych::preprocess_image(bytes, recipe, options, pool);
  if (image.is_ok() != streamed.is_ok()) std::abort();
  if (!image.is_ok()) return 0;
  const auto header = triptych::probe_image(bytes, options.limits);
  if (!header.is_ok() || header->width != image->width() || header->height != image->height()) {
    std::abort();
  }
  const auto plan = triptych::plan_image(image->width(), image->height(), recipe);
  const auto apart = triptych::apply_recipe(image->view(), recipe, *plan, pool);
  if (!apart.is_ok() || apart->values != streamed->values) std::abort();
  return 0;
}
