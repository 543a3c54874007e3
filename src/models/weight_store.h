#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"
#include "models/layers/linear_layer.h"
#include "ops/kernel_table.h"
#include "weights/loader.h"

namespace triptych {

/// A named share of a model's weights, for `triptych inspect` and the memory plan.
struct ModelPart {
  std::string name;  ///< "vision_tower", "projector", "decoder", "lm_head"
  int64_t n_parameters = 0;
  uint64_t n_bytes = 0;
  DType dtype = DType::kF32;  ///< of its largest matrices
};

/// Binds a checkpoint's tensors and packs matrices into one block of (huge) pages in the layout
/// that the backend's kernels read. Tensors stream through in row blocks, so that loading never
/// holds the weights twice.
class WeightStore {
 public:
  /// `loader` and `kernels` must outlive the building of the model, not the store itself.
  static Result<std::unique_ptr<WeightStore>> create(WeightLoader& loader,
                                                     const KernelTable& kernels,
                                                     const Stream& stream, bool huge_pages);

  /// Weights bound from here on count towards this part.
  void begin_part(std::string name);

  /// One matrix, or several with the same input fused along the output: names are prefixes
  /// ("text.layers.0.self_attn.q_proj"), n_outs their output sizes, k the input size. With
  /// `bias`, every prefix has a ".bias".
  Result<Linear> linear(const std::vector<std::string>& prefixes,
                        const std::vector<int64_t>& n_outs, int64_t k, bool bias);
  /// A weight of more axes flattened to [n, k]: a convolution used as a patch embedding.
  Result<Linear> flattened(const std::string& prefix, const Shape& shape, bool bias);
  /// Gate and up interleaved in panels of 16 rows; rows beyond n are zero.
  Result<Linear> gated(const std::string& gate, const std::string& up, int64_t n, int64_t k,
                       bool bias);
  /// A table of rows [n, k] used for embedding and, when tied, as the head.
  Result<Linear> table(const std::string& name, int64_t n, int64_t k);
  /// A vector or small tensor as f32 (norm weights, biases, positions).
  Result<std::vector<float>> vector(const std::string& name, const Shape& shape);
  bool has(std::string_view name) const;

  WeightLoader& loader() { return *loader_; }
  const std::vector<ModelPart>& parts() const { return parts_; }
  /// Bytes of weights in memory.
  uint64_t n_bytes() const;
  /// Ends building: drops the borrowed loader.
  void seal() { loader_ = nullptr; }

 private:
  WeightStore(WeightLoader& loader, const KernelTable& kernels, const Stream& stream)
      : loader_(&loader), kernels_(kernels), stream_(stream) {}
  Result<PackedWeight> allocate(DType dtype, int64_t n, int64_t k);
  Status pack(const TensorInfo& info, int64_t n_rows, int64_t first_row, int64_t panel_stride,
              const PackedWeight& dst);
  Result<DType> matrix_dtype(const TensorInfo& info) const;
  void count(int64_t n_parameters, uint64_t n_bytes, DType dtype, bool matrix);

  WeightLoader* loader_;
  KernelTable kernels_;
  Stream stream_;
  Arena memory_;
  std::vector<ModelPart> parts_;
};

}  // namespace triptych
