#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "core/dtype.h"
#include "core/tensor.h"

namespace triptych {

/// Largest header that is read, the limit of the format's own library.
constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;
/// Bounds the memory that a header's JSON may take once parsed (about 200 MB); a header holds some
/// eight values a tensor.
constexpr uint64_t kMaxSafetensorsHeaderValues = 2'000'000;

/// One tensor of a safetensors file.
struct SafetensorsEntry {
  std::string name;
  std::string type;            ///< as the header spells it
  std::optional<DType> dtype;  ///< nothing for a type that we do not read
  Shape shape;
  uint64_t offset = 0;  ///< of the first byte, from the start of the file
  uint64_t n_bytes = 0;
};

/// Reads and checks the header of a whole safetensors file given as bytes: header length within
/// file and limit, JSON without duplicate names, offsets in range and without overlap or hole,
/// bytes equal to shape x type (for every type of the format, also those that we do not read).
/// Nothing in the result points outside of `file`. kDataLoss or kOutOfRange naming `path`, tensor,
/// expected and found. Format: the README of the safetensors repository.
Result<std::vector<SafetensorsEntry>> parse_safetensors(std::span<const std::byte> file,
                                                        const std::string& path);

/// A mapped safetensors file with its entries, in the header's order.
struct SafetensorsFile {
  std::shared_ptr<const MappedFile> map;
  std::vector<SafetensorsEntry> entries;

  static Result<SafetensorsFile> open(const std::string& path);
};

}  // namespace triptych
