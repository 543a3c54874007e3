#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "media/image/decode.h"
#include "media/image/image.h"
#include "media/image/resize.h"

namespace triptych {

/// Part of every identity that covers preprocessed pixels; raised whenever the same picture and
/// recipe would give other pixels than before.
inline constexpr int kImageRecipeVersion = 1;

/// Preprocessing of a picture as data: what an image processor class of Hugging Face transformers
/// and the checkpoint's preprocessor_config.json say together.
/// Order: pad to square, resize, centre crop, rescale, normalise.
struct ImageRecipe {
  enum class ResizeRule : uint8_t {
    kNone,          ///< pixels keep their size
    kExact,         ///< to size_height x size_width, whatever the ratio
    kShortestEdge,  ///< shorter side to size_shortest, at most size_longest (0: no cap) for the
                    ///< other
    kLongestEdge,   ///< longer side to size_longest
    kWithin,        ///< the largest size of the same ratio within size_height x size_width
  };

  std::string processor;  ///< class name as the file has it, for messages
  bool pad_to_square = false;
  std::array<uint8_t, 3> pad_color = {0, 0, 0};
  ResizeRule resize_rule = ResizeRule::kNone;
  int64_t size_height = 0;
  int64_t size_width = 0;
  int64_t size_shortest = 0;
  int64_t size_longest = 0;
  ResampleFilter filter = ResampleFilter::kBicubic;
  bool center_crop = false;
  int64_t crop_height = 0;
  int64_t crop_width = 0;
  bool rescale = true;
  double rescale_factor = 1.0 / 255.0;
  bool normalize = true;
  std::array<double, 3> mean = {0, 0, 0};
  std::array<double, 3> std = {1, 1, 1};
};

/// Reads the recipe of a checkpoint folder: `image_processor` of processor_config.json when it is
/// there (transformers v5), else preprocessor_config.json. A key that is absent or null takes the
/// default of the class in `image_processor_type`.
/// Errors name file and key path; kNotFound when the folder has neither; kUnsupported for a class
/// that is not known (the message lists those that are).
Result<ImageRecipe> load_image_recipe(const std::string& model_dir);

/// The same from one JSON object. `overrides`, an object with keys of the same names, wins over
/// `processor`; its errors carry its own source name.
Result<ImageRecipe> parse_image_recipe(const JsonRef& processor,
                                       const JsonRef* overrides = nullptr);

/// Every number that decides pixels, as canonical text: equal text, equal pixels. For identities.
std::string image_recipe_key(const ImageRecipe& recipe);

/// What a recipe does to a picture of a given size. The same plan costs, sizes and runs it.
struct ImagePlan {
  int64_t source_width = 0;
  int64_t source_height = 0;
  int64_t padded_width = 0;  ///< after padding to square; the source's when there is none
  int64_t padded_height = 0;
  int64_t pad_left = 0;  ///< where the source lies in the padded picture
  int64_t pad_top = 0;
  int64_t resized_width = 0;
  int64_t resized_height = 0;
  int64_t crop_left = 0;  ///< of the output in the resized picture; below 0: a border of zeros
  int64_t crop_top = 0;
  int64_t width = 0;  ///< of the pixel tensor
  int64_t height = 0;

  /// Patches of a grid of whole `patch` x `patch` squares, as a convolution of that stride sees it.
  int64_t n_patches(int64_t patch) const { return (width / patch) * (height / patch); }
};

/// Pure: sizes only, Python's rounding. kInvalidArgument for a side below 1 or a recipe that would
/// make one, kOutOfRange when the pixel tensor would pass 64 Mi pixels.
Result<ImagePlan> plan_image(int64_t width, int64_t height, const ImageRecipe& recipe);

/// Pixel values [3, height, width], channels R, G, B.
struct PixelTensor {
  int64_t height = 0;
  int64_t width = 0;
  std::vector<float> values;
};

/// Runs a plan on decoded pixels. Equal to the PIL-backed processors of transformers: the bytes
/// before rescaling bit for bit, and the floats too (float64 product cast to float32, then
/// (x - mean) / std in float32). kInvalidArgument when the plan was made for another size.
Result<PixelTensor> apply_recipe(const ImageView& image, const ImageRecipe& recipe,
                                 const ImagePlan& plan, ThreadPool& pool);

/// decode_image and apply_recipe in one go; same values. Rows of an upright JPEG are resized while
/// later rows are still being decoded, and only what the horizontal pass leaves of them is kept (of
/// tall pictures that Pillow resizes vertically first, whole rows).
Result<PixelTensor> preprocess_image(std::span<const std::byte> bytes, const ImageRecipe& recipe,
                                     const DecodeOptions& options, ThreadPool& pool);

}  // namespace triptych
