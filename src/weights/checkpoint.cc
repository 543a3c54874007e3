#include "weights/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "weights/gguf_checkpoint.h"
#include "weights/hf_folder.h"

namespace triptych {

int64_t row_elements(const Shape& shape) {
  int64_t n = 1;
  for (int axis = 1; axis < shape.rank(); ++axis) n *= shape[axis];
  return n;
}

int64_t row_count(const Shape& shape) { return shape.rank() == 0 ? 1 : shape[0]; }

Result<std::unique_ptr<Checkpoint>> Checkpoint::open(const std::string& path,
                                                     const CheckpointOptions& options) {
  if (directory_exists(path)) return open_hf_folder(path);
  if (!file_exists(path)) {
    return not_found(path + ": there is no such model folder or GGUF file");
  }
  if (path.ends_with(".safetensors")) {
    return invalid_argument(path +
                            ": is a part of a model: give the folder that holds it and its "
                            "config.json");
  }
  return open_gguf(path, options);
}

const TensorInfo* Checkpoint::find(std::string_view name) const {
  const auto it = std::lower_bound(
      tensors_.begin(), tensors_.end(), name,
      [](const TensorInfo& t, std::string_view wanted) { return t.name < wanted; });
  return it != tensors_.end() && it->name == name ? &*it : nullptr;
}

uint64_t Checkpoint::total_bytes() const {
  uint64_t total = 0;
  for (const TensorInfo& t : tensors_) total += t.n_bytes;
  return total;
}

Result<const void*> Checkpoint::read_rows(const TensorInfo& info, int64_t first_row, int64_t n_rows,
                                          std::vector<std::byte>& buffer) const {
  if (!info.dtype) {
    return unsupported(fmt::format("{}: tensor \"{}\" is stored as {}, which we do not read",
                                   info.file, info.original_name, info.stored_type));
  }
  const int64_t rows = row_count(info.shape);
  if (first_row < 0 || n_rows < 0 || first_row > rows || n_rows > rows - first_row) {
    return internal_error(fmt::format("{}: rows {}+{} asked of a tensor of shape {}", info.name,
                                      first_row, n_rows, info.shape.to_string()));
  }
  return read_checked(info, first_row, n_rows, buffer);
}

void Checkpoint::release(const TensorInfo& info, int64_t first_row, int64_t n_rows) const {
  const StoredBytes stored = stored_bytes(info);
  const int64_t rows = row_count(info.shape);
  if (rows == 0) return;
  const auto row_bytes = static_cast<int64_t>(stored.n_bytes / static_cast<uint64_t>(rows));
  const int64_t begin = std::clamp<int64_t>(first_row, 0, rows);
  const int64_t n = std::clamp<int64_t>(n_rows, 0, rows - begin);
  stored.map->release(stored.offset + static_cast<uint64_t>(begin * row_bytes),
                      static_cast<uint64_t>(n * row_bytes));
}

}  // namespace triptych
