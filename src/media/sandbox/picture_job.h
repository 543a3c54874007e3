#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/status.h"
#include "media/image/recipe.h"

namespace triptych::sandbox {

/// An ImageRecipe without its name.
struct RecipeNumbers {
  bool pad_to_square;
  std::array<uint8_t, 3> pad_color;
  ImageRecipe::ResizeRule resize_rule;
  int64_t size_height;
  int64_t size_width;
  int64_t size_shortest;
  int64_t size_longest;
  ResampleFilter filter;
  bool center_crop;
  int64_t crop_height;
  int64_t crop_width;
  bool rescale;
  double rescale_factor;
  bool normalize;
  std::array<double, 3> mean;
  std::array<double, 3> std;
};

/// What a worker is told about a picture; the file's bytes and room for the values go with it.
struct PictureJob {
  DecodeOptions decode;
  RecipeNumbers recipe;
  uint64_t n_file_bytes;
  uint64_t n_values;
  /// image_recipe_key() of the recipe, by which a number that got lost on the way is noticed.
  uint32_t n_key_bytes;
  std::array<char, 1024> key;
};
inline constexpr size_t kJobFiles = 2;  ///< the file's bytes, room for the values

/// kInternal when the recipe's key is too long.
Result<PictureJob> make_job(const ImageRecipe& recipe, const DecodeOptions& decode,
                            uint64_t n_file_bytes, uint64_t n_values);
/// kInternal when the recipe does not have the key that came with it.
Result<ImageRecipe> recipe_of(const PictureJob& job);

/// How a picture went: a StatusCode and the message of an error, as many bytes of it as there are.
struct PictureReply {
  uint32_t code;
  std::array<char, 1020> message;
};

/// The reply of `status`; its length in bytes goes to `n_bytes`.
PictureReply make_reply(const Status& status, size_t& n_bytes);
/// What a reply of `n_bytes` says, or nothing when it is not one. A worker may have sent anything:
/// of a message only printable ASCII is kept.
std::optional<Status> read_reply(const PictureReply& reply, size_t n_bytes);

/// The first message of a worker, once it is confined.
struct WorkerHello {
  uint64_t address_bytes;  ///< address space that it has before its first picture
  int32_t filter_error;    ///< of filter_system_calls(); kNoFilter in builds with sanitizers
};
inline constexpr int32_t kNoFilter = -1;

}  // namespace triptych::sandbox
