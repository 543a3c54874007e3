#include <fmt/format.h>

#include <cmath>

#include "weights/config_reader.h"

namespace triptych {
namespace {

constexpr double kLargest = 1e12;
constexpr double kSmallest = 1e-12;
constexpr int64_t kMaxContext = int64_t{1} << 31;

/// The object that holds the parameters: rope_scaling where it says something, else
/// rope_parameters (the order of transformers' convert_rope_params_to_dict); null for neither.
Result<std::optional<JsonRef>> parameter_table(const ConfigSection& text) {
  for (std::string_view key : {"rope_scaling", "rope_parameters"}) {
    if (!text.has(key)) continue;
    const JsonRef table = text.lookup(key);
    if (table.is_null()) continue;
    if (!table.json().is_object()) return table.error("expected a JSON object");
    if (!table.json().members().empty()) return std::optional<JsonRef>(table);
  }
  return std::optional<JsonRef>();
}

Result<double> positive(const JsonRef& table, std::string_view key) {
  TRIPTYCH_ASSIGN_OR_RETURN(const double v, table.at(key).as_number());
  if (!(v >= kSmallest && v <= kLargest)) {
    return table.at(key).error(fmt::format("{} is outside the allowed range above 0", v));
  }
  return v;
}

Result<std::optional<double>> optional_positive(const JsonRef& table, std::string_view key) {
  if (!table.has(key)) return std::optional<double>();
  TRIPTYCH_ASSIGN_OR_RETURN(const double v, positive(table, key));
  return std::optional<double>(v);
}

Result<RopeType> rope_type(const JsonRef& table) {
  const JsonRef ref = table.has("rope_type") ? table.at("rope_type") : table.at("type");
  if (ref.is_null()) return RopeType::kDefault;
  TRIPTYCH_ASSIGN_OR_RETURN(const std::string name, ref.as_string());
  if (name == "default") return RopeType::kDefault;
  if (name == "linear") return RopeType::kLinear;
  if (name == "dynamic") return RopeType::kDynamic;
  if (name == "llama3") return RopeType::kLlama3;
  if (name == "yarn") return RopeType::kYarn;
  return unsupported(
      fmt::format("{}: rope type \"{}\" is not supported; default, linear, dynamic, "
                  "llama3 and yarn are",
                  ref.path(), name.substr(0, 100)));
}

Status read_llama3(const JsonRef& table, RopeConfig& rope) {
  TRIPTYCH_ASSIGN_OR_RETURN(rope.low_freq_factor, positive(table, "low_freq_factor"));
  TRIPTYCH_ASSIGN_OR_RETURN(rope.high_freq_factor, positive(table, "high_freq_factor"));
  if (rope.high_freq_factor <= rope.low_freq_factor) {
    return table.at("high_freq_factor")
        .error(fmt::format("{} is not above low_freq_factor {}", rope.high_freq_factor,
                           rope.low_freq_factor));
  }
  return Status::ok();
}

Status read_yarn(const JsonRef& table, RopeConfig& rope) {
  TRIPTYCH_ASSIGN_OR_RETURN(rope.attention_factor, optional_positive(table, "attention_factor"));
  // A zero of these means "not given" in transformers.
  for (const auto& [key, to] :
       {std::pair{"mscale", &rope.mscale}, std::pair{"mscale_all_dim", &rope.mscale_all_dim}}) {
    TRIPTYCH_ASSIGN_OR_RETURN(const double v, table.get_number(key, 0));
    if (v != 0) {
      TRIPTYCH_ASSIGN_OR_RETURN(*to, positive(table, key));
    }
  }
  for (const auto& [key, to] :
       {std::pair{"beta_fast", &rope.beta_fast}, std::pair{"beta_slow", &rope.beta_slow}}) {
    TRIPTYCH_ASSIGN_OR_RETURN(const double v, table.get_number(key, 0));
    if (v != 0) {
      TRIPTYCH_ASSIGN_OR_RETURN(*to, positive(table, key));
    }
  }
  if (rope.theta <= 1) return table.at("rope_theta").error("yarn needs a theta above 1");
  TRIPTYCH_ASSIGN_OR_RETURN(rope.truncate, table.get_bool("truncate", true));
  return Status::ok();
}

}  // namespace

Result<RopeConfig> read_rope(const ConfigSection& text) {
  RopeConfig rope;
  TRIPTYCH_ASSIGN_OR_RETURN(const int64_t context,
                            text.get_int("max_position_embeddings", 1, kMaxContext));
  TRIPTYCH_ASSIGN_OR_RETURN(const auto theta, text.find_number("rope_theta", kSmallest, kLargest));
  TRIPTYCH_ASSIGN_OR_RETURN(const auto partial, text.find_number("partial_rotary_factor", 0, 1));
  // A rope_scaling added by hand to a config in the new spelling leaves the theta where it was.
  const JsonRef parameters = text.lookup("rope_parameters");
  TRIPTYCH_ASSIGN_OR_RETURN(const auto new_theta, optional_positive(parameters, "rope_theta"));
  rope.theta = theta.value_or(new_theta.value_or(rope.theta));
  rope.partial_rotary_factor = partial.value_or(1.0);
  rope.original_max_position_embeddings = context;

  TRIPTYCH_ASSIGN_OR_RETURN(const std::optional<JsonRef> found, parameter_table(text));
  if (!found) return rope;
  const JsonRef& table = *found;
  for (const auto& [key, value] : table.json().members()) {
    if (value.is_object()) {
      return unsupported(table.at(key).path() +
                         ": rope parameters for each kind of layer are not "
                         "supported");
    }
  }
  TRIPTYCH_ASSIGN_OR_RETURN(rope.type, rope_type(table));
  TRIPTYCH_ASSIGN_OR_RETURN(const auto own_theta, optional_positive(table, "rope_theta"));
  TRIPTYCH_ASSIGN_OR_RETURN(const auto own_partial,
                            optional_positive(table, "partial_rotary_factor"));
  rope.theta = own_theta.value_or(rope.theta);
  rope.partial_rotary_factor = own_partial.value_or(rope.partial_rotary_factor);
  if (!(rope.partial_rotary_factor > 0 && rope.partial_rotary_factor <= 1)) {
    return table.at("partial_rotary_factor").error("expected a number above 0 and up to 1");
  }
  if (rope.type == RopeType::kDefault) return rope;

  if (rope.type == RopeType::kLlama3 || rope.type == RopeType::kYarn) {
    // Written beside the table it wins over the one within (transformers' standardize_rope_params).
    constexpr std::string_view kKey = "original_max_position_embeddings";
    TRIPTYCH_ASSIGN_OR_RETURN(const auto beside, text.find_int(kKey, 1, kMaxContext));
    TRIPTYCH_ASSIGN_OR_RETURN(const int64_t within,
                              table.get_int_in(kKey, context, 1, kMaxContext));
    rope.original_max_position_embeddings = beside.value_or(within);
  }
  if (rope.type == RopeType::kYarn && !table.has("factor")) {
    rope.factor =
        static_cast<double>(context) / static_cast<double>(rope.original_max_position_embeddings);
  } else {
    TRIPTYCH_ASSIGN_OR_RETURN(rope.factor, positive(table, "factor"));
  }
  if (rope.type == RopeType::kLlama3) TRIPTYCH_RETURN_IF_ERROR(read_llama3(table, rope));
  if (rope.type == RopeType::kYarn) TRIPTYCH_RETURN_IF_ERROR(read_yarn(table, rope));
  return rope;
}

}  // namespace triptych
