#include "weights/hf_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/file.h"
#include "weights/bounded_json.h"
#include "weights/name_map.h"
#include "weights/safetensors.h"
#include "weights/tensor_list.h"

namespace triptych {
namespace {

constexpr uint64_t kMaxConfigBytes = 16 << 20;
constexpr uint64_t kMaxConfigValues = 500'000;
constexpr uint64_t kMaxIndexBytes = 100'000'000;
constexpr uint64_t kMaxIndexValues = 2'000'000;

constexpr std::string_view kSingleFile = "model.safetensors";
constexpr std::string_view kIndexFile = "model.safetensors.index.json";

Result<Json> read_json(const std::string& path, uint64_t max_bytes, uint64_t max_values) {
  TRIPTYCH_ASSIGN_OR_RETURN(const std::string text, read_file(path, max_bytes));
  Result<Json> json = parse_bounded_json(text, max_values);
  if (!json.is_ok()) return json.status().with_context(path);
  if (!json->is_object()) return invalid_argument(path + ": expected a JSON object");
  return json;
}

class HfFolder : public Checkpoint {
 public:
  static Result<std::unique_ptr<Checkpoint>> open(const std::string& folder) {
    std::unique_ptr<HfFolder> out(new HfFolder);
    out->path_ = folder;
    out->config_source_ = folder + "/config.json";
    TRIPTYCH_ASSIGN_OR_RETURN(out->config_,
                              read_json(out->config_source_, kMaxConfigBytes, kMaxConfigValues));
    const std::string generation = out->generation_config_source();
    if (file_exists(generation)) {
      TRIPTYCH_ASSIGN_OR_RETURN(out->generation_config_,
                                read_json(generation, kMaxConfigBytes, kMaxConfigValues));
    }
    TRIPTYCH_RETURN_IF_ERROR(out->open_weights());
    return std::unique_ptr<Checkpoint>(std::move(out));
  }

 protected:
  Result<const void*> read_checked(const TensorInfo& info, int64_t first_row, int64_t n_rows,
                                   std::vector<std::byte>& buffer) const override {
    const Place& place = places_[index_of(info)];
    const auto element = static_cast<uint64_t>(dtype_bytes(*info.dtype));
    const uint64_t row_bytes = static_cast<uint64_t>(row_elements(info.shape)) * element;
    const std::byte* rows =
        place.map->bytes().data() + place.offset + static_cast<uint64_t>(first_row) * row_bytes;
    // Headers of odd length (old writers) and odd-sized neighbours leave tensors unaligned.
    if (reinterpret_cast<uintptr_t>(rows) % element == 0) return rows;
    buffer.resize(static_cast<uint64_t>(n_rows) * row_bytes);
    std::memcpy(buffer.data(), rows, buffer.size());
    return buffer.data();
  }
  StoredBytes stored_bytes(const TensorInfo& info) const override {
    const Place& place = places_[index_of(info)];
    return {place.map.get(), place.offset, place.n_bytes};
  }

 private:
  struct Place {
    std::shared_ptr<const MappedFile> map;
    uint64_t offset;
    uint64_t n_bytes;
  };

  HfFolder() = default;

  std::string in_folder(std::string_view file) const { return fmt::format("{}/{}", path_, file); }

  Status open_weights() {
    std::vector<Place> places;
    if (file_exists(in_folder(kSingleFile))) {
      TRIPTYCH_ASSIGN_OR_RETURN(SafetensorsFile file,
                                SafetensorsFile::open(in_folder(kSingleFile)));
      for (SafetensorsEntry& e : file.entries) add(file, e, places);
    } else if (file_exists(in_folder(kIndexFile))) {
      TRIPTYCH_RETURN_IF_ERROR(open_shards(places));
    } else {
      return no_weights();
    }
    note_other_files();
    TRIPTYCH_ASSIGN_OR_RETURN(const std::vector<size_t> order, sort_by_name(tensors_));
    for (size_t i : order) places_.push_back(std::move(places[i]));
    return Status::ok();
  }

  void add(const SafetensorsFile& file, SafetensorsEntry& entry, std::vector<Place>& places) {
    places.push_back({file.map, entry.offset, entry.n_bytes});
    tensors_.push_back({.name = canonical_name(entry.name),
                        .original_name = std::move(entry.name),
                        .stored_type = std::move(entry.type),
                        .dtype = entry.dtype,
                        .shape = entry.shape,
                        .n_bytes = entry.n_bytes,
                        .file = file.map->path()});
  }

  /// weight_map of the index: shard -> names. std::map, so that shards open in order.
  Result<std::map<std::string, std::set<std::string>>> read_index() const {
    const std::string path = in_folder(kIndexFile);
    TRIPTYCH_ASSIGN_OR_RETURN(const Json index, read_json(path, kMaxIndexBytes, kMaxIndexValues));
    const JsonRef weight_map = JsonRef(index, path).at("weight_map");
    if (!weight_map.json().is_object()) return weight_map.error("expected an object");
    std::map<std::string, std::set<std::string>> shards;
    for (const auto& [name, file] : weight_map.json().members()) {
      // A name, never a path: "../x" or "/x" would read outside of the checkpoint.
      const std::string& shard = file.string_value();
      if (!file.is_string() || shard.find_first_of("/\\") != std::string::npos ||
          !shard.ends_with(".safetensors") || shard.find('\0') != std::string::npos) {
        return weight_map.error(fmt::format(
            "\"{}\": expected the name of a .safetensors file in the same folder, found {}",
            name.substr(0, 200), file.dump().substr(0, 200)));
      }
      shards[shard].insert(name);
    }
    if (shards.empty()) return weight_map.error("lists no tensor");
    return shards;
  }

  Status open_shards(std::vector<Place>& places) {
    using ShardMap = std::map<std::string, std::set<std::string>>;
    TRIPTYCH_ASSIGN_OR_RETURN(const ShardMap shards, read_index());
    for (const auto& [shard, names] : shards) {
      if (!file_exists(in_folder(shard))) {
        return not_found(fmt::format("{}: is not there, and {} places {} tensors in it",
                                     in_folder(shard), kIndexFile, names.size()));
      }
      TRIPTYCH_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(in_folder(shard)));
      size_t found = 0;
      for (SafetensorsEntry& e : file.entries) {
        if (names.count(e.name) == 0) {
          notes_.push_back(fmt::format("{}: tensor \"{}\" is ignored: {} does not place it here",
                                       shard, e.name, kIndexFile));
          continue;
        }
        add(file, e, places);
        ++found;
      }
      if (found != names.size()) return missing_in_shard(shard, names);
    }
    note_stale_shards(shards);
    return Status::ok();
  }

  Status missing_in_shard(const std::string& shard, const std::set<std::string>& names) const {
    std::set<std::string> present;
    for (const TensorInfo& t : tensors_) {
      if (t.file == in_folder(shard)) present.insert(t.original_name);
    }
    std::string first;
    for (const std::string& name : names) {
      if (present.count(name) == 0 && first.empty()) first = name;
    }
    return data_loss(fmt::format(
        "{}: tensor \"{}\" is not in it, though {} places it there ({} of "
        "{} such tensors are missing)",
        in_folder(shard), first, kIndexFile, names.size() - present.size(), names.size()));
  }

  template <typename Shards>
  void note_stale_shards(const Shards& shards) {
    for (const std::string& name : file_names()) {
      if (name.starts_with("model-") && name.ends_with(".safetensors") && shards.count(name) == 0) {
        notes_.push_back(fmt::format("{} is ignored: {} does not list it", name, kIndexFile));
      }
    }
  }

  void note_other_files() {
    for (const std::string& name : file_names()) {
      if (name.starts_with("consolidated") && name.ends_with(".safetensors")) {
        notes_.push_back(name + " is ignored: it holds the same weights in another layout");
      }
    }
  }

  Status no_weights() const {
    const std::vector<std::string> names = file_names();
    const auto any = [&](auto&& test) { return std::any_of(names.begin(), names.end(), test); };
    if (any([](const std::string& n) { return n.starts_with("adapter_model."); })) {
      return unsupported(path_ + ": holds an adapter, not a model: merge it into its base model");
    }
    if (any([](const std::string& n) {
          return n.starts_with("pytorch_model") || n.ends_with(".bin") || n.ends_with(".pth");
        })) {
      return unsupported(path_ +
                         ": holds its weights only as pytorch .bin files, which can run "
                         "code: convert them to safetensors");
    }
    if (any([](const std::string& n) {
          return n.starts_with("consolidated") && n.ends_with(".safetensors");
        })) {
      return unsupported(path_ +
                         ": holds only consolidated.safetensors, which has another layout: "
                         "take the Hugging Face shards of the model");
    }
    return not_found(fmt::format("{}: has neither {} nor {}", path_, kSingleFile, kIndexFile));
  }

  std::vector<std::string> file_names() const {
    std::vector<std::string> names;
    std::error_code failure;
    std::filesystem::directory_iterator it(path_, failure);
    for (; !failure && it != std::filesystem::directory_iterator(); it.increment(failure)) {
      names.push_back(it->path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  std::vector<Place> places_;
};

}  // namespace

Result<std::unique_ptr<Checkpoint>> open_hf_folder(const std::string& folder) {
  return HfFolder::open(folder);
}

}  // namespace triptych
