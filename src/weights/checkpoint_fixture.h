#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weights/gguf.h"

namespace triptych {

/// For tests: a folder of its own that goes away with the object.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  /// Writes a file and returns its path.
  std::string write(const std::string& name, std::string_view bytes) const;

 private:
  std::string path_;
};

/// For tests: a tensor to be written.
struct FixtureTensor {
  std::string name;
  std::string type;  ///< as safetensors spells it
  std::vector<int64_t> shape;
  std::string bytes;
};

/// Values as the bytes of a type.
std::string f32_bytes(const std::vector<float>& values);
std::string bf16_bytes(const std::vector<float>& values);
std::string f16_bytes(const std::vector<float>& values);

/// A well-formed safetensors file.
std::string safetensors_bytes(const std::vector<FixtureTensor>& tensors);
/// A safetensors file of any header and data.
std::string safetensors_raw(std::string_view header, std::string_view data);

/// For tests: writes GGUF files, well-formed ones and (through raw parts) others.
class GgufWriter {
 public:
  GgufWriter& key_u32(std::string_view key, uint32_t v);
  GgufWriter& key_f32(std::string_view key, float v);
  GgufWriter& key_bool(std::string_view key, bool v);
  GgufWriter& key_string(std::string_view key, std::string_view v);
  GgufWriter& key_strings(std::string_view key, const std::vector<std::string>& v);
  GgufWriter& key_floats(std::string_view key, const std::vector<float>& v);
  GgufWriter& key_ints(std::string_view key, const std::vector<int32_t>& v);
  /// A key with its value type and value given as bytes.
  GgufWriter& key_raw(std::string_view key, uint32_t type, std::string_view value);
  /// `sizes` in GGUF's order, innermost first; the tensor's data follows the one before it.
  GgufWriter& tensor(std::string_view name, GgmlType type, const std::vector<uint64_t>& sizes,
                     std::string_view data);
  /// A tensor entry at any offset, without data.
  GgufWriter& tensor_entry(std::string_view name, uint32_t type, const std::vector<uint64_t>& sizes,
                           uint64_t offset);
  /// Sets the counts of the preamble to something other than what was written.
  GgufWriter& claim(uint64_t n_tensors, uint64_t n_keys);

  std::string bytes(uint32_t version = 3) const;

 private:
  std::string keys_, tensors_, data_;
  uint64_t n_keys_ = 0;
  uint64_t n_tensors_ = 0;
  bool claimed_ = false;
  uint64_t claimed_tensors_ = 0;
  uint64_t claimed_keys_ = 0;
};

/// Writes the smallest llama that the reader takes (2 layers, hidden 32, 2 heads, 1 kv head of 16,
/// inner 64, vocabulary 8), weights of `type` counting up from small values, without an output
/// tensor.
GgufWriter tiny_llama_gguf(GgmlType type);

}  // namespace triptych
