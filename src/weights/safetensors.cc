#include "weights/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "base/checked.h"
#include "base/json.h"
#include "weights/bounded_json.h"

namespace triptych {
namespace {

struct TypeRow {
  std::string_view name;
  uint64_t bits;
  std::optional<DType> dtype;
};

// All types of the format, so that sizes are checked for those too that no model of ours binds.
constexpr std::array kTypes = {
    TypeRow{"F32", 32, DType::kF32},
    TypeRow{"BF16", 16, DType::kBF16},
    TypeRow{"F16", 16, DType::kF16},
    TypeRow{"I32", 32, DType::kI32},
    TypeRow{"I8", 8, DType::kI8},
    TypeRow{"U8", 8, DType::kU8},
    TypeRow{"F64", 64, std::nullopt},
    TypeRow{"I64", 64, std::nullopt},
    TypeRow{"U64", 64, std::nullopt},
    TypeRow{"U32", 32, std::nullopt},
    TypeRow{"I16", 16, std::nullopt},
    TypeRow{"U16", 16, std::nullopt},
    TypeRow{"BOOL", 8, std::nullopt},
    TypeRow{"C64", 64, std::nullopt},
    TypeRow{"F8_E4M3", 8, std::nullopt},
    TypeRow{"F8_E5M2", 8, std::nullopt},
    TypeRow{"F8_E8M0", 8, std::nullopt},
    TypeRow{"F8_E4M3FNUZ", 8, std::nullopt},
    TypeRow{"F8_E5M2FNUZ", 8, std::nullopt},
    TypeRow{"F6_E2M3", 6, std::nullopt},
    TypeRow{"F6_E3M2", 6, std::nullopt},
    TypeRow{"F4", 4, std::nullopt},
};

const TypeRow* find_type(std::string_view name) {
  const auto* row =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeRow& t) { return t.name == name; });
  return row == kTypes.end() ? nullptr : row;
}

/// Names of files come from outside: a message shows a bounded part of them.
std::string shown(std::string_view name) {
  return name.size() <= 200 ? std::string(name) : std::string(name.substr(0, 200)) + "...";
}

class HeaderReader {
 public:
  HeaderReader(const std::string& path, uint64_t data_begin, uint64_t data_bytes)
      : path_(path), data_begin_(data_begin), data_bytes_(data_bytes) {}

  Result<SafetensorsEntry> read(const std::string& name, const Json& value) const {
    SafetensorsEntry out;
    out.name = name;
    const Json* type = value.find("dtype");
    const Json* shape = value.find("shape");
    const Json* offsets = value.find("data_offsets");
    if (type == nullptr || !type->is_string()) return error(name, "dtype is missing or no string");
    if (shape == nullptr || !shape->is_array()) return error(name, "shape is missing or no list");
    if (offsets == nullptr || !offsets->is_array()) {
      return error(name, "data_offsets is missing or no list");
    }
    out.type = type->string_value();
    TRIPTYCH_ASSIGN_OR_RETURN(out.shape, read_shape(name, *shape));
    TRIPTYCH_RETURN_IF_ERROR(read_offsets(*offsets, out));
    TRIPTYCH_RETURN_IF_ERROR(check_size(out));
    return out;
  }

  /// Tensors tile the data without gap: an overlap would let one tensor alias another, a hole
  /// could hide bytes (both are errors of the format).
  Status check_tiling(const std::vector<SafetensorsEntry>& entries) const {
    std::vector<const SafetensorsEntry*> order;
    order.reserve(entries.size());
    for (const SafetensorsEntry& e : entries) order.push_back(&e);
    std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
      return a->offset != b->offset ? a->offset < b->offset : a->n_bytes < b->n_bytes;
    });
    uint64_t end = data_begin_;
    const SafetensorsEntry* previous = nullptr;
    for (const SafetensorsEntry* e : order) {
      if (e->offset < end) {
        return error(e->name, fmt::format("overlaps tensor \"{}\"", shown(previous->name)));
      }
      if (e->offset > end) {
        return error(e->name,
                     fmt::format("a hole of {} bytes lies in front of it", e->offset - end));
      }
      end += e->n_bytes;
      previous = e;
    }
    if (end != data_begin_ + data_bytes_) {
      return data_loss(fmt::format("{}: the header's tensors end at byte {}, the file at byte {}",
                                   path_, end, data_begin_ + data_bytes_));
    }
    return Status::ok();
  }

 private:
  Status error(const std::string& name, std::string_view what) const {
    return data_loss(fmt::format("{}: tensor \"{}\": {}", path_, shown(name), what));
  }

  Result<Shape> read_shape(const std::string& name, const Json& value) const {
    Shape shape;
    if (value.elements().size() > static_cast<size_t>(kMaxRank)) {
      return error(name,
                   fmt::format("{} axes, at most {} are read", value.elements().size(), kMaxRank));
    }
    for (const Json& dim : value.elements()) {
      if (!dim.is_int() || dim.int_value() < 0) {
        return error(name, "shape holds something other than sizes from 0 up");
      }
      shape.push_back(dim.int_value());
    }
    return shape;
  }

  Status read_offsets(const Json& value, SafetensorsEntry& out) const {
    const std::vector<Json>& pair = value.elements();
    if (pair.size() != 2 || !pair[0].is_int() || !pair[1].is_int()) {
      return error(out.name, "data_offsets is not a pair of integers [begin, end]");
    }
    const int64_t begin = pair[0].int_value();
    const int64_t end = pair[1].int_value();
    if (begin < 0 || end < begin || static_cast<uint64_t>(end) > data_bytes_) {
      return error(out.name, fmt::format("data_offsets [{}, {}] do not lie within the {} bytes of "
                                         "data that the file holds (is it cut short?)",
                                         begin, end, data_bytes_));
    }
    out.offset = data_begin_ + static_cast<uint64_t>(begin);
    out.n_bytes = static_cast<uint64_t>(end - begin);
    return Status::ok();
  }

  Status check_size(SafetensorsEntry& out) const {
    // A zero-sized axis counts as one here: the other axes must stay in range of their own.
    std::optional<uint64_t> bound = 1;
    for (int axis = 0; axis < out.shape.rank() && bound; ++axis) {
      bound = checked_mul(*bound, std::max<uint64_t>(1, static_cast<uint64_t>(out.shape[axis])));
    }
    // Shape arithmetic is done in int64_t from here on.
    if (!bound || *bound > static_cast<uint64_t>(INT64_MAX) / 64) {
      return error(out.name,
                   fmt::format("shape {} is larger than any memory", out.shape.to_string()));
    }
    const TypeRow* type = find_type(out.type);
    // A type that the format gets one day: its size is unknown, its name is told when it is bound.
    if (type == nullptr) return Status::ok();
    out.dtype = type->dtype;
    const uint64_t n_bits = static_cast<uint64_t>(out.shape.n_elements()) * type->bits;
    if (n_bits % 8 != 0 || n_bits / 8 != out.n_bytes) {
      return error(out.name,
                   fmt::format("expected {} bytes for {} of shape {}, found {}", (n_bits + 7) / 8,
                               out.type, out.shape.to_string(), out.n_bytes));
    }
    return Status::ok();
  }

  const std::string& path_;
  uint64_t data_begin_;
  uint64_t data_bytes_;
};

Result<uint64_t> header_length(std::span<const std::byte> file, const std::string& path) {
  constexpr std::string_view kLfsPointer = "version https://git-lfs";
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (text.starts_with(kLfsPointer)) {
    return data_loss(path + ": is a Git LFS pointer, not the file itself (run git lfs pull)");
  }
  if (file.size() < 8) {
    return data_loss(
        fmt::format("{}: {} bytes are too few for a safetensors file", path, file.size()));
  }
  uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);  // little-endian, as all our targets
  if (length > kMaxSafetensorsHeaderBytes) {
    return out_of_range(
        fmt::format("{}: header claims {} bytes, the limit is {} (or this is no "
                    "safetensors file)",
                    path, length, kMaxSafetensorsHeaderBytes));
  }
  if (length > file.size() - 8) {
    return data_loss(fmt::format("{}: header claims {} bytes, the file holds {} (cut short?)", path,
                                 length, file.size() - 8));
  }
  return length;
}

}  // namespace

Result<std::vector<SafetensorsEntry>> parse_safetensors(std::span<const std::byte> file,
                                                        const std::string& path) {
  TRIPTYCH_ASSIGN_OR_RETURN(const uint64_t length, header_length(file, path));
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + 8, length);
  Result<Json> header = parse_bounded_json(text, kMaxSafetensorsHeaderValues);
  if (!header.is_ok()) return header.status().with_context(path + ": header");
  if (!header->is_object()) return data_loss(path + ": header is no JSON object");

  const HeaderReader reader(path, 8 + length, file.size() - 8 - length);
  std::vector<SafetensorsEntry> entries;
  for (const auto& [name, value] : header->members()) {
    if (name == "__metadata__") continue;
    if (name.empty()) return data_loss(path + ": a tensor has an empty name");
    TRIPTYCH_ASSIGN_OR_RETURN(SafetensorsEntry entry, reader.read(name, value));
    entries.push_back(std::move(entry));
  }
  TRIPTYCH_RETURN_IF_ERROR(reader.check_tiling(entries));
  return entries;
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  SafetensorsFile out;
  TRIPTYCH_ASSIGN_OR_RETURN(out.map, MappedFile::open(path));
  TRIPTYCH_ASSIGN_OR_RETURN(out.entries, parse_safetensors(out.map->bytes(), path));
  return out;
}

}  // namespace triptych
