#include "parity/golden.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "weights/safetensors.h"

namespace triptych::parity {
namespace {

constexpr const char* kRoot = "tests/parity/goldens";

Result<RequestMessage> parse_message(const JsonRef& json, size_t& next_image) {
  RequestMessage message;
  TRIPTYCH_ASSIGN_OR_RETURN(message.role, json.at("role").as_string());
  const JsonRef content = json.at("content");
  if (content.json().is_string()) {
    message.parts.push_back({content.json().string_value(), std::nullopt});
    return message;
  }
  for (size_t i = 0; i < content.size(); ++i) {
    const JsonRef part = content.at(i);
    if (part.at("type").json().string_value() == "image") {
      message.parts.push_back({{}, next_image++});
    } else {
      TRIPTYCH_ASSIGN_OR_RETURN(std::string text, part.at("text").as_string());
      message.parts.push_back({std::move(text), std::nullopt});
    }
  }
  return message;
}

Result<std::vector<int32_t>> parse_ids(const JsonRef& json) {
  TRIPTYCH_ASSIGN_OR_RETURN(const std::vector<int64_t> wide, json.as_ints());
  return std::vector<int32_t>(wide.begin(), wide.end());
}

Result<GoldenRun> parse_run(const JsonRef& json) {
  GoldenRun run;
  TRIPTYCH_ASSIGN_OR_RETURN(run.name, json.at("name").as_string());
  const JsonRef images = json.at("images");
  for (size_t i = 0; i < images.size(); ++i) {
    TRIPTYCH_ASSIGN_OR_RETURN(const std::string path, images.at(i).as_string());
    TRIPTYCH_ASSIGN_OR_RETURN(std::string bytes, read_file(path));
    run.request.media.push_back(
        {Modality::kImage, path, std::make_shared<const std::string>(std::move(bytes))});
  }
  if (json.has("text")) {
    TRIPTYCH_ASSIGN_OR_RETURN(run.request.raw_prompt, json.at("text").as_string());
  }
  const JsonRef messages = json.at("messages");
  size_t next_image = 0;
  for (size_t i = 0; i < messages.size(); ++i) {
    TRIPTYCH_ASSIGN_OR_RETURN(RequestMessage message, parse_message(messages.at(i), next_image));
    run.request.messages.push_back(std::move(message));
  }
  TRIPTYCH_ASSIGN_OR_RETURN(run.prompt_ids, parse_ids(json.at("prompt_ids")));
  TRIPTYCH_ASSIGN_OR_RETURN(run.greedy_ids, parse_ids(json.at("greedy_ids")));
  TRIPTYCH_ASSIGN_OR_RETURN(run.greedy_margins, json.at("greedy_margins").as_numbers());
  const JsonRef spans = json.at("media_spans");
  for (size_t i = 0; i < spans.size(); ++i) {
    TRIPTYCH_ASSIGN_OR_RETURN(const std::vector<int64_t> span, spans.at(i).as_ints());
    run.spans.push_back({span[0], span[1], i});
  }
  TRIPTYCH_ASSIGN_OR_RETURN(run.beyond_max_positions, json.get_bool("beyond_max_positions", false));
  return run;
}

}  // namespace

double Golden::tolerance(const std::string& tap, bool bf16_activations) const {
  const Json& table = *json.find(bf16_activations ? "tolerance_bf16_activations" : "tolerance");
  for (std::string key = tap; !key.empty();) {
    if (const Json* value = table.find(key); value != nullptr) return value->number_value();
    const size_t dot = key.rfind('.');
    key = dot == std::string::npos ? std::string() : key.substr(0, dot);
  }
  return table.find("default")->number_value();
}

std::vector<std::string> golden_folders() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("llava_") || name.starts_with("text_")) out.push_back(name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

Result<std::map<std::string, Values>> read_tensors(const std::string& path) {
  TRIPTYCH_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::open(path));
  std::map<std::string, Values> out;
  for (const SafetensorsEntry& entry : file.entries) {
    if (entry.dtype != DType::kF32) return unsupported(path + ": " + entry.name + " is not f32");
    Values values{entry.shape, std::vector<float>(static_cast<size_t>(entry.n_bytes / 4))};
    std::memcpy(values.data.data(), file.map->bytes().data() + entry.offset, entry.n_bytes);
    out.emplace(entry.name, std::move(values));
  }
  return out;
}

Result<Golden> load_golden(const std::string& folder) {
  Golden golden;
  golden.name = folder;
  const std::string path = std::string(kRoot) + "/" + folder + "/golden.json";
  TRIPTYCH_ASSIGN_OR_RETURN(golden.json, parse_json_file(path));
  const JsonRef json(golden.json, path);
  TRIPTYCH_ASSIGN_OR_RETURN(golden.near_tie, json.at("near_tie").as_number());
  TRIPTYCH_ASSIGN_OR_RETURN(golden.near_tie_bf16, json.at("near_tie_bf16_activations").as_number());
  const JsonRef checkpoints = json.at("checkpoints");
  for (size_t i = 0; i < checkpoints.size(); ++i) {
    TRIPTYCH_ASSIGN_OR_RETURN(std::string checkpoint, checkpoints.at(i).as_string());
    golden.checkpoints.push_back(std::move(checkpoint));
  }
  TRIPTYCH_ASSIGN_OR_RETURN(const std::string tensors, json.at("tensors").as_string());
  TRIPTYCH_ASSIGN_OR_RETURN(const auto all_taps, read_tensors(tensors));
  const JsonRef runs = json.at("runs");
  for (size_t i = 0; i < runs.size(); ++i) {
    TRIPTYCH_ASSIGN_OR_RETURN(GoldenRun run, parse_run(runs.at(i)));
    const std::string prefix = run.name + "/";
    for (const auto& [name, values] : all_taps) {
      if (name.starts_with(prefix)) run.taps.emplace(name.substr(prefix.size()), values);
    }
    golden.runs.push_back(std::move(run));
  }
  return golden;
}

}  // namespace triptych::parity
