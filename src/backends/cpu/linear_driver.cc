#include "backends/cpu/linear_driver.h"

#include <algorithm>
#include <atomic>

#include "backends/cpu/linear_plan.h"
#include "base/checked.h"

namespace triptych {
namespace {

// Below these sizes one thread is faster than waking the others.
constexpr int64_t kSerialPackElements = 32 << 10;
constexpr int64_t kSerialMacs = 16 << 10;
// Sums of one call of a kernel, and what is enough where K is whole.
constexpr int64_t kCallFloats = kMaxPanels * kMaxTileRows * kPanelRows;
constexpr int64_t kWarmFloats = 8192;
static_assert(kWarmFloats >= 2 * kCallFloats);

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
    const auto rows = static_cast<int>(plan.first_row(s + 1) - row);
    for (int64_t k0 = 0; k0 < args.w.k; k0 += plan.k_block) {
      plan.kernels->pack(args.x + row * args.ldx + k0, args.ldx, rows, plan.block_k(k0),
                         scratch + plan.strip_offset(s, k0));
    }
  }
}

/// What a thread holds while it works.
struct Progress {
  float* sums;  ///< of a unit where K is cut, else of two calls
  int64_t calls = 0;
  BesideArgs beside;
};

/// What the calls of one strip bring nearer of the next block's operands: all calls of a block
/// together everything once.
class LookAhead {
 public:
  LookAhead(const Plan& plan, const Block& block, const Block& next, int64_t strip) {
    const int64_t nth = strip - block.first_strip;
    const int64_t k = plan.block_k(next.k0);
    const int64_t lines = ceil_div(ceil_div(k, 2), block.last_strip - block.first_strip);
    panel_ = plan.panel(next.panel0, next.k0) + nth * lines * 64;
    panel_bytes_ = plan.panel_bytes;
    panel_lines_ = lines;
    n_panels_ = next.panels;
    // The same rows over all of K are near already.
    if (!plan.cuts_k() && next.first_strip == block.first_strip) return;
    const int64_t quantum = plan.kernels->row_quantum;
    rows_ = plan.strip(std::min(next.first_strip + nth, next.last_strip - 1), next.k0);
    second_rows_ = quantum * plan.row_bytes(next.k0);
    row_lines_ = ceil_div(second_rows_ / 64, ceil_div(block.panels, 2));
  }

  /// The share of the call for panels p and p + 1 of the block.
  void share(int64_t p, BesideArgs& beside) const {
    const std::byte* panel = panel_ + p * panel_bytes_;
    beside.panels = {{panel, panel + panel_bytes_}, p < n_panels_ ? panel_lines_ : 0};
    const std::byte* rows = rows_ + p / 2 * row_lines_ * 64;
    beside.rows = {{rows, rows + second_rows_}, row_lines_};
  }

 private:
  const std::byte* panel_;
  int64_t panel_bytes_;
  int64_t panel_lines_;
  int64_t n_panels_;
  const std::byte* rows_ = nullptr;
  int64_t second_rows_ = 0;
  int64_t row_lines_ = 0;
};

/// One strip and some panels of a block, on their way through kernels.
struct StripWork {
  int64_t row0;
  int rows;
  int height;  ///< row class
  int64_t tile_rows;
};

StripWork strip_work(const Plan& plan, int64_t strip) {
  const int64_t row = plan.first_row(strip);
  const auto rows = static_cast<int>(plan.first_row(strip + 1) - row);
  const int height = row_class(*plan.kernels, rows);
  return {row, rows, height, height * plan.kernels->row_quantum};
}

/// Operands of the kernel for `strip` and the panels of a block from p on.
MicroArgs operands(const Plan& plan, const StripWork& work, const Block& block, int64_t strip,
                   int64_t p, float* tile) {
  return {.a = plan.strip(strip, block.k0),
          .row_bytes = plan.row_bytes(block.k0),
          .w = plan.panel(block.panel0 + p, block.k0),
          .panel_bytes = plan.panel_bytes,
          .k = plan.block_k(block.k0),
          .rows = work.rows,
          .resume = block.k0 > 0,
          .tile = tile,
          .tile_rows = work.tile_rows};
}

EpilogueArgs output(const Plan& plan, const StripWork& work, int64_t panel0, int64_t panels,
                    const float* tile) {
  return {.tile = tile,
          .tile_rows = work.tile_rows,
          .rows = work.rows,
          .panels = static_cast<int>(panels),
          .row0 = work.row0,
          .panel0 = panel0,
          .linear = plan.args};
}

bool ends_k(const Plan& plan, const Block& block) {
  return block.k0 + plan.k_block >= plan.args->w.k;
}

MicroKernel kernel(const Plan& plan, const StripWork& work, int panels) {
  return plan.kernels->micro[static_cast<size_t>(work.height)][static_cast<size_t>(panels)];
}

/// Adds the products of a block's K to a strip's sums; at the end of K they go to the output.
void run_strip(const Plan& plan, const Block& block, const Block& next, int64_t strip,
               Progress& progress) {
  const StripWork work = strip_work(plan, strip);
  // Sums wait between blocks of K; otherwise every strip uses the same, warm, tile.
  float* const sums =
      progress.sums + (plan.cuts_k() ? (strip - block.first_strip) * plan.strip_floats() : 0);
  const Block& after = strip + 1 == block.last_strip ? next : block;
  for (int64_t p = 0; p < block.panels;) {
    const int taken = kernel_panels(*plan.kernels, work.height, block.panels - p);
    const bool last = p + taken == block.panels;
    MicroArgs args = operands(plan, work, block, strip, p, sums + p * work.tile_rows * kPanelRows);
    args.next =
        last ? plan.panel(after.panel0, after.k0) : plan.panel(block.panel0 + p + taken, block.k0);
    kernel(plan, work, taken)(args);
    p += taken;
  }
  if (ends_k(plan, block)) {
    plan.kernels->epilogue(output(plan, work, block.panel0, block.panels, sums));
  }
}

/// The same with kernels that work beside: each takes the sums of the call before it to the output.
void run_strip_beside(const Plan& plan, const Block& block, const Block& next, int64_t strip,
                      Progress& progress) {
  const StripWork work = strip_work(plan, strip);
  const LookAhead ahead(plan, block, next, strip);
  BesideArgs& beside = progress.beside;
  for (int64_t p = 0; p < block.panels;) {
    const int taken = kernel_panels(*plan.kernels, work.height, block.panels - p);
    float* tile = progress.sums + progress.calls++ % 2 * kCallFloats;
    if (plan.cuts_k()) {
      tile = progress.sums + (strip - block.first_strip) * plan.strip_floats() +
             p * work.tile_rows * kPanelRows;
      beside.next_tile = block.k0 > 0 ? tile + taken * work.tile_rows * kPanelRows : nullptr;
    }
    ahead.share(p, beside);
    MicroArgs args = operands(plan, work, block, strip, p, tile);
    args.beside = &beside;
    kernel(plan, work, taken)(args);
    beside.finished = {};
    if (ends_k(plan, block)) {
      beside.finished = output(plan, work, block.panel0 + p, taken, tile);
    }
    p += taken;
  }
}

void finish(const Plan& plan, Progress& progress) {
  if (progress.beside.finished.rows > 0) plan.kernels->epilogue(progress.beside.finished);
  progress.beside.finished = {};
}

void run_unit(const Plan& plan, int64_t unit, int64_t next_unit, Progress& progress) {
  Block block = first_block(plan, unit);
  for (bool last = false; !last; block.k0 += plan.k_block) {
    last = ends_k(plan, block);
    Block next = block;
    next.k0 += plan.k_block;
    if (last) next = first_block(plan, next_unit);
    for (int64_t s = block.first_strip; s < block.last_strip; ++s) {
      if (strip_work(plan, s).height >= plan.kernels->beside_height) {
        run_strip_beside(plan, block, next, s, progress);
      } else {
        finish(plan, progress);
        run_strip(plan, block, next, s, progress);
      }
    }
  }
  if (plan.cuts_k()) finish(plan, progress);  // the next unit starts where these sums are
}

/// Takes units until none is left. The next one is claimed before the current one is computed, so
/// that its beginning can be prefetched.
template <int64_t kFloats>
void work(const Plan& plan, std::atomic<int64_t>& counter) {
  int64_t unit = counter.fetch_add(1, std::memory_order_relaxed);
  if (unit >= plan.n_units) return;
  alignas(64) float sums[kFloats];
  Progress progress{.sums = sums};
  if (plan.kernels->begin != nullptr) plan.kernels->begin(plan.args->m);
  while (unit < plan.n_units) {
    const int64_t following = counter.fetch_add(1, std::memory_order_relaxed);
    run_unit(plan, unit, following < plan.n_units ? following : unit, progress);
    unit = following;
  }
  finish(plan, progress);
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
  const auto run = plan.cuts_k() ? &work<kMaxUnitFloats> : &work<kWarmFloats>;
  if (serial) {
    run(plan, counter);
  } else {
    stream.pool->run([&](int) { run(plan, counter); });
  }
}

}  // namespace triptych
