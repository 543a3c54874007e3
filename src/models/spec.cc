#include "models/spec.h"

#include <fmt/format.h>

#include <algorithm>

namespace triptych {

int64_t VisionSpec::n_blocks_run() const {
  int64_t most = 0;
  for (int64_t layer : feature_layers) most = std::max(most, layer);
  return most;
}

Result<int64_t> ModelSpec::image_tokens(int64_t pixel_width, int64_t pixel_height) const {
  if (!vision) return invalid_argument(fmt::format("a {} model takes no pictures", model_type));
  if (pixel_width != vision->image_size || pixel_height != vision->image_size) {
    return invalid_argument(fmt::format(
        "preprocessing gives {}x{} pixels, but the vision tower takes {}x{} only; check size and "
        "crop_size in preprocessor_config.json",
        pixel_width, pixel_height, vision->image_size, vision->image_size));
  }
  return vision->n_features();
}

int64_t ModelSpec::kv_bytes_per_token(DType kv_dtype) const {
  return 2 * text.n_layers * text.n_kv_heads * text.head_dim * dtype_bytes(kv_dtype);
}

Result<Activation> parse_activation(const std::string& name, const std::string& source) {
  if (name == "gelu") return Activation::kGeluErf;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new" || name == "gelu_fast") {
    return Activation::kGeluTanh;
  }
  if (name == "quick_gelu") return Activation::kQuickGelu;
  if (name == "silu" || name == "swish") return Activation::kSilu;
  if (name == "relu") return Activation::kRelu;
  return unsupported(fmt::format(
      "{}: activation \"{}\" is not supported; known: gelu, gelu_pytorch_tanh, gelu_new, "
      "gelu_fast, quick_gelu, silu, relu",
      source, name));
}

}  // namespace triptych
