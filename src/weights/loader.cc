#include "weights/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace triptych {
namespace {

bool is_float(DType t) { return t == DType::kF32 || t == DType::kBF16 || t == DType::kF16; }

/// Whether `text` matches `pattern`, in which '*' stands for any run of characters. Linear in
/// memory and at worst quadratic in time: on a mismatch only the last star is tried again.
bool matches(std::string_view pattern, std::string_view text) {
  size_t p = 0;
  size_t t = 0;
  size_t star = std::string_view::npos;
  size_t star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

/// The spelling of the file beside the canonical one, where they differ.
std::string both_names(const TensorInfo& t) {
  if (t.name == t.original_name) return fmt::format("\"{}\"", t.name);
  return fmt::format("\"{}\" ({})", t.original_name, t.name);
}

void widen(const void* from, DType dtype, float* to, size_t n) {
  if (dtype == DType::kF32) {
    std::copy_n(static_cast<const float*>(from), n, to);
    return;
  }
  const auto* halves = static_cast<const uint16_t*>(from);
  for (size_t i = 0; i < n; ++i) {
    to[i] = dtype == DType::kBF16 ? bf16_to_f32(halves[i]) : f16_to_f32(halves[i]);
  }
}

}  // namespace

WeightLoader::WeightLoader(const Checkpoint& checkpoint)
    : checkpoint_(checkpoint), bound_(checkpoint.tensors().size(), false) {}

Status WeightLoader::missing(std::string_view name, const Shape& shape) const {
  // Bounds the search in files with very many or very long names; a hint is all it gives.
  constexpr size_t kMaxNames = 20'000;
  constexpr size_t kMaxLength = 200;
  constexpr size_t kShown = 3;
  std::vector<std::pair<size_t, const TensorInfo*>> near;
  const auto& tensors = checkpoint_.tensors();
  for (size_t i = 0; i < std::min(tensors.size(), kMaxNames); ++i) {
    if (tensors[i].name.size() > kMaxLength || bound_[i]) continue;
    const size_t distance = edit_distance(name, tensors[i].name);
    if (distance <= std::max<size_t>(3, name.size() / 4)) near.emplace_back(distance, &tensors[i]);
  }
  std::stable_sort(near.begin(), near.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string hint;
  for (size_t i = 0; i < std::min(near.size(), kShown); ++i) {
    hint += fmt::format("{}{}", i == 0 ? "; near it: " : ", ", both_names(*near[i].second));
  }
  return invalid_argument(fmt::format("{}: tensor \"{}\" of shape {} is missing{}",
                                      checkpoint_.path(), name, shape.to_string(), hint));
}

Result<const TensorInfo*> WeightLoader::take(std::string_view name, const Shape& shape) {
  const TensorInfo* tensor = checkpoint_.find(name);
  if (tensor == nullptr) return missing(name, shape);
  const auto index = static_cast<size_t>(tensor - checkpoint_.tensors().data());
  if (bound_[index]) return internal_error(fmt::format("tensor \"{}\" is bound twice", name));
  if (!tensor->dtype || !is_float(*tensor->dtype)) {
    return unsupported(
        fmt::format("{}: tensor {}: expected a stored type of f32, bf16 or f16{}, "
                    "found {}",
                    tensor->file, both_names(*tensor),
                    checkpoint_.is_gguf() ? ", Q8_0, Q4_0 or Q4_1" : "", tensor->stored_type));
  }
  if (!(tensor->shape == shape)) {
    return invalid_argument(fmt::format("{}: tensor {}: expected shape {}, found {}", tensor->file,
                                        both_names(*tensor), shape.to_string(),
                                        tensor->shape.to_string()));
  }
  bound_[index] = true;
  return tensor;
}

Result<const TensorInfo*> WeightLoader::take_optional(std::string_view name, const Shape& shape) {
  if (!has(name)) return static_cast<const TensorInfo*>(nullptr);
  return take(name, shape);
}

Result<std::vector<float>> WeightLoader::take_f32(std::string_view name, const Shape& shape) {
  TRIPTYCH_ASSIGN_OR_RETURN(const TensorInfo* tensor, take(name, shape));
  std::vector<std::byte> buffer;
  TRIPTYCH_ASSIGN_OR_RETURN(const void* data,
                            checkpoint_.read_rows(*tensor, 0, row_count(shape), buffer));
  std::vector<float> out(static_cast<size_t>(shape.n_elements()));
  widen(data, *tensor->dtype, out.data(), out.size());
  return out;
}

Result<std::vector<float>> WeightLoader::take_f32_optional(std::string_view name,
                                                           const Shape& shape) {
  if (!has(name)) return std::vector<float>();
  return take_f32(name, shape);
}

void WeightLoader::ignore(std::string pattern, std::string reason) {
  patterns_.push_back({std::move(pattern), std::move(reason)});
}

Status WeightLoader::finish() {
  ignored_.clear();
  std::vector<const TensorInfo*> left;
  const auto& tensors = checkpoint_.tensors();
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (bound_[i]) continue;
    const auto pattern = std::find_if(patterns_.begin(), patterns_.end(), [&](const Pattern& p) {
      return matches(p.text, tensors[i].name);
    });
    if (pattern != patterns_.end()) {
      ignored_.push_back({&tensors[i], pattern->reason});
    } else {
      left.push_back(&tensors[i]);
    }
  }
  if (left.empty()) return Status::ok();
  constexpr size_t kShown = 5;
  std::string names;
  for (size_t i = 0; i < std::min(left.size(), kShown); ++i) {
    names += fmt::format("{}{} {} {}", i == 0 ? "" : ", ", both_names(*left[i]),
                         left[i]->stored_type, left[i]->shape.to_string());
  }
  return invalid_argument(fmt::format("{}: {} tensor{} no part of the model takes: {}{}",
                                      checkpoint_.path(), left.size(), left.size() == 1 ? "" : "s",
                                      names, left.size() > kShown ? ", ..." : ""));
}

}  // namespace triptych
