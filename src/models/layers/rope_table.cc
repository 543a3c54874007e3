#include "models/layers/rope_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace triptych {
namespace {

constexpr double kPi = 3.14159265358979323846;

std::vector<float> default_frequencies(double theta, int64_t dim) {
  std::vector<float> out;
  for (int64_t i = 0; i < dim; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(dim);
    out.push_back(1.0f / std::pow(static_cast<float>(theta), exponent));
  }
  return out;
}

/// Llama 3.1: long wavelengths are divided by `factor`, short ones kept, those between blended.
void scale_llama3(const RopeConfig& config, std::vector<float>& inv_freq) {
  const auto old_context = static_cast<float>(config.original_max_position_embeddings);
  const auto factor = static_cast<float>(config.factor);
  const auto low = static_cast<float>(config.low_freq_factor);
  const auto high = static_cast<float>(config.high_freq_factor);
  for (float& f : inv_freq) {
    const float wavelength = 2.0f * static_cast<float>(kPi) / f;
    if (wavelength < old_context / high) continue;
    if (wavelength > old_context / low) {
      f /= factor;
      continue;
    }
    const float smooth = (old_context / wavelength - low) / (high - low);
    f = (1 - smooth) * f / factor + smooth * f;
  }
}

/// YaRN: a ramp over the dimensions from extrapolation (kept) to interpolation (divided).
void scale_yarn(const RopeConfig& config, int64_t dim, std::vector<float>& inv_freq) {
  const auto correction = [&](double rotations) {
    const auto context = static_cast<double>(config.original_max_position_embeddings);
    return static_cast<double>(dim) * std::log(context / (rotations * 2 * kPi)) /
           (2 * std::log(config.theta));
  };
  double low = correction(config.beta_fast);
  double high = correction(config.beta_slow);
  if (config.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(dim - 1));
  if (low == high) high += 0.001;
  for (size_t i = 0; i < inv_freq.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    const auto keep = static_cast<float>(1.0 - ramp);
    const float divided = inv_freq[i] / static_cast<float>(config.factor);
    inv_freq[i] = divided * (1.0f - keep) + inv_freq[i] * keep;
  }
}

double yarn_scale(double factor, double mscale) {
  return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

double yarn_attention_factor(const RopeConfig& config) {
  if (config.attention_factor) return *config.attention_factor;
  const double mscale = config.mscale.value_or(0);
  const double all_dim = config.mscale_all_dim.value_or(0);
  if (mscale != 0 && all_dim != 0) {
    return yarn_scale(config.factor, mscale) / yarn_scale(config.factor, all_dim);
  }
  return yarn_scale(config.factor, 1.0);
}

}  // namespace

Result<RopeSpec> make_rope_spec(const RopeConfig& config, int64_t head_dim,
                                const std::string& source) {
  // transformers rotates whole heads for type "default", whatever partial_rotary_factor says.
  const double factor = config.type == RopeType::kDefault ? 1.0 : config.partial_rotary_factor;
  const auto dim = static_cast<int64_t>(static_cast<double>(head_dim) * factor);
  if (dim < 2 || dim % 2 != 0 || dim > head_dim) {
    return invalid_argument(fmt::format(
        "{}: {} rotary dimensions in heads of {}: need an even number from 2 to the head size",
        source, dim, head_dim));
  }
  RopeSpec spec;
  spec.theta = config.theta;
  spec.inv_freq = default_frequencies(config.theta, dim);
  switch (config.type) {
    case RopeType::kDefault:
      break;
    case RopeType::kDynamic:
      spec.type = "dynamic";
      break;
    case RopeType::kLinear:
      spec.type = "linear";
      for (float& f : spec.inv_freq) f /= static_cast<float>(config.factor);
      break;
    case RopeType::kLlama3:
      spec.type = "llama3";
      scale_llama3(config, spec.inv_freq);
      break;
    case RopeType::kYarn:
      spec.type = "yarn";
      scale_yarn(config, dim, spec.inv_freq);
      spec.attention_factor = static_cast<float>(yarn_attention_factor(config));
      break;
  }
  return spec;
}

Result<RopeTable> make_rope_table(const OpContext& ctx, const RopeSpec& spec,
                                  const int32_t* positions, int64_t n_rows) {
  const auto half = static_cast<int64_t>(spec.inv_freq.size());
  RopeTable table;
  TRIPTYCH_ASSIGN_OR_RETURN(table.cos, ctx.scratch->allocate(DType::kF32, Shape{n_rows, half}));
  TRIPTYCH_ASSIGN_OR_RETURN(table.sin, ctx.scratch->allocate(DType::kF32, Shape{n_rows, half}));
  float* cos = table.cos.f32();
  float* sin = table.sin.f32();
  ctx.stream.pool->parallel_for(n_rows, 64, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t i = 0; i < half; ++i) {
        const float angle =
            static_cast<float>(positions[row]) * spec.inv_freq[static_cast<size_t>(i)];
        cos[row * half + i] = std::cos(angle) * spec.attention_factor;
        sin[row * half + i] = std::sin(angle) * spec.attention_factor;
      }
    }
  });
  return table;
}

}  // namespace triptych
