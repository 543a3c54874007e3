#include "backends/cpu/linear_driver.h"

#include <algorithm>
#include <atomic>

#include "base/checked.h"

namespace triptych {
namespace {

// Below these sizes one thread is faster than waking the others.
constexpr int64_t kSerialPackElements = 32 << 10;
constexpr int64_t kSerialMacs = 16 << 10;
// Panels that many strips walk over stay in the second-level cache: K is cut where they would not.
// So do the packed rows of one unit of work where K is whole.
constexpr int64_t kPanelCacheBytes = 256 << 10;
constexpr int64_t kRowCacheBytes = 512 << 10;
// Sums of a unit of work, on the stack of its thread.
constexpr int64_t kTileFloats = 8192;
static_assert(kTileFloats >= kMaxPanels * kMaxTileRows * kPanelRows);
// Units of work a thread, so that one that is held up leaves its share to the others.
constexpr int64_t kUnitsPerThread = 4;

/// How one call is cut: rows into strips of at most one kernel's height and blocks of strips,
/// columns into chunks of panels, K into blocks. A unit of work is a block of strips against a
/// chunk, over all of K.
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
  int64_t k_block;
  int64_t n_units;

  int64_t first_row(int64_t strip) const {
    return std::min(args->m, quanta * strip / n_strips * kernels->row_quantum);
  }
  /// The place of element k0 (even) of a panel's rows.
  const std::byte* panel(int64_t p, int64_t k0) const {
    const auto skipped = static_cast<int64_t>(packed_weight_bytes(args->w.dtype, kPanelRows, k0));
    return args->w.data + p * panel_bytes + skipped;
  }
  const std::byte* chunk_of_unit(int64_t unit) const { return panel(unit % n_chunks * chunk, 0); }
  bool cuts_k() const { return k_block < args->w.k; }
  int64_t max_strip_rows() const { return kernels->max_row_classes * kernels->row_quantum; }
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

/// A multiple of every kernel's chunk, or all of K.
int64_t choose_k_block(const Plan& plan) {
  const int64_t k = plan.args->w.k;
  const int64_t n_blocks = ceil_div(plan.chunk * plan.panel_bytes, kPanelCacheBytes);
  if (plan.n_strips == 1 || n_blocks == 1) return k;
  return round_up(ceil_div(k, n_blocks), 64);
}

int64_t choose_strips_per_block(const Plan& plan, int threads) {
  const int64_t most = plan.cuts_k()
                           ? kTileFloats / (plan.chunk * plan.max_strip_rows() * kPanelRows)
                           : kRowCacheBytes / (plan.max_strip_rows() * plan.row_bytes);
  int64_t strips = std::clamp<int64_t>(most, 1, plan.n_strips);
  while (strips > 1 &&
         plan.n_chunks * ceil_div(plan.n_strips, strips) < kUnitsPerThread * threads) {
    strips = ceil_div(strips, 2);
  }
  return strips;
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
  plan.k_block = choose_k_block(plan);
  plan.strips_per_block = choose_strips_per_block(plan, threads);
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

/// One strip against one chunk of panels.
struct StripWork {
  int64_t strip;
  int64_t panel0;
  int64_t panels;
  float* tile;
};

/// Adds the products of K from k0 on to the strip's tile; `next` is read afterwards.
void run_strip(const Plan& plan, const StripWork& work, int64_t k0, const std::byte* next) {
  const LinearKernels& kernels = *plan.kernels;
  const int64_t row = plan.first_row(work.strip);
  const auto rows = static_cast<int>(plan.first_row(work.strip + 1) - row);
  const int height = row_class(kernels, rows);
  const int64_t tile_rows = height * kernels.row_quantum;
  const int64_t rows_between_chunks = kernels.row_quantum == 1 ? rows : kernels.row_quantum;
  for (int64_t p = 0; p < work.panels;) {
    const int taken = kernel_panels(kernels, height, work.panels - p);
    const bool last = p + taken == work.panels;
    kernels.micro[static_cast<size_t>(height)][static_cast<size_t>(taken)](
        {.a = plan.strips + row * plan.row_bytes + k0 / kernels.chunk * rows_between_chunks * 64,
         .row_bytes = plan.row_bytes,
         .w = plan.panel(work.panel0 + p, k0),
         .panel_bytes = plan.panel_bytes,
         .k = std::min(plan.k_block, plan.args->w.k - k0),
         .rows = rows,
         .resume = k0 > 0,
         .tile = work.tile + p * tile_rows * kPanelRows,
         .tile_rows = tile_rows,
         .next = last ? next : plan.panel(work.panel0 + p + taken, k0)});
    p += taken;
  }
  if (k0 + plan.k_block < plan.args->w.k) return;
  kernels.epilogue({.tile = work.tile,
                    .tile_rows = tile_rows,
                    .rows = rows,
                    .panels = static_cast<int>(work.panels),
                    .row0 = row,
                    .panel0 = work.panel0,
                    .linear = plan.args});
}

void run_unit(const Plan& plan, int64_t unit, const std::byte* next_chunk) {
  alignas(64) float tiles[kTileFloats];
  const int64_t k = plan.args->w.k;
  const int64_t first = unit / plan.n_chunks * plan.strips_per_block;
  const int64_t last = std::min(plan.n_strips, first + plan.strips_per_block);
  const int64_t panel0 = unit % plan.n_chunks * plan.chunk;
  const int64_t panels = std::min(plan.chunk, plan.n_panels - panel0);
  // Sums wait between blocks of K; otherwise every strip uses the same, warm, tile.
  const int64_t tile_stride = plan.cuts_k() ? plan.chunk * plan.max_strip_rows() * kPanelRows : 0;
  for (int64_t k0 = 0; k0 < k; k0 += plan.k_block) {
    const std::byte* next_block =
        k0 + plan.k_block < k ? plan.panel(panel0, k0 + plan.k_block) : next_chunk;
    for (int64_t s = first; s < last; ++s) {
      run_strip(plan,
                {.strip = s,
                 .panel0 = panel0,
                 .panels = panels,
                 .tile = tiles + (s - first) * tile_stride},
                k0, s + 1 == last ? next_block : plan.panel(panel0, k0));
    }
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
