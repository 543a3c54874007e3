#pragma once

#include <array>
#include <cstdint>

#include "base/thread_pool.h"
#include "media/image/recipe.h"
#include "media/image/row_resizer.h"

namespace triptych {

/// Rows of the padded picture for one thread: source rows are written in the middle of them.
class PaddedRows {
 public:
  PaddedRows(const ImagePlan& plan, const ImageRecipe& recipe);

  /// Where source row i (below kRowsAtOnce) goes; writers may run kRowPadding bytes past its end.
  PlanarRow source_row(int64_t i);
  /// Paints the padding to the right again, which a writer may have run over.
  void close_row(int64_t i);
  ConstPlanarRow padded_row(int64_t i) const { return rows_.row(i); }

 private:
  PlanarRows rows_;
  int64_t left_;
  int64_t source_end_;
  int64_t width_;
  std::array<uint8_t, 3> color_;
};

/// Source rows in, pixel tensor out, by a plan: padding, resize, crop, rescale and normalise in one
/// go. Rows may be put by several threads at once.
class PixelPipeline {
 public:
  PixelPipeline(const ImageRecipe& recipe, const ImagePlan& plan);

  /// Source rows that the output depends on; others need not be put.
  int64_t first_row() const { return first_row_; }
  int64_t end_row() const { return end_row_; }

  PaddedRows make_rows() const { return PaddedRows(plan_, recipe_); }
  /// Takes source rows [y, y + n_rows) from the first n_rows of `rows`.
  void put_rows(int64_t y, int64_t n_rows, const PaddedRows& rows);
  /// After all rows: the second pass and the numbers.
  PixelTensor finish(ThreadPool& pool);

 private:
  void put_padding_rows();
  void write_row(int64_t y, uint8_t* scratch, PixelTensor* out) const;

  const ImageRecipe& recipe_;
  const ImagePlan& plan_;
  ResizeWindow window_;
  RowResizer resizer_;
  int64_t first_row_;
  int64_t end_row_;
  std::array<std::array<float, 256>, 3> values_;  // of each byte in each channel
};

}  // namespace triptych
