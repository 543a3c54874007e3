#include "weights/config_reader.h"

#include <fmt/format.h>

#include <utility>

#include "weights/config_defaults.h"

namespace triptych {
namespace {

/// A null of static storage for references that nothing answers.
const Json& null_json() {
  static const Json null;
  return null;
}

Result<double> number_in(const JsonRef& ref, double low, double high) {
  TRIPTYCH_ASSIGN_OR_RETURN(const double v, ref.as_number());
  if (!(v >= low && v <= high)) {
    return ref.error(fmt::format("{} is outside the allowed range {}..{}", v, low, high));
  }
  return v;
}

}  // namespace

Status ConfigSection::error(std::string_view key, std::string_view what) const {
  return own_.at(key).error(what);
}

bool ConfigSection::has(std::string_view key) const {
  return own_.has(key) || (outer_ && outer_->has(key));
}

JsonRef ConfigSection::lookup(std::string_view key) const {
  if (own_.json().find(key) != nullptr) return own_.at(key);
  if (outer_ && outer_->has(key)) return outer_->at(key);
  const Json* defaults = config_defaults(model_type_);
  const Json* value = defaults != nullptr ? defaults->find(key) : nullptr;
  return {value != nullptr ? *value : null_json(), own_.at(key).path()};
}

Result<JsonRef> ConfigSection::required(std::string_view key) const {
  JsonRef ref = lookup(key);
  if (!ref.is_null()) return ref;
  if (own_.json().find(key) != nullptr) return ref.error("is null, expected a value");
  return ref.error(
      fmt::format("is missing, and model type \"{}\" has no default for it", model_type_));
}

Result<int64_t> ConfigSection::get_int(std::string_view key, int64_t low, int64_t high) const {
  TRIPTYCH_ASSIGN_OR_RETURN(const JsonRef ref, required(key));
  return ref.as_int_in(low, high);
}

Result<double> ConfigSection::get_number(std::string_view key, double low, double high) const {
  TRIPTYCH_ASSIGN_OR_RETURN(const JsonRef ref, required(key));
  return number_in(ref, low, high);
}

Result<bool> ConfigSection::get_bool(std::string_view key) const {
  TRIPTYCH_ASSIGN_OR_RETURN(const JsonRef ref, required(key));
  return ref.as_bool();
}

Result<std::string> ConfigSection::get_string(std::string_view key) const {
  TRIPTYCH_ASSIGN_OR_RETURN(const JsonRef ref, required(key));
  return ref.as_string();
}

Result<std::optional<int64_t>> ConfigSection::find_int(std::string_view key, int64_t low,
                                                       int64_t high) const {
  const JsonRef ref = lookup(key);
  if (ref.is_null()) return std::optional<int64_t>();
  TRIPTYCH_ASSIGN_OR_RETURN(const int64_t v, ref.as_int_in(low, high));
  return std::optional<int64_t>(v);
}

Result<std::optional<double>> ConfigSection::find_number(std::string_view key, double low,
                                                         double high) const {
  const JsonRef ref = lookup(key);
  if (ref.is_null()) return std::optional<double>();
  TRIPTYCH_ASSIGN_OR_RETURN(const double v, number_in(ref, low, high));
  return std::optional<double>(v);
}

Result<std::optional<std::string>> ConfigSection::find_string(std::string_view key) const {
  const JsonRef ref = lookup(key);
  if (ref.is_null()) return std::optional<std::string>();
  TRIPTYCH_ASSIGN_OR_RETURN(std::string v, ref.as_string());
  return std::optional<std::string>(std::move(v));
}

Result<std::vector<int64_t>> ConfigSection::find_ints(std::string_view key, int64_t low,
                                                      int64_t high) const {
  const JsonRef ref = lookup(key);
  std::vector<int64_t> out;
  if (ref.is_null()) return out;
  if (!ref.json().is_array()) {
    TRIPTYCH_ASSIGN_OR_RETURN(const int64_t v, ref.as_int_in(low, high));
    out.push_back(v);
    return out;
  }
  for (size_t i = 0; i < ref.size(); ++i) {
    TRIPTYCH_ASSIGN_OR_RETURN(const int64_t v, ref.at(i).as_int_in(low, high));
    out.push_back(v);
  }
  return out;
}

Result<std::array<int64_t, 2>> ConfigSection::get_size(std::string_view key, int64_t low,
                                                       int64_t high) const {
  TRIPTYCH_ASSIGN_OR_RETURN(const JsonRef ref, required(key));
  TRIPTYCH_ASSIGN_OR_RETURN(const std::vector<int64_t> v, find_ints(key, low, high));
  if (!ref.json().is_array()) return std::array<int64_t, 2>{v[0], v[0]};
  if (v.size() != 2) return ref.error("expected an integer or [height, width]");
  return std::array<int64_t, 2>{v[0], v[1]};
}

Result<ConfigReader> ConfigReader::create(const Json& config, std::string source) {
  const JsonRef ref(config, std::move(source));
  if (!config.is_object()) return ref.error("expected a JSON object");
  if (!ref.has("model_type")) return ref.at("model_type").error("is missing");
  TRIPTYCH_ASSIGN_OR_RETURN(std::string model_type, ref.at("model_type").as_string());
  std::string architecture;
  if (ref.has("architectures")) {
    const JsonRef list = ref.at("architectures");
    if (!list.json().is_array()) return list.error("expected a list of names");
    if (list.size() > 0) {
      TRIPTYCH_ASSIGN_OR_RETURN(architecture, list.at(size_t{0}).as_string());
    }
  }
  return ConfigReader(ConfigSection(ref, std::nullopt, std::move(model_type)),
                      std::move(architecture));
}

Result<ConfigSection> ConfigReader::part(std::string_view key, bool root_behind) const {
  const JsonRef section = root_.lookup(key);
  if (section.is_null()) return section.error("is missing");
  if (!section.json().is_object()) return section.error("expected a JSON object");
  // A part that names no type is of the type that the model class then assumes.
  const Json* defaults = config_defaults(root_.model_type());
  const Json* part = defaults != nullptr ? defaults->find(key) : nullptr;
  const Json* assumed = part != nullptr ? part->find("model_type") : nullptr;
  TRIPTYCH_ASSIGN_OR_RETURN(
      std::string model_type,
      section.get_string("model_type", assumed != nullptr ? assumed->string_value() : ""));
  if (model_type.empty()) return section.at("model_type").error("is missing");
  return ConfigSection(section, root_behind ? std::optional<JsonRef>(root_.ref()) : std::nullopt,
                       std::move(model_type));
}

Result<ConfigSection> ConfigReader::text() const {
  if (root_.lookup("text_config").is_null()) return root_;
  return part("text_config", true);
}

Result<ConfigSection> ConfigReader::vision() const { return part("vision_config", false); }

Result<bool> ConfigReader::tied_embeddings() const {
  TRIPTYCH_ASSIGN_OR_RETURN(const bool root, root_.ref().get_bool("tie_word_embeddings", false));
  TRIPTYCH_ASSIGN_OR_RETURN(const ConfigSection section, text());
  TRIPTYCH_ASSIGN_OR_RETURN(const bool own, section.ref().get_bool("tie_word_embeddings", false));
  return root || own;
}

Result<int64_t> ConfigReader::image_token_id() const {
  constexpr int64_t kHighest = int64_t{1} << 31;
  const bool both = root_.ref().has("image_token_id") && root_.ref().has("image_token_index");
  const std::string_view key =
      root_.ref().has("image_token_id") ? "image_token_id" : "image_token_index";
  TRIPTYCH_ASSIGN_OR_RETURN(const int64_t id, root_.get_int(key, 0, kHighest));
  if (both) {
    TRIPTYCH_ASSIGN_OR_RETURN(const int64_t other, root_.get_int("image_token_index", 0, kHighest));
    if (id != other) {
      return root_.error("image_token_index",
                         fmt::format("{} contradicts image_token_id {}", other, id));
    }
  }
  return id;
}

Result<std::optional<DType>> ConfigReader::dtype() const {
  TRIPTYCH_ASSIGN_OR_RETURN(const ConfigSection section, text());
  for (const ConfigSection& from : {root_, section}) {
    for (std::string_view key : {"dtype", "torch_dtype"}) {
      TRIPTYCH_ASSIGN_OR_RETURN(const std::optional<std::string> name, from.find_string(key));
      if (!name) continue;
      std::string_view bare = *name;
      if (bare.starts_with("torch.")) bare.remove_prefix(6);
      if (bare == "auto") continue;
      if (bare == "float32" || bare == "float") return std::optional<DType>(DType::kF32);
      if (bare == "bfloat16") return std::optional<DType>(DType::kBF16);
      if (bare == "float16" || bare == "half") return std::optional<DType>(DType::kF16);
      return from.error(key, fmt::format("\"{}\" is unknown: expected float32, bfloat16 or float16",
                                         name->substr(0, 100)));
    }
  }
  return std::optional<DType>();
}

}  // namespace triptych
