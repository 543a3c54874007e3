#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "ops/linear.h"

namespace triptych {

/// What the driver (linear_driver.h) knows of the kernels of one level: plain pointers, so that
/// nothing inline is compiled with a higher level's flags and then linked into common code.

/// How weight and activation elements meet in a kernel.
enum class LinearFormat : uint8_t {
  kF32,          ///< f32 weights
  kF16,          ///< f16 weights, widened in registers
  kBF16Widened,  ///< bf16 weights, widened in registers; f32 activations
  kBF16Native,   ///< bf16 weights and activations, f32 sums
};
constexpr int kLinearFormats = 4;

// Four panels are enough memory streams for one row; eight, where K is a power of two, fall into
// the same sets of the first-level cache.
constexpr int kMaxPanels = 4;     ///< weight panels that one unit of work holds
constexpr int kMaxTileRows = 32;  ///< rows of x that one strip holds
constexpr int kMaxRowClasses = 12;
constexpr int64_t kMaxUnitFloats = 65536;  ///< sums of a unit of work, on the stack of its thread

/// A finished tile on its way to the output.
struct EpilogueArgs {
  const float* tile = nullptr;
  int64_t tile_rows = 0;
  int rows = 0;
  int panels = 0;
  int64_t row0 = 0;
  int64_t panel0 = 0;
  const LinearArgs* linear = nullptr;
};

/// What a call does beside its products, a share at every step, while the products wait for their
/// operands (LinearKernels::beside_height).
struct BesideArgs {
  /// Two runs of cache lines to bring into the second-level cache.
  struct Lines {
    std::array<const std::byte*, 2> at{};
    int64_t n = 0;  ///< of each
  };
  EpilogueArgs finished;             ///< an earlier tile that goes to the output; no rows: none
  const float* next_tile = nullptr;  ///< sums from which the next call goes on, or null
  Lines panels;                      ///< of what comes after this block
  Lines rows;
};

/// One strip of rows against some panels over a block of K: raw sums into a tile.
struct MicroArgs {
  const std::byte* a;  ///< packed strip (see LinearKernels::pack), at the block
  int64_t row_bytes;   ///< of one packed row of the block
  const std::byte* w;  ///< first panel, at the block
  int64_t panel_bytes;
  int64_t k;  ///< elements of the block
  int rows;
  bool resume;  ///< go on from the sums in the tile
  float* tile;  ///< panel p, row r at tile + (p * tile_rows + r) * 16
  int64_t tile_rows;
  const std::byte* next =
      nullptr;  ///< what this thread reads afterwards, to prefetch its beginning
  const BesideArgs* beside = nullptr;
};
using MicroKernel = void (*)(const MicroArgs& args);

/// Kernels of one level and format.
struct LinearKernels {
  /// Rows come in classes of this many (AMX: tiles of 16; elsewhere 1).
  int row_quantum = 1;
  int max_row_classes = 0;
  /// [row class][panels]; null where there is no kernel of that size. One panel always exists.
  std::array<std::array<MicroKernel, kMaxPanels + 1>, kMaxRowClasses + 1> micro{};
  /// Panels of a unit of work when there are many strips.
  int gemm_panels = 1;
  /// Sums that a unit may keep while it walks over blocks of K; at most kMaxUnitFloats.
  int64_t unit_floats = 8192;
  /// Units of work a thread, so that one that is held up leaves its share to the others.
  int units_per_thread = 4;
  /// Blocks of K are no longer than this, so that a strip stays in the first-level cache while the
  /// panels pass by; 0: the panels alone decide.
  int64_t strip_k = 0;
  /// Kernels from this row class on take MicroArgs::beside in place of `next`.
  int beside_height = kMaxRowClasses + 1;

  /// Copies `rows` rows of x into the strip form: for each 64-byte chunk of K the chunk of each
  /// row in turn, the end of K filled with zeros. A strip takes
  /// round_up(rows, row_quantum) * round_up(k, chunk) elements; rows missing to whole quanta are
  /// zero.
  void (*pack)(const float* x, int64_t ldx, int rows, int64_t k, std::byte* strip) = nullptr;
  int64_t chunk = 16;       ///< elements of K in 64 bytes
  bool x_is_strip = false;  ///< a single dense row may be read in place

  void (*epilogue)(const EpilogueArgs& args) = nullptr;
  /// Called by each thread around its work (AMX: tile configuration); may be null.
  void (*begin)(int64_t m) = nullptr;
  void (*end)() = nullptr;
};

LinearKernels linear_portable(LinearFormat format);
LinearKernels linear_avx2(LinearFormat format);
LinearKernels linear_avx512(LinearFormat format);
LinearKernels linear_avx512_bf16();  ///< kBF16Native
LinearKernels linear_amx();          ///< kBF16Native

/// Independent multiply-add chains in registers, for ceilings.h: runs `steps` rounds and returns
/// the floating-point operations done. What it computes goes to `sink`.
using PeakLoop = int64_t (*)(int64_t steps, float* sink);
PeakLoop peak_loop_portable();
PeakLoop peak_loop_avx2();
PeakLoop peak_loop_avx512();
PeakLoop peak_loop_avx512_bf16();
PeakLoop peak_loop_amx();

}  // namespace triptych
