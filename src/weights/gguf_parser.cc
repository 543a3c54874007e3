#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_set>

#include "base/checked.h"
#include "weights/gguf.h"

namespace triptych {

/// Reads the head of a GGUF file front to back. Each read names the field it is for, so that a cut
/// or hostile file gives an error about that field.
class GgufParser {
 public:
  GgufParser(std::span<const std::byte> file, std::string path) : file_(file) {
    out_.path_ = std::move(path);
    out_.bytes_ = file;
  }

  Result<GgufFile> parse() {
    TRIPTYCH_RETURN_IF_ERROR(read_preamble());
    for (uint64_t i = 0; i < n_keys_; ++i) TRIPTYCH_RETURN_IF_ERROR(read_key_value(i));
    TRIPTYCH_RETURN_IF_ERROR(read_alignment());
    out_.tensors_.reserve(n_tensors_);
    for (uint64_t i = 0; i < n_tensors_; ++i) TRIPTYCH_RETURN_IF_ERROR(read_tensor(i));
    TRIPTYCH_RETURN_IF_ERROR(place_tensors());
    return std::move(out_);
  }

 private:
  using Kind = GgufFile::Kind;

  Status corrupt(std::string_view field, std::string_view what) const {
    return data_loss(fmt::format("{}: {}: {}", out_.path_, field, what));
  }
  uint64_t remaining() const { return file_.size() - at_; }

  Result<std::span<const std::byte>> take(uint64_t n, std::string_view field) {
    if (n > remaining()) {
      return corrupt(field, fmt::format("needs {} bytes at byte {}, the file has {} more (cut "
                                        "short?)",
                                        n, at_, remaining()));
    }
    const auto out = file_.subspan(at_, n);
    at_ += n;
    return out;
  }
  template <typename T>
  Result<T> number(std::string_view field) {
    TRIPTYCH_ASSIGN_OR_RETURN(const auto bytes, take(sizeof(T), field));
    T v;
    std::memcpy(&v, bytes.data(), sizeof v);
    return v;
  }
  Result<std::string_view> string(uint64_t limit, std::string_view field) {
    TRIPTYCH_ASSIGN_OR_RETURN(const auto length, number<uint64_t>(field));
    if (length > limit) {
      return corrupt(field, fmt::format("{} bytes long, the limit is {}", length, limit));
    }
    TRIPTYCH_ASSIGN_OR_RETURN(const auto bytes, take(length, field));
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  Status read_preamble() {
    TRIPTYCH_ASSIGN_OR_RETURN(const auto magic, take(4, "magic"));
    if (std::memcmp(magic.data(), "GGUF", 4) != 0) {
      return data_loss(out_.path_ + ": is no GGUF file (it does not start with \"GGUF\")");
    }
    TRIPTYCH_ASSIGN_OR_RETURN(const auto version, number<uint32_t>("version"));
    if (version != 2 && version != 3) {
      const bool swapped = version >= (1u << 24) && (version & 0x00ffffffu) == 0;
      return unsupported(fmt::format("{}: GGUF version {}{}; versions 2 and 3 are read", out_.path_,
                                     swapped ? version >> 24 : version,
                                     swapped ? " in big-endian order" : ""));
    }
    TRIPTYCH_ASSIGN_OR_RETURN(n_tensors_, number<uint64_t>("tensor count"));
    TRIPTYCH_ASSIGN_OR_RETURN(n_keys_, number<uint64_t>("metadata count"));
    if (n_tensors_ > kMaxGgufTensors) {
      return corrupt("tensor count",
                     fmt::format("{} is over the limit of {}", n_tensors_, kMaxGgufTensors));
    }
    if (n_keys_ > kMaxGgufKeys) {
      return corrupt("metadata count",
                     fmt::format("{} is over the limit of {}", n_keys_, kMaxGgufKeys));
    }
    // Shortest tensor entry: name length, one byte of name, axes, one size, type, offset.
    constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;
    if (n_tensors_ > remaining() / kMinTensorBytes) {
      return corrupt("tensor count",
                     fmt::format("{} tensors do not fit the file (cut short?)", n_tensors_));
    }
    return Status::ok();
  }

  Status read_key_value(uint64_t index) {
    const std::string where = fmt::format("metadata key {}", index);
    TRIPTYCH_ASSIGN_OR_RETURN(const std::string_view key, string(kMaxGgufNameBytes, where));
    if (key.empty()) return corrupt(where, "is empty");
    const std::string field = "metadata \"" + std::string(key.substr(0, 200)) + "\"";
    TRIPTYCH_ASSIGN_OR_RETURN(const auto kind, number<uint32_t>(field));
    GgufFile::Value value;
    TRIPTYCH_ASSIGN_OR_RETURN(value.kind, checked_kind(kind, field));
    if (value.kind == Kind::kArray) {
      TRIPTYCH_RETURN_IF_ERROR(read_array(field, value));
    } else if (value.kind == Kind::kString) {
      TRIPTYCH_ASSIGN_OR_RETURN(const std::string_view text, string(UINT64_MAX, field));
      value.payload = std::as_bytes(std::span(text.data(), text.size()));
    } else {
      TRIPTYCH_ASSIGN_OR_RETURN(value.payload, take(GgufFile::scalar_bytes(value.kind), field));
    }
    if (!out_.values_.emplace(std::string(key), value).second) return corrupt(field, "given twice");
    return Status::ok();
  }

  Result<Kind> checked_kind(uint32_t kind, const std::string& field) const {
    if (kind > static_cast<uint32_t>(Kind::kF64)) {
      return corrupt(field, fmt::format("unknown value type {}", kind));
    }
    return static_cast<Kind>(kind);
  }

  Status read_array(const std::string& field, GgufFile::Value& value) {
    TRIPTYCH_ASSIGN_OR_RETURN(const auto kind, number<uint32_t>(field));
    TRIPTYCH_ASSIGN_OR_RETURN(value.element, checked_kind(kind, field));
    TRIPTYCH_ASSIGN_OR_RETURN(value.count, number<uint64_t>(field));
    if (value.element == Kind::kArray) return corrupt(field, "is an array of arrays");
    if (value.count > kMaxGgufArrayElements) {
      return corrupt(field, fmt::format("{} elements are over the limit of {}", value.count,
                                        kMaxGgufArrayElements));
    }
    const uint64_t begin = at_;
    if (value.element == Kind::kString) {
      for (uint64_t i = 0; i < value.count; ++i) {
        TRIPTYCH_RETURN_IF_ERROR(string(UINT64_MAX, field).status());
      }
    } else {
      const uint64_t n_bytes = value.count * GgufFile::scalar_bytes(value.element);
      TRIPTYCH_RETURN_IF_ERROR(take(n_bytes, field).status());
    }
    value.payload = file_.subspan(begin, at_ - begin);
    return Status::ok();
  }

  Status read_alignment() {
    TRIPTYCH_ASSIGN_OR_RETURN(const auto given,
                              out_.find_int("general.alignment", 1, int64_t{1} << 20));
    alignment_ = static_cast<uint64_t>(given.value_or(32));
    if (!std::has_single_bit(alignment_)) {
      return corrupt("general.alignment", fmt::format("{} is no power of two", alignment_));
    }
    return Status::ok();
  }

  Status read_tensor(uint64_t index) {
    const std::string where = fmt::format("name of tensor {}", index);
    TRIPTYCH_ASSIGN_OR_RETURN(const std::string_view name, string(kMaxGgufNameBytes, where));
    if (name.empty()) return corrupt(where, "is empty");
    GgufTensor t;
    t.name = name;
    const std::string field = "tensor \"" + std::string(name.substr(0, 200)) + "\"";
    if (!names_.insert(t.name).second) return corrupt(field, "given twice");
    TRIPTYCH_RETURN_IF_ERROR(read_shape(field, t));
    TRIPTYCH_ASSIGN_OR_RETURN(const auto type, number<uint32_t>(field));
    t.type = static_cast<GgmlType>(type);
    TRIPTYCH_ASSIGN_OR_RETURN(t.offset, number<uint64_t>(field));
    if (t.offset % alignment_ != 0) {
      return corrupt(
          field, fmt::format("offset {} is no multiple of the alignment {}", t.offset, alignment_));
    }
    TRIPTYCH_RETURN_IF_ERROR(set_size(field, t));
    out_.tensors_.push_back(std::move(t));
    return Status::ok();
  }

  Status read_shape(const std::string& field, GgufTensor& t) {
    constexpr uint32_t kMaxAxes = 4;
    TRIPTYCH_ASSIGN_OR_RETURN(const auto n_axes, number<uint32_t>(field));
    if (n_axes < 1 || n_axes > kMaxAxes) {
      return corrupt(field, fmt::format("{} axes, expected 1 to {}", n_axes, kMaxAxes));
    }
    std::array<uint64_t, kMaxAxes> sizes{};
    uint64_t product = 1;
    for (uint32_t axis = 0; axis < n_axes; ++axis) {
      TRIPTYCH_ASSIGN_OR_RETURN(sizes[axis], number<uint64_t>(field));
      if (sizes[axis] == 0) return corrupt(field, fmt::format("axis {} has size 0", axis));
      const auto next = checked_mul(product, sizes[axis]);
      // Shape arithmetic is done in int64_t from here on.
      if (!next || *next > static_cast<uint64_t>(INT64_MAX) / 64) {
        return corrupt(field, "its shape is larger than any memory");
      }
      product = *next;
    }
    for (uint32_t axis = n_axes; axis-- > 0;) t.shape.push_back(static_cast<int64_t>(sizes[axis]));
    return Status::ok();
  }

  Status set_size(const std::string& field, GgufTensor& t) const {
    const std::optional<GgmlBlock> block = ggml_block(t.type);
    if (!block) return Status::ok();  // named when a model asks for it
    const auto row = static_cast<uint64_t>(t.shape[t.shape.rank() - 1]);
    if (row % block->n_elements != 0) {
      return corrupt(field, fmt::format("rows of {} elements are no multiple of {}'s block of {}",
                                        row, ggml_type_name(t.type), block->n_elements));
    }
    t.n_bytes = static_cast<uint64_t>(t.shape.n_elements()) / block->n_elements * block->n_bytes;
    return Status::ok();
  }

  /// Turns offsets into places in the file, within it and without overlap.
  Status place_tensors() {
    const uint64_t data_begin = (at_ + alignment_ - 1) / alignment_ * alignment_;
    const uint64_t data_bytes = data_begin <= file_.size() ? file_.size() - data_begin : 0;
    std::vector<const GgufTensor*> order;
    for (GgufTensor& t : out_.tensors_) {
      if (t.offset > data_bytes || t.n_bytes > data_bytes - t.offset) {
        return corrupt(
            "tensor \"" + t.name.substr(0, 200) + "\"",
            fmt::format("{} bytes at offset {} do not lie within the {} bytes of data that the "
                        "file holds (cut short?)",
                        t.n_bytes, t.offset, data_bytes));
      }
      t.offset += data_begin;
      order.push_back(&t);
    }
    std::sort(order.begin(), order.end(), [](const GgufTensor* a, const GgufTensor* b) {
      return a->offset != b->offset ? a->offset < b->offset : a->n_bytes < b->n_bytes;
    });
    for (size_t i = 1; i < order.size(); ++i) {
      if (order[i]->offset < order[i - 1]->offset + order[i - 1]->n_bytes) {
        return corrupt("tensor \"" + order[i]->name.substr(0, 200) + "\"",
                       fmt::format("overlaps tensor \"{}\"", order[i - 1]->name.substr(0, 200)));
      }
    }
    return Status::ok();
  }

  std::span<const std::byte> file_;
  uint64_t at_ = 0;
  uint64_t n_tensors_ = 0;
  uint64_t n_keys_ = 0;
  uint64_t alignment_ = 32;
  std::unordered_set<std::string> names_;
  GgufFile out_;
};

Result<GgufFile> GgufFile::parse(std::span<const std::byte> file, std::string path) {
  return GgufParser(file, std::move(path)).parse();
}

}  // namespace triptych
