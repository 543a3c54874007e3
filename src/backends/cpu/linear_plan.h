#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/linear_isa.h"

namespace triptych {

/// How one call is cut: rows into strips of at most one kernel's height and blocks of strips,
/// columns into chunks of panels, K into blocks. A unit of work is a block of strips against a
/// chunk, over all of K.
struct Plan {
  const LinearKernels* kernels;
  const LinearArgs* args;
  const std::byte* strips;  ///< packed x
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
  /// Elements of the block of K that begins at k0.
  int64_t block_k(int64_t k0) const { return std::min(k_block, args->w.k - k0); }
  /// Of a packed row in that block.
  int64_t row_bytes(int64_t k0) const {
    return (block_k(k0) + kernels->chunk - 1) / kernels->chunk * 64;
  }
  /// A strip's rows in that block. Packed x is ordered by blocks, so that what is used together
  /// lies together and falls into different sets of the caches.
  int64_t strip_offset(int64_t s, int64_t k0) const {
    return quanta * kernels->row_quantum * (k0 / kernels->chunk) * 64 +
           first_row(s) * row_bytes(k0);
  }
  const std::byte* strip(int64_t s, int64_t k0) const { return strips + strip_offset(s, k0); }
  bool cuts_k() const { return k_block < args->w.k; }
  int64_t max_strip_rows() const { return kernels->max_row_classes * kernels->row_quantum; }
  /// Of all panels of a chunk.
  int64_t strip_floats() const { return chunk * max_strip_rows() * kPanelRows; }
};

Plan make_plan(const LinearKernels& kernels, const LinearArgs& args, int threads);

/// Strips that meet the panels of a chunk over one block of K.
struct Block {
  int64_t first_strip;
  int64_t last_strip;
  int64_t panel0;
  int64_t panels;
  int64_t k0;
};

/// Where a unit of work begins.
Block first_block(const Plan& plan, int64_t unit);

/// Rows in kernel heights, rounded up.
int row_class(const LinearKernels& kernels, int64_t rows);

/// The most panels, at most `most`, that a kernel takes at once.
int kernel_panels(const LinearKernels& kernels, int row_class, int64_t most);

}  // namespace triptych
