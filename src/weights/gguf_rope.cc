#include "weights/gguf_rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>
#include <vector>

#include "weights/gguf_llama.h"

namespace triptych {
namespace {

// Llama 3.1 and later: the one set of parameters in use (meta-llama configs, rope_scaling).
constexpr double kLowFreqFactor = 1.0;
constexpr double kHighFreqFactor = 4.0;
constexpr double kOriginalContext = 8192.0;

/// What transformers divides frequency `i` of `head_dim` / 2 by
/// (modeling_rope_utils._compute_llama3_parameters).
double llama3_factor(double theta, int64_t head_dim, int64_t i, double factor) {
  const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(head_dim);
  const double wavelength = 2 * std::numbers::pi * std::pow(theta, exponent);
  if (wavelength < kOriginalContext / kHighFreqFactor) return 1;
  if (wavelength > kOriginalContext / kLowFreqFactor) return factor;
  const double smooth =
      (kOriginalContext / wavelength - kLowFreqFactor) / (kHighFreqFactor - kLowFreqFactor);
  return 1 / ((1 - smooth) / factor + smooth);
}

Result<Json> llama3_scaling(const GgufFile& file, const GgufTensor& tensor,
                            std::span<const float> factors, double theta, int64_t head_dim) {
  const auto no_match = [&] {
    return unsupported(fmt::format("{}: {}: its frequency factors are not those of Llama 3",
                                   file.path(), tensor.name));
  };
  if (static_cast<int64_t>(factors.size()) * 2 != head_dim) return no_match();
  const double largest = *std::max_element(factors.begin(), factors.end());
  for (size_t i = 0; i < factors.size(); ++i) {
    const double expected = llama3_factor(theta, head_dim, static_cast<int64_t>(i), largest);
    // Negated, so that NaN fails too.
    if (!(std::abs(factors[i] - expected) <= 1e-3 * expected)) return no_match();
  }
  return Json::object({{"rope_type", Json::string("llama3")},
                       {"factor", Json::number(largest)},
                       {"low_freq_factor", Json::number(kLowFreqFactor)},
                       {"high_freq_factor", Json::number(kHighFreqFactor)},
                       {"original_max_position_embeddings",
                        Json::integer(static_cast<int64_t>(kOriginalContext))}});
}

Result<Json> scaling_of_keys(const GgufFile& file, const std::string& type) {
  if (type != "linear" && type != "yarn") {
    return unsupported(
        fmt::format("{}: llama.rope.scaling.type \"{}\" is not supported; none, "
                    "linear and yarn are",
                    file.path(), type.substr(0, 100)));
  }
  constexpr std::array<std::string_view, 4> kUnread = {
      "llama.rope.scaling.attn_factor", "llama.rope.scaling.yarn_attn_factor",
      "llama.rope.scaling.yarn_ext_factor", "llama.rope.scaling.yarn_log_multiplier"};
  for (std::string_view key : kUnread) {
    if (file.has(key)) {
      return unsupported(
          fmt::format("{}: {}: this rope setting is not supported", file.path(), key));
    }
  }
  Json scaling = Json::object({{"rope_type", Json::string(type)}});
  TRIPTYCH_ASSIGN_OR_RETURN(const auto factor, file.find_number("llama.rope.scaling.factor"));
  if (!factor || *factor <= 0) {
    return file.error("llama.rope.scaling.factor", "expected a number above 0");
  }
  scaling.set("factor", Json::number(*factor));
  if (type == "yarn") {
    constexpr std::string_view kOriginal = "llama.rope.scaling.original_context_length";
    TRIPTYCH_ASSIGN_OR_RETURN(const auto original, file.find_int(kOriginal, 1, int64_t{1} << 31));
    if (!original) return file.error(kOriginal, "is missing");
    scaling.set("original_max_position_embeddings", Json::integer(*original));
    for (std::string_view beta : {"beta_fast", "beta_slow"}) {
      TRIPTYCH_ASSIGN_OR_RETURN(const auto v,
                                file.find_number(fmt::format("llama.rope.scaling.yarn_{}", beta)));
      if (v) scaling.set(std::string(beta), Json::number(*v));
    }
  }
  return scaling;
}

}  // namespace

Status set_gguf_rope(const GgufFile& file, Json& config) {
  TRIPTYCH_ASSIGN_OR_RETURN(const auto base, file.find_number("llama.rope.freq_base"));
  const double theta = base.value_or(10000.0);
  if (theta <= 1) return file.error("llama.rope.freq_base", "expected a number above 1");
  config.set("rope_theta", Json::number(theta));

  TRIPTYCH_ASSIGN_OR_RETURN(auto type, file.find_string("llama.rope.scaling.type"));
  TRIPTYCH_ASSIGN_OR_RETURN(const auto old_linear, file.find_number("llama.rope.scale_linear"));
  const bool scaled = type && *type != "none";
  if (scaled) {
    TRIPTYCH_ASSIGN_OR_RETURN(Json scaling, scaling_of_keys(file, *type));
    config.set("rope_scaling", std::move(scaling));
  } else if (old_linear && *old_linear != 1.0) {
    if (*old_linear <= 0) return file.error("llama.rope.scale_linear", "expected more than 0");
    config.set("rope_scaling", Json::object({{"rope_type", Json::string("linear")},
                                             {"factor", Json::number(*old_linear)}}));
  }

  const GgufTensor* tensor = file.find_tensor(kGgufRopeFactors);
  if (tensor == nullptr) return Status::ok();
  if (config.find("rope_scaling") != nullptr || tensor->type != GgmlType::kF32) {
    return unsupported(
        fmt::format("{}: {}: frequency factors as {} beside other scaling are not "
                    "supported",
                    file.path(), tensor->name, ggml_type_name(tensor->type)));
  }
  std::vector<float> factors(tensor->n_bytes / sizeof(float));
  std::memcpy(factors.data(), file.bytes().data() + tensor->offset, tensor->n_bytes);
  if (std::all_of(factors.begin(), factors.end(), [](float f) { return f == 1.0F; })) {
    return Status::ok();
  }
  const int64_t head_dim = config.find("head_dim")->int_value();
  TRIPTYCH_ASSIGN_OR_RETURN(Json scaling, llama3_scaling(file, *tensor, factors, theta, head_dim));
  config.set("rope_scaling", std::move(scaling));
  return Status::ok();
}

}  // namespace triptych
