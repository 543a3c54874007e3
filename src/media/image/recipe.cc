#include "media/image/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/file.h"

namespace triptych {
namespace {

constexpr int64_t kMaxSide = 65535;

/// What a processor class of transformers assumes for keys that its file does not set.
struct ProcessorClass {
  std::string_view name;
  bool square_size;  ///< the default size is size x size, not the shortest edge
  bool center_crop;
  bool pads_to_square;  ///< do_pad means padding to square before resizing
  std::array<double, 3> mean;
  std::array<double, 3> std;
};

constexpr std::array<double, 3> kClipMean = {0.48145466, 0.4578275, 0.40821073};
constexpr std::array<double, 3> kClipStd = {0.26862954, 0.26130258, 0.27577711};
constexpr std::array<double, 3> kHalf = {0.5, 0.5, 0.5};
constexpr int64_t kDefaultSize = 224;

constexpr std::array kClasses = {
    ProcessorClass{"CLIPImageProcessor", false, true, false, kClipMean, kClipStd},
    ProcessorClass{"SiglipImageProcessor", true, false, false, kHalf, kHalf},
    ProcessorClass{"LlavaImageProcessor", false, true, true, kClipMean, kClipStd},
};

/// Keys of one processor: the caller's overrides first, then the file. Null counts as absent.
class Keys {
 public:
  Keys(const JsonRef& processor, const JsonRef* overrides)
      : processor_(processor), overrides_(overrides) {}

  JsonRef at(std::string_view key) const {
    if (overrides_ != nullptr && overrides_->has(key)) return overrides_->at(key);
    return processor_.at(key);
  }
  Result<bool> flag(std::string_view key, bool fallback) const {
    const JsonRef value = at(key);
    if (value.is_null()) return fallback;
    return value.as_bool();
  }

 private:
  const JsonRef& processor_;
  const JsonRef* overrides_;
};

Result<const ProcessorClass*> find_class(const Keys& keys) {
  std::string known;
  for (const ProcessorClass& entry : kClasses) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", entry.name);
  }
  JsonRef type = keys.at("image_processor_type");
  // Files from before transformers 4.26 name a feature extractor instead.
  if (type.is_null()) type = keys.at("feature_extractor_type");
  if (type.is_null()) {
    return keys.at("image_processor_type").error(fmt::format("missing; known: {}", known));
  }
  TRIPTYCH_ASSIGN_OR_RETURN(const std::string spelled, type.as_string());
  std::string name = spelled;
  const auto drop_suffix = [&](std::string_view suffix, std::string_view instead) {
    if (name.ends_with(suffix)) name = name.substr(0, name.size() - suffix.size()).append(instead);
  };
  drop_suffix("Fast", "");
  drop_suffix("Pil", "");
  drop_suffix("FeatureExtractor", "ImageProcessor");
  for (const ProcessorClass& entry : kClasses) {
    if (entry.name == name) return &entry;
  }
  return unsupported(
      type.error(fmt::format("image processor {} is not known; known: {}", spelled, known))
          .message());
}

/// {"height", "width"}, [height, width] or one number for both.
Status read_height_width(const JsonRef& value, int64_t* height, int64_t* width) {
  if (value.json().is_object()) {
    if (value.json().members().size() != 2 || !value.has("height") || !value.has("width")) {
      return value.error("expected the keys height and width");
    }
    TRIPTYCH_ASSIGN_OR_RETURN(*height, value.at("height").as_int_in(1, kMaxSide));
    TRIPTYCH_ASSIGN_OR_RETURN(*width, value.at("width").as_int_in(1, kMaxSide));
  } else if (value.json().is_array()) {
    if (value.size() != 2) return value.error("expected [height, width]");
    TRIPTYCH_ASSIGN_OR_RETURN(*height, value.at(size_t{0}).as_int_in(1, kMaxSide));
    TRIPTYCH_ASSIGN_OR_RETURN(*width, value.at(size_t{1}).as_int_in(1, kMaxSide));
  } else {
    TRIPTYCH_ASSIGN_OR_RETURN(*height, value.as_int_in(1, kMaxSide));
    *width = *height;
  }
  return Status::ok();
}

/// A size object by its keys; each set of keys is a rule of its own.
Status read_size_object(const JsonRef& size, ImageRecipe* recipe) {
  const size_t n_keys = size.json().members().size();
  if (size.has("height") && size.has("width") && n_keys == 2) {
    recipe->resize_rule = ImageRecipe::ResizeRule::kExact;
    return read_height_width(size, &recipe->size_height, &recipe->size_width);
  }
  if (size.has("max_height") && size.has("max_width") && n_keys == 2) {
    recipe->resize_rule = ImageRecipe::ResizeRule::kWithin;
    TRIPTYCH_ASSIGN_OR_RETURN(recipe->size_height, size.at("max_height").as_int_in(1, kMaxSide));
    TRIPTYCH_ASSIGN_OR_RETURN(recipe->size_width, size.at("max_width").as_int_in(1, kMaxSide));
    return Status::ok();
  }
  const bool shortest = size.has("shortest_edge");
  const bool longest = size.has("longest_edge");
  if ((!shortest && !longest) || n_keys != size_t{shortest} + size_t{longest}) {
    return size.error(
        "expected height and width, shortest_edge and/or longest_edge, max_height and max_width, "
        "or a number");
  }
  recipe->resize_rule =
      shortest ? ImageRecipe::ResizeRule::kShortestEdge : ImageRecipe::ResizeRule::kLongestEdge;
  if (shortest) {
    TRIPTYCH_ASSIGN_OR_RETURN(recipe->size_shortest,
                              size.at("shortest_edge").as_int_in(1, kMaxSide));
  }
  if (longest) {
    TRIPTYCH_ASSIGN_OR_RETURN(recipe->size_longest, size.at("longest_edge").as_int_in(1, kMaxSide));
  }
  return Status::ok();
}

Status read_resize(const Keys& keys, const ProcessorClass& defaults, ImageRecipe* recipe) {
  TRIPTYCH_ASSIGN_OR_RETURN(const bool do_resize, keys.flag("do_resize", true));
  if (!do_resize) return Status::ok();
  const JsonRef size = keys.at("size");
  TRIPTYCH_ASSIGN_OR_RETURN(const bool to_square, keys.flag("default_to_square", false));
  if (size.json().is_object()) {
    TRIPTYCH_RETURN_IF_ERROR(read_size_object(size, recipe));
  } else if (size.json().is_array() || (!size.is_null() && to_square)) {
    recipe->resize_rule = ImageRecipe::ResizeRule::kExact;
    TRIPTYCH_RETURN_IF_ERROR(read_height_width(size, &recipe->size_height, &recipe->size_width));
  } else if (!size.is_null()) {
    recipe->resize_rule = ImageRecipe::ResizeRule::kShortestEdge;
    TRIPTYCH_ASSIGN_OR_RETURN(recipe->size_shortest, size.as_int_in(1, kMaxSide));
  } else if (defaults.square_size) {
    recipe->resize_rule = ImageRecipe::ResizeRule::kExact;
    recipe->size_height = recipe->size_width = kDefaultSize;
  } else {
    recipe->resize_rule = ImageRecipe::ResizeRule::kShortestEdge;
    recipe->size_shortest = kDefaultSize;
  }
  const JsonRef resample = keys.at("resample");
  if (!resample.is_null()) {
    TRIPTYCH_ASSIGN_OR_RETURN(const int64_t id, resample.as_int_in(0, 5));
    recipe->filter = static_cast<ResampleFilter>(id);
  }
  return Status::ok();
}

Status read_crop(const Keys& keys, const ProcessorClass& defaults, ImageRecipe* recipe) {
  TRIPTYCH_ASSIGN_OR_RETURN(recipe->center_crop, keys.flag("do_center_crop", defaults.center_crop));
  if (!recipe->center_crop) return Status::ok();
  const JsonRef crop = keys.at("crop_size");
  if (!crop.is_null()) {
    return read_height_width(crop, &recipe->crop_height, &recipe->crop_width);
  }
  if (!defaults.center_crop) return crop.error("missing, but do_center_crop is true");
  recipe->crop_height = recipe->crop_width = kDefaultSize;
  return Status::ok();
}

Status read_channel_values(const JsonRef& value, std::array<double, 3>* out) {
  if (value.is_null()) return Status::ok();
  if (value.json().is_number()) {
    out->fill(value.json().number_value());
    return Status::ok();
  }
  TRIPTYCH_ASSIGN_OR_RETURN(const std::vector<double> numbers, value.as_numbers());
  if (numbers.size() != out->size()) {
    return value.error(fmt::format("expected 3 numbers or one, found {}", numbers.size()));
  }
  std::copy(numbers.begin(), numbers.end(), out->begin());
  return Status::ok();
}

Status read_values(const Keys& keys, const ProcessorClass& defaults, ImageRecipe* recipe) {
  recipe->mean = defaults.mean;
  recipe->std = defaults.std;
  TRIPTYCH_ASSIGN_OR_RETURN(recipe->rescale, keys.flag("do_rescale", true));
  TRIPTYCH_ASSIGN_OR_RETURN(recipe->normalize, keys.flag("do_normalize", true));
  const JsonRef factor = keys.at("rescale_factor");
  if (!factor.is_null()) {
    TRIPTYCH_ASSIGN_OR_RETURN(recipe->rescale_factor, factor.as_number());
  }
  TRIPTYCH_RETURN_IF_ERROR(read_channel_values(keys.at("image_mean"), &recipe->mean));
  TRIPTYCH_RETURN_IF_ERROR(read_channel_values(keys.at("image_std"), &recipe->std));
  for (const double std : recipe->std) {
    if (recipe->normalize && !(std > 0)) {
      return keys.at("image_std").error(fmt::format("{} is not above 0", std));
    }
  }
  return Status::ok();
}

Status read_padding(const Keys& keys, const ProcessorClass& defaults, ImageRecipe* recipe) {
  TRIPTYCH_ASSIGN_OR_RETURN(const bool do_pad, keys.flag("do_pad", false));
  if (!do_pad) return Status::ok();
  if (!defaults.pads_to_square) {
    // These classes pad a batch to its largest picture, which changes nothing for one picture,
    // unless a size is asked for.
    const JsonRef pad_size = keys.at("pad_size");
    if (pad_size.is_null()) return Status::ok();
    return unsupported(pad_size.error("padding to a fixed size is not supported").message());
  }
  recipe->pad_to_square = true;
  for (size_t c = 0; c < 3; ++c) {
    const double color = std::trunc(recipe->mean[c] * 255);
    if (!(color >= 0 && color <= 255)) {
      return keys.at("image_mean").error("outside 0 to 1, so it is no padding colour");
    }
    recipe->pad_color[c] = static_cast<uint8_t>(color);
  }
  return Status::ok();
}

}  // namespace

Result<ImageRecipe> parse_image_recipe(const JsonRef& processor, const JsonRef* overrides) {
  if (!processor.json().is_object()) return processor.error("expected an object");
  const Keys keys(processor, overrides);
  TRIPTYCH_ASSIGN_OR_RETURN(const ProcessorClass* defaults, find_class(keys));
  ImageRecipe recipe;
  recipe.processor = defaults->name;
  TRIPTYCH_RETURN_IF_ERROR(read_resize(keys, *defaults, &recipe));
  TRIPTYCH_RETURN_IF_ERROR(read_crop(keys, *defaults, &recipe));
  TRIPTYCH_RETURN_IF_ERROR(read_values(keys, *defaults, &recipe));
  TRIPTYCH_RETURN_IF_ERROR(read_padding(keys, *defaults, &recipe));
  return recipe;
}

Result<ImageRecipe> load_image_recipe(const std::string& model_dir) {
  const std::string nested = model_dir + "/processor_config.json";
  const std::string legacy = model_dir + "/preprocessor_config.json";
  if (file_exists(nested)) {
    TRIPTYCH_ASSIGN_OR_RETURN(const Json json, parse_json_file(nested));
    const JsonRef root(json, nested);
    if (root.has("image_processor")) return parse_image_recipe(root.at("image_processor"));
  }
  if (!file_exists(legacy)) {
    return not_found(fmt::format(
        "{}: neither preprocessor_config.json nor an image_processor in processor_config.json",
        model_dir));
  }
  TRIPTYCH_ASSIGN_OR_RETURN(const Json json, parse_json_file(legacy));
  return parse_image_recipe(JsonRef(json, legacy));
}

std::string image_recipe_key(const ImageRecipe& r) {
  return fmt::format(
      "pad={}:{},{},{};resize={}:{}x{}:{}-{}:{};crop={}:{}x{};scale={}:{};norm={}:{},{},{}:{},{},{"
      "}",
      r.pad_to_square, r.pad_color[0], r.pad_color[1], r.pad_color[2],
      static_cast<int>(r.resize_rule), r.size_height, r.size_width, r.size_shortest, r.size_longest,
      static_cast<int>(r.filter), r.center_crop, r.crop_height, r.crop_width, r.rescale,
      r.rescale_factor, r.normalize, r.mean[0], r.mean[1], r.mean[2], r.std[0], r.std[1], r.std[2]);
}

}  // namespace triptych
