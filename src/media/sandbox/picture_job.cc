#include "media/sandbox/picture_job.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace triptych::sandbox {

Result<PictureJob> make_job(const ImageRecipe& recipe, const DecodeOptions& decode,
                            uint64_t n_file_bytes, uint64_t n_values) {
  static_assert(std::is_trivially_copyable_v<PictureJob>);
  const std::string key = image_recipe_key(recipe);
  PictureJob job;
  std::memset(static_cast<void*>(&job), 0, sizeof job);  // the gaps between members travel too
  if (key.size() > job.key.size()) return internal_error("a recipe's key is too long to be sent");
  job.decode = decode;
  job.recipe.pad_to_square = recipe.pad_to_square;
  job.recipe.pad_color = recipe.pad_color;
  job.recipe.resize_rule = recipe.resize_rule;
  job.recipe.size_height = recipe.size_height;
  job.recipe.size_width = recipe.size_width;
  job.recipe.size_shortest = recipe.size_shortest;
  job.recipe.size_longest = recipe.size_longest;
  job.recipe.filter = recipe.filter;
  job.recipe.center_crop = recipe.center_crop;
  job.recipe.crop_height = recipe.crop_height;
  job.recipe.crop_width = recipe.crop_width;
  job.recipe.rescale = recipe.rescale;
  job.recipe.rescale_factor = recipe.rescale_factor;
  job.recipe.normalize = recipe.normalize;
  job.recipe.mean = recipe.mean;
  job.recipe.std = recipe.std;
  job.n_file_bytes = n_file_bytes;
  job.n_values = n_values;
  job.n_key_bytes = static_cast<uint32_t>(key.size());
  std::copy(key.begin(), key.end(), job.key.begin());
  return job;
}

Result<ImageRecipe> recipe_of(const PictureJob& job) {
  ImageRecipe recipe;
  recipe.pad_to_square = job.recipe.pad_to_square;
  recipe.pad_color = job.recipe.pad_color;
  recipe.resize_rule = job.recipe.resize_rule;
  recipe.size_height = job.recipe.size_height;
  recipe.size_width = job.recipe.size_width;
  recipe.size_shortest = job.recipe.size_shortest;
  recipe.size_longest = job.recipe.size_longest;
  recipe.filter = job.recipe.filter;
  recipe.center_crop = job.recipe.center_crop;
  recipe.crop_height = job.recipe.crop_height;
  recipe.crop_width = job.recipe.crop_width;
  recipe.rescale = job.recipe.rescale;
  recipe.rescale_factor = job.recipe.rescale_factor;
  recipe.normalize = job.recipe.normalize;
  recipe.mean = job.recipe.mean;
  recipe.std = job.recipe.std;
  if (image_recipe_key(recipe) != std::string_view(job.key.data(), job.n_key_bytes)) {
    return internal_error("a recipe lost numbers on its way to a picture's decoder");
  }
  return recipe;
}

PictureReply make_reply(const Status& status, size_t& n_bytes) {
  PictureReply reply;
  std::memset(&reply, 0, sizeof reply);
  reply.code = static_cast<uint32_t>(status.code());
  const size_t n = std::min(status.message().size(), reply.message.size());
  std::copy_n(status.message().begin(), n, reply.message.begin());
  n_bytes = offsetof(PictureReply, message) + n;
  return reply;
}

std::optional<Status> read_reply(const PictureReply& reply, size_t n_bytes) {
  if (n_bytes < offsetof(PictureReply, message) || n_bytes > sizeof reply ||
      reply.code > static_cast<uint32_t>(StatusCode::kInternal)) {
    return std::nullopt;
  }
  if (reply.code == static_cast<uint32_t>(StatusCode::kOk)) return Status::ok();
  std::string message(reply.message.data(), n_bytes - offsetof(PictureReply, message));
  std::replace_if(
      message.begin(), message.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return Status(static_cast<StatusCode>(reply.code), std::move(message));
}

}  // namespace triptych::sandbox
