#include "backends/cpu/linear_plan.h"

#include "base/checked.h"

namespace triptych {
namespace {

// Panels that many strips walk over stay in the second-level cache: K is cut where they would not.
// So do the packed rows of one unit of work where K is whole.
constexpr int64_t kPanelCacheBytes = 256 << 10;
constexpr int64_t kRowCacheBytes = 512 << 10;

/// One strip: as many panels a chunk as the kernel takes, fewer where that shares them evenly
/// among the threads. Many strips: the size that is best for products.
int64_t choose_chunk(const Plan& plan, int threads) {
  const LinearKernels& kernels = *plan.kernels;
  int64_t chunk = kernels.gemm_panels;
  if (plan.n_strips == 1) {
    chunk = kernel_panels(kernels, row_class(kernels, plan.args->m), kMaxPanels);
    const int64_t rounds = ceil_div(plan.n_panels, threads * chunk);
    chunk = ceil_div(plan.n_panels, threads * rounds);
  } else if (kernels.strip_k > 0) {  // evenly
    chunk = round_up(ceil_div(plan.n_panels, ceil_div(plan.n_panels, chunk)), 2);
  }
  return plan.args->gated ? round_up(chunk, 2) : chunk;
}

/// A multiple of 64, as every kernel's chunk divides it, or all of K.
int64_t choose_k_block(const Plan& plan) {
  const int64_t k = plan.args->w.k;
  const int64_t n_blocks = plan.kernels->strip_k > 0
                               ? ceil_div(k, plan.kernels->strip_k)
                               : ceil_div(plan.chunk * plan.panel_bytes, kPanelCacheBytes);
  if (plan.n_strips == 1 || n_blocks == 1) return k;
  return round_up(ceil_div(k, n_blocks), 64);
}

int64_t choose_strips_per_block(const Plan& plan, int threads) {
  const int64_t most = plan.cuts_k() ? plan.kernels->unit_floats / plan.strip_floats()
                                     : kRowCacheBytes / (plan.max_strip_rows() * plan.row_bytes(0));
  int64_t strips = std::clamp<int64_t>(most, 1, plan.n_strips);
  while (strips > 1 && plan.n_chunks * ceil_div(plan.n_strips, strips) <
                           plan.kernels->units_per_thread * threads) {
    strips = ceil_div(strips, 2);
  }
  return strips;
}

}  // namespace

int row_class(const LinearKernels& kernels, int64_t rows) {
  return static_cast<int>(ceil_div(rows, kernels.row_quantum));
}

int kernel_panels(const LinearKernels& kernels, int row_class, int64_t most) {
  int panels = static_cast<int>(std::min<int64_t>(most, kMaxPanels));
  while (kernels.micro[static_cast<size_t>(row_class)][static_cast<size_t>(panels)] == nullptr) {
    --panels;
  }
  return panels;
}

Plan make_plan(const LinearKernels& kernels, const LinearArgs& args, int threads) {
  Plan plan{};
  plan.kernels = &kernels;
  plan.args = &args;
  plan.strips = static_cast<const std::byte*>(args.scratch);
  plan.quanta = ceil_div(args.m, kernels.row_quantum);
  plan.n_strips = ceil_div(plan.quanta, kernels.max_row_classes);
  plan.n_panels = ceil_div(args.w.n, kPanelRows);
  plan.panel_bytes = static_cast<int64_t>(packed_weight_bytes(args.w.dtype, kPanelRows, args.w.k));
  plan.chunk = choose_chunk(plan, threads);
  plan.n_chunks = ceil_div(plan.n_panels, plan.chunk);
  plan.k_block = choose_k_block(plan);
  plan.strips_per_block = choose_strips_per_block(plan, threads);
  plan.n_units = plan.n_chunks * ceil_div(plan.n_strips, plan.strips_per_block);
  return plan;
}

Block first_block(const Plan& plan, int64_t unit) {
  const int64_t strip = unit / plan.n_chunks * plan.strips_per_block;
  const int64_t panel = unit % plan.n_chunks * plan.chunk;
  return {.first_strip = strip,
          .last_strip = std::min(plan.n_strips, strip + plan.strips_per_block),
          .panel0 = panel,
          .panels = std::min(plan.chunk, plan.n_panels - panel),
          .k0 = 0};
}

}  // namespace triptych
