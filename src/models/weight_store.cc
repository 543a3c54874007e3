#include "models/weight_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"

namespace triptych {
namespace {

// Rows are packed in blocks of about this size: large enough to keep threads busy, small enough
// that a converted copy does not show in peak memory.
constexpr int64_t kBlockBytes = int64_t{4} << 20;

}  // namespace

Result<std::unique_ptr<WeightStore>> WeightStore::create(WeightLoader& loader,
                                                         const KernelTable& kernels,
                                                         const Stream& stream, bool huge_pages) {
  std::unique_ptr<WeightStore> store(new WeightStore(loader, kernels, stream));
  // Room for every matrix padded to whole panels. Only address space is taken: untouched pages
  // cost nothing.
  uint64_t capacity = 1 << 20;
  for (const TensorInfo& info : loader.checkpoint().tensors()) {
    if (!info.dtype) continue;
    capacity += static_cast<uint64_t>(2 * round_up(row_count(info.shape), kPanelRows) *
                                      (row_elements(info.shape) + 2) * dtype_bytes(*info.dtype)) +
                4096;
  }
  TRIPTYCH_ASSIGN_OR_RETURN(store->memory_, Arena::create(capacity, huge_pages));
  return store;
}

void WeightStore::begin_part(std::string name) { parts_.push_back({std::move(name)}); }

bool WeightStore::has(std::string_view name) const {
  return loader_->checkpoint().find(name) != nullptr;
}

uint64_t WeightStore::n_bytes() const {
  uint64_t total = 0;
  for (const ModelPart& part : parts_) total += part.n_bytes;
  return total;
}

void WeightStore::count(int64_t n_parameters, uint64_t n_bytes, DType dtype, bool matrix) {
  if (parts_.empty()) begin_part("model");
  ModelPart& part = parts_.back();
  part.n_parameters += n_parameters;
  part.n_bytes += n_bytes;
  if (matrix) part.dtype = dtype;
}

Result<DType> WeightStore::matrix_dtype(const TensorInfo& info) const {
  const DType dtype = info.dtype.value_or(DType::kI8);
  if (dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16) return dtype;
  return unsupported(fmt::format("{}: tensor {} holds {} values; weights must be f32, bf16 or f16",
                                 info.file, info.original_name, info.stored_type));
}

Result<PackedWeight> WeightStore::allocate(DType dtype, int64_t n, int64_t k) {
  const size_t n_bytes = packed_weight_bytes(dtype, n, k);
  TRIPTYCH_ASSIGN_OR_RETURN(void* data, memory_.allocate_bytes(n_bytes));
  return PackedWeight{dtype, WeightLayout::kPanel16, n, k, static_cast<std::byte*>(data)};
}

Status WeightStore::pack(const TensorInfo& info, int64_t n_rows, int64_t first_row,
                         int64_t panel_stride, const PackedWeight& dst) {
  const int64_t row_bytes = dst.k * dtype_bytes(dst.dtype);
  const int64_t block =
      std::max(kPanelRows, kBlockBytes / std::max<int64_t>(1, row_bytes) / kPanelRows * kPanelRows);
  std::vector<std::byte> buffer;
  for (int64_t row = 0; row < n_rows; row += block) {
    const int64_t n = std::min(block, n_rows - row);
    TRIPTYCH_ASSIGN_OR_RETURN(const void* rows,
                              loader_->checkpoint().read_rows(info, row, n, buffer));
    kernels_.pack_weight({.src = rows,
                          .n_rows = n,
                          .first_row = first_row + row * panel_stride,
                          .panel_stride = panel_stride,
                          .dst = dst},
                         stream_);
    loader_->checkpoint().release(info, row, n);
  }
  loader_->checkpoint().release(info);
  return Status::ok();
}

Result<Linear> WeightStore::linear(const std::vector<std::string>& prefixes,
                                   const std::vector<int64_t>& n_outs, int64_t k, bool bias) {
  std::vector<const TensorInfo*> sources;
  int64_t n_total = 0;
  for (size_t i = 0; i < prefixes.size(); ++i) {
    TRIPTYCH_ASSIGN_OR_RETURN(const TensorInfo* info,
                              loader_->take(prefixes[i] + ".weight", Shape{n_outs[i], k}));
    sources.push_back(info);
    n_total += n_outs[i];
  }
  TRIPTYCH_ASSIGN_OR_RETURN(const DType dtype, matrix_dtype(*sources[0]));
  TRIPTYCH_ASSIGN_OR_RETURN(PackedWeight weight, allocate(dtype, n_total, k));
  std::vector<float> all_biases;
  int64_t first_row = 0;
  for (size_t i = 0; i < prefixes.size(); ++i) {
    if (sources[i]->dtype != dtype) {
      return unsupported(
          fmt::format("{}: {} is {} but {} is {}; matrices with one input must "
                      "share a number format",
                      sources[i]->file, sources[i]->original_name, sources[i]->stored_type,
                      sources[0]->original_name, sources[0]->stored_type));
    }
    TRIPTYCH_RETURN_IF_ERROR(pack(*sources[i], n_outs[i], first_row, 1, weight));
    first_row += n_outs[i];
    if (bias) {
      TRIPTYCH_ASSIGN_OR_RETURN(const std::vector<float> values,
                                loader_->take_f32(prefixes[i] + ".bias", Shape{n_outs[i]}));
      all_biases.insert(all_biases.end(), values.begin(), values.end());
    }
  }
  count(n_total * k + static_cast<int64_t>(all_biases.size()),
        packed_weight_bytes(dtype, n_total, k) + all_biases.size() * 4, dtype, true);
  return Linear(weight, std::move(all_biases));
}

Result<Linear> WeightStore::flattened(const std::string& prefix, const Shape& shape, bool bias) {
  TRIPTYCH_ASSIGN_OR_RETURN(const TensorInfo* info, loader_->take(prefix + ".weight", shape));
  TRIPTYCH_ASSIGN_OR_RETURN(const DType dtype, matrix_dtype(*info));
  const int64_t n = shape[0];
  const int64_t k = shape.n_elements() / n;
  TRIPTYCH_ASSIGN_OR_RETURN(PackedWeight weight, allocate(dtype, n, k));
  TRIPTYCH_RETURN_IF_ERROR(pack(*info, n, 0, 1, weight));
  std::vector<float> values;
  if (bias) {
    TRIPTYCH_ASSIGN_OR_RETURN(values, loader_->take_f32(prefix + ".bias", Shape{n}));
  }
  count(n * k + static_cast<int64_t>(values.size()),
        packed_weight_bytes(dtype, n, k) + values.size() * 4, dtype, true);
  return Linear(weight, std::move(values));
}

Result<Linear> WeightStore::gated(const std::string& gate, const std::string& up, int64_t n,
                                  int64_t k, bool bias) {
  TRIPTYCH_ASSIGN_OR_RETURN(const TensorInfo* gate_info,
                            loader_->take(gate + ".weight", Shape{n, k}));
  TRIPTYCH_ASSIGN_OR_RETURN(const TensorInfo* up_info, loader_->take(up + ".weight", Shape{n, k}));
  TRIPTYCH_ASSIGN_OR_RETURN(const DType dtype, matrix_dtype(*gate_info));
  if (up_info->dtype != dtype) {
    return unsupported(fmt::format("{}: {} and {} must share a number format", up_info->file,
                                   gate_info->original_name, up_info->original_name));
  }
  const int64_t padded = round_up(n, kPanelRows);
  TRIPTYCH_ASSIGN_OR_RETURN(PackedWeight weight, allocate(dtype, 2 * padded, k));
  TRIPTYCH_RETURN_IF_ERROR(pack(*gate_info, n, 0, 2, weight));
  TRIPTYCH_RETURN_IF_ERROR(pack(*up_info, n, kPanelRows, 2, weight));
  std::vector<float> values;
  if (bias) {
    TRIPTYCH_ASSIGN_OR_RETURN(const auto gate_bias, loader_->take_f32(gate + ".bias", Shape{n}));
    TRIPTYCH_ASSIGN_OR_RETURN(const auto up_bias, loader_->take_f32(up + ".bias", Shape{n}));
    values.assign(static_cast<size_t>(2 * padded), 0.f);
    for (int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<size_t>(i / kPanelRows * 2 * kPanelRows + i % kPanelRows);
      values[at] = gate_bias[static_cast<size_t>(i)];
      values[at + kPanelRows] = up_bias[static_cast<size_t>(i)];
    }
  }
  count(2 * n * k + (bias ? 2 * n : 0),
        packed_weight_bytes(dtype, 2 * padded, k) + values.size() * 4, dtype, true);
  return Linear(weight, std::move(values));
}

Result<Linear> WeightStore::table(const std::string& name, int64_t n, int64_t k) {
  TRIPTYCH_ASSIGN_OR_RETURN(const TensorInfo* info, loader_->take(name, Shape{n, k}));
  TRIPTYCH_ASSIGN_OR_RETURN(const DType dtype, matrix_dtype(*info));
  TRIPTYCH_ASSIGN_OR_RETURN(PackedWeight weight, allocate(dtype, n, k));
  TRIPTYCH_RETURN_IF_ERROR(pack(*info, n, 0, 1, weight));
  count(n * k, packed_weight_bytes(dtype, n, k), dtype, true);
  return Linear(weight, {});
}

Result<std::vector<float>> WeightStore::vector(const std::string& name, const Shape& shape) {
  TRIPTYCH_ASSIGN_OR_RETURN(std::vector<float> values, loader_->take_f32(name, shape));
  count(shape.n_elements(), values.size() * 4, DType::kF32, false);
  return values;
}

}  // namespace triptych
