#pragma once

#include "core/tensor.h"
#include "ops/op_context.h"

namespace triptych {

/// How a weight matrix [N, K] lies in memory. New layouts (int8, int4 blocks) are added here; all
/// that users of Linear see is N and K.
enum class WeightLayout : uint8_t {
  /// Panels of 16 rows of N: f32 and f16 as [ceil(N/16)][K][16], bf16 as
  /// [ceil(N/16)][ceil(K/2)][16][2] (pairs along K, as AVX512-BF16 and AMX read them). Missing rows
  /// and the odd K are zero.
  kPanel16,
};
constexpr int64_t kPanelRows = 16;

/// A weight matrix in the layout its kernels read. Borrowed memory, 64-byte aligned.
struct PackedWeight {
  DType dtype = DType::kF32;
  WeightLayout layout = WeightLayout::kPanel16;
  int64_t n = 0;  ///< output features
  int64_t k = 0;  ///< input features
  std::byte* data = nullptr;
};

/// Bytes of a packed [n, k] weight.
size_t packed_weight_bytes(DType dtype, int64_t n, int64_t k);

/// Copies dense rows [n_rows, k] into a packed weight. Row r goes to packed row
/// `first_row + (r / 16) * 16 * panel_stride + r % 16`: panel_stride 1 appends whole matrices one
/// after another (fused q, k, v), 2 interleaves panels of two matrices (fused gate and up).
/// With panel_stride 1 any n_rows and first_row; with 2, first_row is a multiple of 16.
struct PackWeightArgs {
  const void* src;  ///< [n_rows, k] dense, of `dst.dtype`
  int64_t n_rows;
  int64_t first_row;
  int64_t panel_stride;
  PackedWeight dst;
};

enum class Activation : uint8_t { kNone, kGeluErf, kGeluTanh, kQuickGelu, kSilu, kRelu };

/// out = act(x w^T + bias) + residual. With `gated`, w holds gate and up in interleaved panels
/// (N = 2 F, F a multiple of 16), bias (if any) is in the packed rows' order too, and
/// out [M, F] = act(gate) * up.
struct LinearArgs {
  const float* x;  ///< [M, K], row stride ldx
  int64_t ldx;
  int64_t m;
  PackedWeight w;
  const float* bias;      ///< [N] or null
  const float* residual;  ///< [M, N], row stride ld_residual, or null; may be `out`
  int64_t ld_residual;
  float* out;  ///< [M, N] (gated: [M, N / 2]), row stride ldo
  int64_t ldo;
  Activation act;
  bool gated;
  MatmulMode mode;  ///< kBF16 only with bf16 weights
  void* scratch;    ///< linear_scratch_bytes(m, k, mode), 64-byte aligned
};

/// Workspace of one call: the activations in the form that the kernels read.
size_t linear_scratch_bytes(int64_t m, int64_t k, MatmulMode mode);

/// Optional parts of a linear call.
struct LinearOptions {
  const float* bias = nullptr;
  const View* residual = nullptr;  ///< [M, N] f32; may be the output
  Activation act = Activation::kNone;
  bool gated = false;
};

/// x [M, K] f32, out [M, N] f32 (gated: [M, N/2]). The result of a row depends on that row alone:
/// not on M, on the rows beside it or on the number of threads.
/// kInternal naming shapes when they disagree, kResourceExhausted when scratch is too small.
Status linear(const OpContext& ctx, const View& x, const PackedWeight& w,
              const LinearOptions& options, const View& out);

OpCost linear_cost(int64_t m, const PackedWeight& w);

}  // namespace triptych
