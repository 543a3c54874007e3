#pragma once

#include <cstdint>
#include <memory>

#include "media/image/resize.h"
#include "media/image/resize_weights.h"
#include "media/image/row_kernels.h"

namespace triptych {

/// A few planar rows of scratch for one thread, with room behind each for whole vectors.
class PlanarRows {
 public:
  PlanarRows(int64_t n_rows, int64_t width);
  PlanarRow row(int64_t i);
  ConstPlanarRow row(int64_t i) const;

 private:
  int64_t stride_;
  std::unique_ptr<uint8_t[]> bytes_;
};

struct ResizeShape {
  int64_t in_width = 0;
  int64_t in_height = 0;
  int64_t out_width = 0;
  int64_t out_height = 0;
  ResizeWindow window;  ///< part of the output that is wanted
  ResampleFilter filter = ResampleFilter::kBicubic;
};

/// The two passes of a resize, fed with input rows in any order and from any thread. First every
/// input row in [first_row(), end_row()) is put, then output rows are read. The order of the passes
/// is Pillow's: horizontal first, so that only [rows that matter, 3, window width] bytes are kept;
/// but vertical first when the height loses more than twice as many samples as the width (Pillow
/// 13), and then whole rows are kept.
class RowResizer {
 public:
  explicit RowResizer(const ResizeShape& shape);

  /// Input rows that the window depends on.
  int64_t first_row() const { return first_row_; }
  int64_t end_row() const { return end_row_; }
  int64_t width() const { return window_.width; }
  int64_t height() const { return window_.height; }

  /// Takes input rows [y, y + n_rows), n_rows at most kRowsAtOnce; rows that do not matter are
  /// dropped. Different rows may be put by different threads at once.
  void put_rows(int64_t y, int64_t n_rows, const ConstPlanarRow* rows);

  /// Output row y of the window. `scratch` is a row that output_scratch() made; the result points
  /// into it or into the resizer.
  ConstPlanarRow output_row(int64_t y, uint8_t* scratch) const;
  std::unique_ptr<uint8_t[]> output_scratch() const;

 private:
  /// The horizontal pass on whole rows, whichever way this resize does it.
  void resize_width(const ConstPlanarRow* in, int64_t n_rows, const PlanarRow* out) const;

  ResizeWindow window_;
  ResampleFilter filter_;
  bool vertical_first_;
  AxisWeights horizontal_;
  AxisWeights vertical_;
  int64_t first_row_;
  int64_t end_row_;
  int64_t plane_stride_;  // bytes from a kept row's R to its G and on to its B
  int64_t stride_;        // bytes from kept row to kept row
  std::unique_ptr<uint8_t[]> kept_;
};

}  // namespace triptych
