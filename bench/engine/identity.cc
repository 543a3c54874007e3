// 100,000 media that nearly are each other, through the identity functions that the engine uses:
// media ids of preparation, feature ids, keys of KV pages. A wrong hit is one key for two things
// whose results differ or that must not be shared. What a key stands for is kept as a digest of
// another kind, and each key is compared with all others.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <unordered_map>

#include "backends/backend_list.h"
#include "base/file.h"
#include "base/thread_pool.h"
#include "cache/content_key_hash.h"
#include "cache/encoder/feature_id.h"
#include "cache/kv/prefix_key.h"
#include "identity_cases.h"
#include "rig.h"

namespace triptych::bench {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kWanted = 100'000;
constexpr int64_t kMediaAtOnce = 16;
constexpr const char* kTenants[] = {"", "tenant 1", "tenant 11"};
constexpr const char* kTowers[] = {"tower", "tower tenant 1"};

/// What a key stands for: 128 bits of FNV-1a over a description.
using Meaning = std::array<uint64_t, 2>;

Meaning meaning_of(std::string_view description) {
  Meaning out = {14695981039346656037u, 1099511628211u};
  for (const char c : description) {
    out[0] = (out[0] ^ static_cast<uint8_t>(c)) * 1099511628211u;
    out[1] = (out[1] ^ static_cast<uint8_t>(c)) * 6364136223846793005u + 1442695040888963407u;
  }
  return out;
}
std::string text_of(const Meaning& meaning) {
  return fmt::format("{:x}.{:x}", meaning[0], meaning[1]);
}

/// All keys so far and what they stand for.
class Keys {
 public:
  void add(const char* family, const MediaId& key, const Meaning& meaning) {
    const auto [found, is_new] = meanings_.try_emplace(key, meaning);
    Counts& counts = families_[family];
    ++counts.n;
    counts.hits += !is_new;
    counts.distinct += distinct_.insert(meaning).second;
    if (is_new || found->second == meaning) return;
    ++counts.wrong;
    ++n_wrong_;
  }
  int64_t n_wrong() const { return n_wrong_; }
  void print() const {
    fmt::print("{:<26}{:>10}{:>18}{:>14}{:>12}\n", "keys", "asked", "distinct results",
               "right hits", "wrong hits");
    for (const auto& [family, counts] : families_) {
      fmt::print("{:<26}{:>10}{:>18}{:>14}{:>12}\n", family, counts.n, counts.distinct,
                 counts.hits - counts.wrong, counts.wrong);
    }
  }

 private:
  struct Counts {
    int64_t n = 0;
    int64_t distinct = 0;  ///< results that no key before stood for
    int64_t hits = 0;
    int64_t wrong = 0;
  };
  std::unordered_map<MediaId, Meaning, ContentKeyHash> meanings_;
  std::set<Meaning> distinct_;
  std::map<std::string, Counts> families_;
  int64_t n_wrong_ = 0;
};

/// A way to preprocess.
struct Way {
  const char* name;
  std::shared_ptr<const Preprocessor> prep;
};

Result<Way> make_way(const char* name, const std::string& model, const std::string& from,
                     const std::string& to, const PrepOptions& options = {}) {
  const fs::path folder = fs::path(model).string() + "-" + name;
  fs::remove_all(folder);
  fs::copy(model, folder, fs::copy_options::recursive | fs::copy_options::create_hard_links);
  const fs::path file = folder / "preprocessor_config.json";
  TRIPTYCH_ASSIGN_OR_RETURN(std::string text, read_file(file));
  for (size_t at = 0; !from.empty() && (at = text.find(from, at)) != std::string::npos;
       at += to.size()) {
    text.replace(at, from.size(), to);
  }
  fs::remove(file);
  TRIPTYCH_RETURN_IF_ERROR(write_file(file, text));
  TRIPTYCH_ASSIGN_OR_RETURN(const auto checkpoint, Checkpoint::open(folder));
  TRIPTYCH_ASSIGN_OR_RETURN(const ModelSpec spec, parse_model_spec(*checkpoint));
  TRIPTYCH_ASSIGN_OR_RETURN(auto prep, Preprocessor::load(*checkpoint, spec, options));
  return Way{name, std::move(prep)};
}

/// A media item under its key, with what the key must stand for.
struct Feature {
  MediaId key;
  Meaning meaning;
};

class Checker {
 public:
  explicit Checker(std::vector<Way> ways) : ways_(std::move(ways)), pool_(1) {}

  /// All files in all ways, for two tenants and two towers.
  Status check(const std::vector<NearFile>& files) {
    for (const Way& way : ways_) {
      for (size_t at = 0; at < files.size(); at += kMediaAtOnce) {
        const size_t n = std::min<size_t>(kMediaAtOnce, files.size() - at);
        TRIPTYCH_RETURN_IF_ERROR(check_in(way, std::span(files).subspan(at, n)));
      }
    }
    return Status::ok();
  }
  int64_t n_media() const { return n_media_; }
  const Keys& media() const { return media_; }
  const Keys& features() const { return features_; }
  const Keys& pages() const { return pages_; }

 private:
  Status check_in(const Way& way, std::span<const NearFile> files) {
    Request request;
    RequestMessage message{"user", {}};
    for (const NearFile& file : files) {
      message.parts.push_back({{}, request.media.size()});
      request.media.push_back(
          {Modality::kImage, file.family, std::make_shared<const std::string>(file.bytes)});
    }
    message.parts.push_back({"what is it?", std::nullopt});
    request.messages.push_back(std::move(message));
    TRIPTYCH_ASSIGN_OR_RETURN(const PreparedRequest prepared,
                              way.prep->prepare(request, 2048, pool_, registry_));
    std::vector<Feature> kept;
    for (size_t i = 0; i < files.size(); ++i) {
      const PreparedMedia& media = *prepared.media[i];
      const View pixels = media.pixels.view();
      const std::string_view bytes(reinterpret_cast<const char*>(pixels.f32()),
                                   static_cast<size_t>(media.pixels.n_bytes()));
      const Meaning meaning = meaning_of(pixels.shape.to_string() + std::string(bytes));
      media_.add(files[i].family, media.id, meaning);
      ++n_media_;
      kept.push_back(check_features(media, meaning));
    }
    return check_pages(prepared, kept);
  }

  /// Other tenants, towers, and sides and frames exchanged. The item of the first tenant.
  Feature check_features(const PreparedMedia& media, const Meaning& pixels) {
    const Shape& shape = media.pixels.view().shape;
    const int64_t sides[][3] = {{1, shape[1], shape[2]},
                                {shape[1], 1, shape[2]},
                                {1, shape[1] * 2, shape[2] / 2},
                                {1, shape[1] / 2, shape[2] * 2}};
    Feature first{};
    for (const char* tenant : kTenants) {
      for (const char* tower : kTowers) {
        for (const auto& [frames, height, width] : sides) {
          const Feature feature{feature_id({media.id, frames, height, width, tower, tenant}),
                                meaning_of(fmt::format("{} {} {} {} {} for {}", text_of(pixels),
                                                       frames, height, width, tower, tenant))};
          features_.add(tenant == kTenants[0] ? "tower, sides, frames" : "tenant", feature.key,
                        feature.meaning);
          if (first.meaning == Meaning{}) first = feature;
        }
      }
    }
    return first;
  }

  /// Pages of prompts that nearly are this one: two media exchanged, a row of text moved from one
  /// page to the next, another tenant, a media run that is one row shorter.
  Status check_pages(const PreparedRequest& prepared, std::vector<Feature> kept) {
    TRIPTYCH_RETURN_IF_ERROR(
        add_pages("pages", {"engine", ""}, prepared.ids, prepared.spans, kept));
    TRIPTYCH_RETURN_IF_ERROR(
        add_pages("pages: tenant", {"engine", "tenant 1"}, prepared.ids, prepared.spans, kept));
    TRIPTYCH_RETURN_IF_ERROR(
        add_pages("pages: tenant", {"enginetenant", " 1"}, prepared.ids, prepared.spans, kept));
    if (kept.size() > 1) {
      std::swap(kept[0], kept[1]);
      TRIPTYCH_RETURN_IF_ERROR(
          add_pages("pages: media order", {"engine", ""}, prepared.ids, prepared.spans, kept));
      std::swap(kept[0], kept[1]);
    }
    std::vector<int32_t> ids = prepared.ids;
    std::vector<Span> spans = prepared.spans;
    ids.insert(ids.begin() + 1, ids[0]);
    for (Span& span : spans) ++span.position;
    TRIPTYCH_RETURN_IF_ERROR(add_pages("pages: text moved", {"engine", ""}, ids, spans, kept));
    spans = prepared.spans;
    --spans.back().length;
    return add_pages("pages: shorter run", {"engine", ""}, prepared.ids, spans, kept);
  }

  /// A page stands for everything from the start of the sequence to its end.
  Status add_pages(const char* family, const PrefixScope& scope, const std::vector<int32_t>& ids,
                   const std::vector<Span>& spans, const std::vector<Feature>& kept) {
    std::vector<MediaRun> runs;
    std::vector<MediaId> keys;
    for (const Span& span : spans) {
      runs.push_back({span.position, span.length, Modality::kImage});
      keys.push_back(kept[span.media].key);
    }
    TRIPTYCH_ASSIGN_OR_RETURN(const PageLayout layout,
                              PageLayout::plan(static_cast<int64_t>(ids.size()), runs));
    PrefixChain chain(root_key(scope));
    TRIPTYCH_RETURN_IF_ERROR(chain.extend(layout, ids, keys));
    std::string story = fmt::format("{}/{}", scope.model, scope.tenant);
    for (int64_t page = 0; page < chain.size(); ++page) {
      const int64_t run = layout.run(page);
      for (int64_t at = layout.begin(page); at < layout.begin(page + 1); ++at) {
        if (run < 0) {
          story += fmt::format(" {}", ids[static_cast<size_t>(at)]);
        } else {
          const auto r = static_cast<size_t>(run);
          story += fmt::format(" [{} {}]", text_of(kept[spans[r].media].meaning),
                               at - spans[r].position);
        }
      }
      const Meaning meaning = meaning_of(story);
      pages_.add(family, chain.key(page), meaning);
      story = text_of(meaning);
    }
    return Status::ok();
  }

  std::vector<Way> ways_;
  ThreadPool pool_;
  TensorRegistry registry_;
  int64_t n_media_ = 0;
  Keys media_;
  Keys features_;
  Keys pages_;
};

Status run(const std::string& model, const std::string& pictures_folder) {
  std::vector<Way> ways;
  PrepOptions dark;
  dark.decode.background = {0, 0, 0};
  PrepOptions almost_white;
  almost_white.decode.background = {255, 255, 254};
  const auto add = [&](const char* name, const std::string& from, const std::string& to,
                       const PrepOptions& options = {}) -> Status {
    TRIPTYCH_ASSIGN_OR_RETURN(Way way, make_way(name, model, from, to, options));
    ways.push_back(std::move(way));
    return Status::ok();
  };
  TRIPTYCH_RETURN_IF_ERROR(add("plain", "", ""));
  TRIPTYCH_RETURN_IF_ERROR(add("dark", "", "", dark));
  TRIPTYCH_RETURN_IF_ERROR(add("almost-white", "", "", almost_white));
  TRIPTYCH_RETURN_IF_ERROR(add("bilinear", "\"resample\": 3", "\"resample\": 2"));
  TRIPTYCH_RETURN_IF_ERROR(add("other-mean", "0.5", "0.5000001"));
  // The same number in another spelling: right hits, to see that equal things do meet.
  TRIPTYCH_RETURN_IF_ERROR(add("same-scale", "0.00392156862745098", "0.0039215686274509802"));

  Checker checker(std::move(ways));
  TRIPTYCH_ASSIGN_OR_RETURN(const std::vector<MediaItem> pictures, load_pictures(pictures_folder));
  for (const MediaItem& picture : pictures) {
    if (!picture.name.ends_with(".jpg")) continue;
    TRIPTYCH_RETURN_IF_ERROR(checker.check(near_orientations(*picture.bytes)));
  }
  for (uint32_t seed = 0; checker.n_media() < kWanted; ++seed) {
    TRIPTYCH_RETURN_IF_ERROR(checker.check(near_files(seed)));
  }
  fmt::print("{} media\n\nmedia ids\n", checker.n_media());
  checker.media().print();
  fmt::print("\nfeature ids\n");
  checker.features().print();
  fmt::print("\nKV pages\n");
  checker.pages().print();
  fmt::print("RESULT {{\"wrong_hits\": {}}}\n",
             checker.media().n_wrong() + checker.features().n_wrong() + checker.pages().n_wrong());
  return Status::ok();
}

}  // namespace
}  // namespace triptych::bench

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: engine_identity_bench CHECKPOINT PICTURES\n");
    return 2;
  }
  return triptych::bench::exit_code(triptych::bench::run(argv[1], argv[2]));
}
