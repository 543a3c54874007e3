#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "core/tensor.h"

namespace triptych {

/// Limits of a GGUF file beyond what its own size bounds. Real files have some 50 keys, a few
/// hundred tensors and 300,000 tokens.
constexpr uint64_t kMaxGgufKeys = 65'536;
constexpr uint64_t kMaxGgufTensors = 100'000;
constexpr uint64_t kMaxGgufNameBytes = 65'535;
constexpr uint64_t kMaxGgufArrayElements = 16'000'000;

/// Number formats of GGUF tensors that we read; other values of the enumeration stay numbers.
enum class GgmlType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ8_0 = 8,
  kBF16 = 30,
};

/// "Q4_1"; "type 99" for a number that we have no name for.
std::string ggml_type_name(GgmlType type);
/// True for the types that the enumeration lists.
bool ggml_type_is_read(GgmlType type);

struct GgmlBlock {
  uint64_t n_elements;  ///< along the innermost axis
  uint64_t n_bytes;
};
/// How a type stores its elements, or nothing for an unknown one.
std::optional<GgmlBlock> ggml_block(GgmlType type);

/// One tensor of a GGUF file.
struct GgufTensor {
  std::string name;
  GgmlType type = GgmlType::kF32;
  Shape shape;          ///< outermost axis first: GGUF's own order reversed
  uint64_t offset = 0;  ///< of the first byte, from the start of the file
  uint64_t n_bytes = 0;
};

/// The parsed head of a GGUF file (versions 2 and 3, little-endian): metadata and tensor list.
/// Every count, length and offset is checked against the file before it is used, so nothing points
/// outside of it and parsing takes memory in proportion to the metadata. Borrows the bytes.
/// Format: docs/gguf.md of the ggml repository.
class GgufFile {
 public:
  /// kDataLoss or kOutOfRange naming `path` and the field at fault; kUnsupported for version 1 and
  /// big-endian files.
  static Result<GgufFile> parse(std::span<const std::byte> file, std::string path);

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const GgufTensor* find_tensor(std::string_view name) const;

  /// Whether the metadata has `key`.
  bool has(std::string_view key) const { return find(key) != nullptr; }
  /// Metadata values: nothing when the key is absent, kInvalidArgument naming path and key for a
  /// value of another kind or out of range. Integers may be stored in any integer type.
  Result<std::optional<int64_t>> find_int(std::string_view key, int64_t low, int64_t high) const;
  Result<std::optional<double>> find_number(std::string_view key) const;
  Result<std::optional<bool>> find_bool(std::string_view key) const;
  Result<std::optional<std::string>> find_string(std::string_view key) const;
  /// Arrays; empty when the key is absent.
  Result<std::vector<std::string>> find_strings(std::string_view key) const;
  Result<std::vector<float>> find_floats(std::string_view key) const;
  Result<std::vector<int32_t>> find_ints(std::string_view key) const;

  /// kInvalidArgument "<path>: <key>: <what>".
  Status error(std::string_view key, std::string_view what) const;

 private:
  friend class GgufParser;
  enum class Kind : uint32_t {
    kU8,
    kI8,
    kU16,
    kI16,
    kU32,
    kI32,
    kF32,
    kBool,
    kString,
    kArray,
    kU64,
    kI64,
    kF64
  };
  struct Value {
    Kind kind = Kind::kU8;
    Kind element = Kind::kU8;  ///< of an array
    uint64_t count = 1;        ///< elements of an array
    std::span<const std::byte> payload;
  };

  GgufFile() = default;
  const Value* find(std::string_view key) const;
  static uint64_t scalar_bytes(Kind kind);
  static std::string_view kind_name(Kind kind);
  static std::optional<int64_t> as_int(Kind kind, const std::byte* at);

  std::string path_;
  std::span<const std::byte> bytes_;
  std::unordered_map<std::string, Value> values_;
  std::vector<GgufTensor> tensors_;
};

}  // namespace triptych
