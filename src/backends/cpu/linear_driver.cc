#include "backends/cpu/linear_driver.h"

#include <algorithm>
#include <atomic>

#include "base/checked.h"

namespace triptych {
namespace {

// Below these sizes one thread is faster than waking the others.
constexpr int64_t kSerialPackElements = 32 << 10;
constexpr int64_t kSerialMacs = 16 << 10;
// Packed rows that one unit of work walks: they stay in the second-level cache.
constexpr int64_t kBlockBytes = 512 << 10;
// Units of work a thread, so that one that is held up leaves its share to the others.
constexpr int64_t kUnitsPerThread = 4;

/// How one call is cut: rows into strips of at most one kernel's height and blocks of strips,
/// columns into chunks of panels. A unit of work is a block against a chunk.
struct Plan {
  const LinearKernels* kernels;
  const LinearArgs* args;
  const std::byte* strips;  ///< packed x
  int64_t row_bytes;        ///< of packed x
  int64_t quanta;
  int64_t n_strips;
  int64_t strips_per_block;
  int64_t n_panels;
  int64_t panel_bytes;
  int64_t chunk;  ///< panels
  int64_t n_chunks;
  int64_t n_units;

  int64_t first_row(int64_t strip) const {
    return std::min(args->m, quanta * strip / n_strips * kernels->row_quantum);
  }
  const std::byte* panel(int64_t p) const { return args->w.data + p * panel_bytes; }
  const std::byte* chunk_of_unit(int64_t unit) const { return panel(unit % n_chunks * chunk); }
};

int row_class(const LinearKernels& kernels, int64_t rows) {
  return static_cast<int>(ceil_div(rows, kernels.row_quantum));
}

/// The most panels, at most `most`, that a kernel takes at once.
int kernel_panels(const LinearKernels& kernels, int row_class, int64_t most) {
  int panels = static_cast<int>(std::min<int64_t>(most, kMaxPanels));
  while (kernels.micro[static_cast<size_t>(row_class)][static_cast<size_t>(panels)] == nullptr) {
    --panels;
  }
  return panels;
}

/// One strip: as many panels a chunk as the kernel takes, fewer where that shares them evenly
/// among the threads. Many strips: the size that is best for products.
int64_t choose_chunk(const Plan& plan, int threads) {
  const LinearKernels& kernels = *plan.kernels;
  int64_t chunk = kernels.gemm_panels;
  if (plan.n_strips == 1) {
    chunk = kernel_panels(kernels, row_class(kernels, plan.args->m), kMaxPanels);
    const int64_t rounds = ceil_div(plan.n_panels, threads * chunk);
    chunk = ceil_div(plan.n_panels, threads * rounds);
  }
  return plan.args->gated ? round_up(chunk, 2) : chunk;
}

Plan make_plan(const LinearKernels& kernels, const LinearArgs& args, int threads) {
  Plan plan{};
  plan.kernels = &kernels;
  plan.args = &args;
  plan.strips = static_cast<const std::byte*>(args.scratch);
  plan.row_bytes = ceil_div(args.w.k, kernels.chunk) * 64;
  plan.quanta = ceil_div(args.m, kernels.row_quantum);
  plan.n_strips = ceil_div(plan.quanta, kernels.max_row_classes);
  plan.n_panels = ceil_div(args.w.n, kPanelRows);
  plan.panel_bytes = static_cast<int64_t>(packed_weight_bytes(args.w.dtype, kPanelRows, args.w.k));
  plan.chunk = choose_chunk(plan, threads);
  plan.n_chunks = ceil_div(plan.n_panels, plan.chunk);
  const int64_t strip_bytes = kernels.max_row_classes * kernels.row_quantum * plan.row_bytes;
  plan.strips_per_block = std::clamp<int64_t>(kBlockBytes / strip_bytes, 1, plan.n_strips);
  while (plan.strips_per_block > 1 &&
         plan.n_chunks * ceil_div(plan.n_strips, plan.strips_per_block) <
             kUnitsPerThread * threads) {
    plan.strips_per_block = ceil_div(plan.strips_per_block, 2);
  }
  plan.n_units = plan.n_chunks * ceil_div(plan.n_strips, plan.strips_per_block);
  return plan;
}

/// A single row that lies as its strip would: the kernels read it where it is. (With an odd K,
/// kernels that take pairs would read beyond the row.)
bool reads_in_place(const LinearKernels& kernels, const LinearArgs& args) {
  return kernels.x_is_strip && args.m == 1 && (args.w.dtype != DType::kBF16 || args.w.k % 2 == 0);
}

void pack_strips(const Plan& plan, int64_t begin, int64_t end) {
  const LinearArgs& args = *plan.args;
  auto* scratch = static_cast<std::byte*>(args.scratch);
  for (int64_t s = begin; s < end; ++s) {
    const int64_t row = plan.first_row(s);
    plan.kernels->pack(args.x + row * args.ldx, args.ldx,
                       static_cast<int>(plan.first_row(s + 1) - row), args.w.k,
                       scratch + row * plan.row_bytes);
  }
}

void run_unit(const Plan& plan, int64_t unit, const std::byte* next_chunk) {
  alignas(64) float tile[kMaxPanels * kMaxTileRows * kPanelRows];
  const int64_t block = unit / plan.n_chunks;
  const int64_t panel0 = unit % plan.n_chunks * plan.chunk;
  const int64_t panels = std::min(plan.chunk, plan.n_panels - panel0);
  const int64_t last_strip = std::min(plan.n_strips, (block + 1) * plan.strips_per_block);
  for (int64_t s = block * plan.strips_per_block; s < last_strip; ++s) {
    const int64_t row = plan.first_row(s);
    const int rows = static_cast<int>(plan.first_row(s + 1) - row);
    const int height = row_class(*plan.kernels, rows);
    const int64_t tile_rows = height * plan.kernels->row_quantum;
    for (int64_t p = 0; p < panels;) {
      const int taken = kernel_panels(*plan.kernels, height, panels - p);
      const bool last = p + taken == panels;
      const std::byte* next = !last                 ? plan.panel(panel0 + p + taken)
                              : s + 1 == last_strip ? next_chunk
                                                    : plan.panel(panel0);
      plan.kernels->micro[static_cast<size_t>(height)][static_cast<size_t>(taken)](
          {.a = plan.strips + row * plan.row_bytes,
           .w = plan.panel(panel0 + p),
           .panel_bytes = plan.panel_bytes,
           .k = plan.args->w.k,
           .rows = rows,
           .tile = tile + p * tile_rows * kPanelRows,
           .tile_rows = tile_rows,
           .next = next});
      p += taken;
    }
    plan.kernels->epilogue({.tile = tile,
                            .tile_rows = tile_rows,
                            .rows = rows,
                            .panels = static_cast<int>(panels),
                            .row0 = row,
                            .panel0 = panel0,
                            .linear = plan.args});
  }
}

/// Takes units until none is left. The next one is claimed before the current one is computed, so
/// that its beginning can be prefetched.
void work(const Plan& plan, std::atomic<int64_t>& counter) {
  int64_t unit = counter.fetch_add(1, std::memory_order_relaxed);
  if (unit >= plan.n_units) return;
  if (plan.kernels->begin != nullptr) plan.kernels->begin(plan.args->m);
  while (unit < plan.n_units) {
    const int64_t following = counter.fetch_add(1, std::memory_order_relaxed);
    run_unit(plan, unit, plan.chunk_of_unit(following < plan.n_units ? following : unit));
    unit = following;
  }
  if (plan.kernels->end != nullptr) plan.kernels->end();
}

}  // namespace

void run_linear(const LinearKernels& kernels, const LinearArgs& args, const Stream& stream) {
  const bool serial = args.m * args.w.n * args.w.k <= kSerialMacs;
  Plan plan = make_plan(kernels, args, serial ? 1 : stream.pool->size());
  if (reads_in_place(kernels, args)) {
    plan.strips = reinterpret_cast<const std::byte*>(args.x);
  } else if (serial || args.m * args.w.k <= kSerialPackElements) {
    pack_strips(plan, 0, plan.n_strips);
  } else {
    stream.pool->parallel_for(plan.n_strips, 1,
                              [&](int64_t begin, int64_t end) { pack_strips(plan, begin, end); });
  }
  std::atomic<int64_t> counter{0};
  if (serial) {
    work(plan, counter);
  } else {
    stream.pool->run([&](int) { work(plan, counter); });
  }
}

}  // namespace triptych
