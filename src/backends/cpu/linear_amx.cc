// clang-format off: the lanes come before the kernels that are written over them
#include "backends/cpu/lanes_avx512.h"
#include "backends/cpu/linear_epilogue.inl.h"
#include "backends/cpu/linear_pack_bf16.inl.h"
// clang-format on

#include <algorithm>
#include <cstring>

#include "base/checked.h"

namespace triptych {
namespace {

// bf16 products on AMX tiles. A tile of A is 16 rows of 32 elements of K, as pack_strip_bf16<16>
// lays them; a tile of B is 16 pairs of K of one panel, as it lies in the weight; C is 16 x 16.
// Tiles 0 to 3 hold sums, 4 and 5 A, 6 and 7 B. Tiles are used for any number of rows: the unit
// adds the products of 32 elements before it adds them to the sum, so vdpbf16ps would give other
// last bits for a row alone than in a batch.

constexpr int kTileBytes = 1024;
constexpr int kTileRows = 16;
constexpr int64_t kPairsPerTile = 16;
constexpr uintptr_t kTilePrefetchBytes = 2048;
// 32 rows of it are 36 KiB: three quarters of the first-level cache. Panels are read past it
// (tileloaddt1), or each would drive the rows out that the next one needs.
constexpr int64_t kStripK = 576;

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t bytes_per_row[16] = {};
  uint8_t rows[16] = {};
};

/// Fewer than 16 rows in all: the tiles of A and C are as high as x, which saves their time.
void configure(int64_t m) {
  TileConfig config;
  const auto rows = static_cast<uint8_t>(std::min<int64_t>(m, kTileRows));
  for (int t = 0; t < 8; ++t) {
    config.bytes_per_row[t] = 64;
    config.rows[t] = t < 6 ? rows : kTileRows;
  }
  // The memory clobber: g++ 12's _tile_loadconfig does not say that it reads the structure.
  __asm__ volatile("ldtilecfg %0" ::"m"(config) : "memory");
}

void release() { _tile_release(); }

/// BesideArgs on its way through the steps of a call. What it runs is short: the products of the
/// next step must be within reach of the out-of-order window, or the tiles stand still.
class Beside {
 public:
  Beside(const BesideArgs& args, int64_t steps)
      : finished_(args.finished),
        panels_(args.panels),
        rows_(args.rows),
        next_tile_(reinterpret_cast<const std::byte*>(args.next_tile)) {
    rows_left_ = finished_.rows;
    rows_at_once_ = static_cast<int>(2 * ceil_div(finished_.rows, steps));
    panels_.n = ceil_div(panels_.n, steps);
    rows_.n = ceil_div(rows_.n, steps);
    tile_lines_ = next_tile_ != nullptr ? ceil_div(kTileLines, steps) : 0;
  }

  inline __attribute__((always_inline)) void step(int64_t t) {
    // Of every second step, as a call has a cost of its own.
    if (t % 2 == 0 && rows_left_ > 0) write_rows(std::min(rows_at_once_, rows_left_));
    advance(panels_);
    advance(rows_);
    for (int64_t i = 0; i < tile_lines_; ++i) __builtin_prefetch(next_tile_ + i * 64, 1, 3);
    next_tile_ += tile_lines_ * 64;
  }

  void finish() {
    if (rows_left_ > 0) write_rows(rows_left_);
  }

 private:
  static constexpr int64_t kTileLines = 4 * kTileBytes / 64;

  static inline __attribute__((always_inline)) void advance(BesideArgs::Lines& lines) {
    for (int64_t i = 0; i < lines.n; ++i) {
      __builtin_prefetch(lines.at[0], 0, 2);
      __builtin_prefetch(lines.at[1], 0, 2);
      lines.at[0] += 64;
      lines.at[1] += 64;
    }
  }

  void write_rows(int n) {
    finished_.rows = n;
    linear_epilogue(finished_);
    finished_.tile += n * kPanelRows;
    finished_.row0 += n;
    rows_left_ -= n;
  }

  EpilogueArgs finished_;
  BesideArgs::Lines panels_;
  BesideArgs::Lines rows_;
  const std::byte* next_tile_;
  int64_t tile_lines_;
  int rows_left_;
  int rows_at_once_;
};

/// Walks K a tile at a time: `step(a, b)` gets the offset of A's tile and a pointer per panel.
/// The last pairs of K are copied beside zeros, so that a whole tile can be read.
/// `at_each(t)` is called after each step but the last of an uneven K.
template <int kPanelCount, typename Step, typename AtEach>
inline __attribute__((always_inline)) void walk(const MicroArgs& args, Step step, AtEach at_each) {
  const int64_t pairs = (args.k + 1) / 2;
  const int64_t whole = pairs / kPairsPerTile;
  const std::byte* b[kPanelCount];
  for (int p = 0; p < kPanelCount; ++p) b[p] = args.w + p * args.panel_bytes;
  for (int64_t t = 0; t < whole; ++t) {
    step(t * kTileBytes, b);
    at_each(t);
    for (int p = 0; p < kPanelCount; ++p) b[p] += kTileBytes;
  }
  const int64_t left = pairs % kPairsPerTile;
  if (left == 0) return;
  alignas(64) std::byte last[kPanelCount][kTileBytes];
  for (int p = 0; p < kPanelCount; ++p) {
    std::memcpy(last[p], b[p], static_cast<size_t>(left) * 64);
    std::memset(last[p] + left * 64, 0, static_cast<size_t>(kPairsPerTile - left) * 64);
    b[p] = last[p];
  }
  // The tile loads below are invisible to the compiler's alias analysis.
  __asm__ volatile("" ::"r"(last) : "memory");
  step(whole * kTileBytes, b);
}

template <int kPanelCount, typename Step>
inline __attribute__((always_inline)) void walk_alone(const MicroArgs& args, Step step) {
  walk<kPanelCount>(args, step, [](int64_t) {});
}

template <int kPanelCount, typename Step>
inline __attribute__((always_inline)) void walk_beside(const MicroArgs& args, Step step) {
  Beside beside(*args.beside, ceil_div(args.k, 2 * kPairsPerTile));
  walk<kPanelCount>(args, step, [&](int64_t t) { beside.step(t); });
  beside.finish();
}

inline void prefetch_tile(const std::byte* b) {
  const uintptr_t ahead = reinterpret_cast<uintptr_t>(b) + kTilePrefetchBytes;
  for (uintptr_t line = 0; line < kTileBytes; line += 64) {
    __builtin_prefetch(reinterpret_cast<const void*>(ahead + line), 0, 3);
  }
}

inline float* tile_at(const MicroArgs& args, int panel, int row) {
  return args.tile + (panel * args.tile_rows + row) * kPanelRows;
}

// Tile numbers are part of the instruction, hence a macro: zero, or the sums so far.
#define TRIPTYCH_START_TILE(tile, panel, row)         \
  if (args.resume) {                                  \
    _tile_loadd(tile, tile_at(args, panel, row), 64); \
  } else {                                            \
    _tile_zero(tile);                                 \
  }

void rows16_panels1(const MicroArgs& args) {
  TRIPTYCH_START_TILE(0, 0, 0)
  walk_alone<1>(args, [&](int64_t a, const std::byte* const* b) {
    prefetch_tile(b[0]);
    _tile_loadd(4, args.a + a, 64);
    _tile_loadd(6, b[0], 64);
    _tile_dpbf16ps(0, 4, 6);
  });
  _tile_stored(0, tile_at(args, 0, 0), 64);
}

void rows16_panels2(const MicroArgs& args) {
  TRIPTYCH_START_TILE(0, 0, 0)
  TRIPTYCH_START_TILE(1, 1, 0)
  walk_alone<2>(args, [&](int64_t a, const std::byte* const* b) {
    prefetch_tile(b[0]);
    prefetch_tile(b[1]);
    _tile_loadd(4, args.a + a, 64);
    _tile_loadd(6, b[0], 64);
    _tile_loadd(7, b[1], 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
  });
  _tile_stored(0, tile_at(args, 0, 0), 64);
  _tile_stored(1, tile_at(args, 1, 0), 64);
}

void rows16_panels4(const MicroArgs& args) {
  TRIPTYCH_START_TILE(0, 0, 0)
  TRIPTYCH_START_TILE(1, 1, 0)
  TRIPTYCH_START_TILE(2, 2, 0)
  TRIPTYCH_START_TILE(3, 3, 0)
  walk_alone<4>(args, [&](int64_t a, const std::byte* const* b) {
    for (int p = 0; p < 4; ++p) prefetch_tile(b[p]);
    _tile_loadd(4, args.a + a, 64);
    _tile_loadd(6, b[0], 64);
    _tile_loadd(7, b[1], 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(6, b[2], 64);
    _tile_loadd(7, b[3], 64);
    _tile_dpbf16ps(2, 4, 6);
    _tile_dpbf16ps(3, 4, 7);
  });
  _tile_stored(0, tile_at(args, 0, 0), 64);
  _tile_stored(1, tile_at(args, 1, 0), 64);
  _tile_stored(2, tile_at(args, 2, 0), 64);
  _tile_stored(3, tile_at(args, 3, 0), 64);
}

/// Where the second 16 rows of a strip are.
inline const std::byte* second_rows(const MicroArgs& args) {
  return args.a + kTileRows * args.row_bytes;
}

void rows32_panels1(const MicroArgs& args) {
  const std::byte* second = second_rows(args);
  TRIPTYCH_START_TILE(0, 0, 0)
  TRIPTYCH_START_TILE(1, 0, kTileRows)
  walk_beside<1>(args, [&](int64_t a, const std::byte* const* b) {
    _tile_loadd(4, args.a + a, 64);
    _tile_stream_loadd(6, b[0], 64);
    _tile_loadd(5, second + a, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 5, 6);
  });
  _tile_stored(0, tile_at(args, 0, 0), 64);
  _tile_stored(1, tile_at(args, 0, kTileRows), 64);
}

void rows32_panels2(const MicroArgs& args) {
  const std::byte* second = second_rows(args);
  TRIPTYCH_START_TILE(0, 0, 0)
  TRIPTYCH_START_TILE(1, 0, kTileRows)
  TRIPTYCH_START_TILE(2, 1, 0)
  TRIPTYCH_START_TILE(3, 1, kTileRows)
  walk_beside<2>(args, [&](int64_t a, const std::byte* const* b) {
    _tile_loadd(4, args.a + a, 64);
    _tile_stream_loadd(6, b[0], 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, second + a, 64);
    _tile_dpbf16ps(1, 5, 6);
    _tile_stream_loadd(7, b[1], 64);
    _tile_dpbf16ps(2, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
  });
  _tile_stored(0, tile_at(args, 0, 0), 64);
  _tile_stored(1, tile_at(args, 0, kTileRows), 64);
  _tile_stored(2, tile_at(args, 1, 0), 64);
  _tile_stored(3, tile_at(args, 1, kTileRows), 64);
}

int64_t peak(int64_t steps, float* sink) {
  alignas(64) std::byte operand[kTileBytes];
  for (int i = 0; i < kTileBytes / 4; ++i) std::memcpy(operand + 4 * i, sink + i % 16, 4);
  configure(kTileRows);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, operand, 64);
  _tile_loadd(6, operand, 64);
  for (int64_t i = 0; i < steps; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 6);
    _tile_dpbf16ps(2, 4, 6);
    _tile_dpbf16ps(3, 4, 6);
  }
  _tile_stored(0, operand, 64);
  release();
  std::memcpy(sink, operand, 64);
  return steps * 4 * 16 * 16 * 32 * 2;
}

}  // namespace

LinearKernels linear_amx() {
  LinearKernels out;
  out.row_quantum = kTileRows;
  out.max_row_classes = 2;
  out.micro[1][1] = &rows16_panels1;
  out.micro[1][2] = &rows16_panels2;
  out.micro[1][4] = &rows16_panels4;
  out.micro[2][1] = &rows32_panels1;
  out.micro[2][2] = &rows32_panels2;
  out.gemm_panels = 16;
  out.unit_floats = kMaxUnitFloats;
  out.units_per_thread = 2;
  out.strip_k = kStripK;
  out.beside_height = 2;
  out.pack = &pack_strip_bf16<kTileRows>;
  out.chunk = 32;
  out.epilogue = &linear_epilogue;
  out.begin = &configure;
  out.end = &release;
  return out;
}

PeakLoop peak_loop_amx() { return &peak; }

}  // namespace triptych
