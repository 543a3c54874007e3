// Any text as a config.json, read through every helper that models use. An accepted value lies in
// the range that was asked for; an error names the file.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "weights/bounded_json.h"
#include "weights/config_reader.h"

namespace {

using triptych::ConfigReader;
using triptych::ConfigSection;

constexpr int64_t kLow = 1;
constexpr int64_t kHigh = 1'000'000;

template <typename T>
void check(const triptych::Result<T>& result) {
  if (result.is_ok()) return;
  const std::string message = result.status().message();
  if (message.find("config.json") == std::string::npos) std::abort();
}

void read_section(const ConfigSection& section) {
  for (std::string_view key : {"hidden_size", "num_hidden_layers", "num_attention_heads"}) {
    const auto v = section.get_int(key, kLow, kHigh);
    check(v);
    if (v.is_ok() && (*v < kLow || *v > kHigh)) std::abort();
  }
  for (std::string_view key : {"num_key_value_heads", "head_dim", "sliding_window"}) {
    check(section.find_int(key, kLow, kHigh));
  }
  check(section.get_number("rms_norm_eps", 0, 1));
  check(section.find_number("layer_norm_eps", 0, 1));
  check(section.get_bool("attention_bias"));
  check(section.get_string("hidden_act"));
  check(section.find_string("projector_hidden_act"));
  check(section.find_ints("eos_token_id", 0, kHigh));
  check(section.find_ints("vision_feature_layer", -100, 100));
  check(section.get_size("image_size", kLow, kHigh));
  const auto rope = triptych::read_rope(section);
  check(rope);
  if (rope.is_ok() && !(rope->theta > 0 && rope->factor > 0)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto json = triptych::parse_bounded_json(text, 500'000);
  if (!json.is_ok()) return 0;
  const auto reader = ConfigReader::create(*json, "config.json");
  check(reader);
  if (!reader.is_ok()) return 0;
  read_section(reader->root());
  for (const auto& part : {reader->text(), reader->vision()}) {
    check(part);
    if (part.is_ok()) read_section(*part);
  }
  check(reader->tied_embeddings());
  check(reader->image_token_id());
  check(reader->dtype());
  return 0;
}
