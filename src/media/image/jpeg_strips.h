#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "base/status.h"
#include "media/image/jpeg_source.h"
#include "media/image/row_kernels.h"

namespace triptych {

/// Some rows of a JPEG between decoding and RGB: Y, Cb and Cr samples before upsampling, each
/// chroma plane with its neighbour rows above and below; or RGB in the first plane, for pictures
/// whose planes cannot be had.
struct JpegStrip {
  int64_t y = 0;
  int64_t n_rows = 0;
  std::array<std::unique_ptr<uint8_t[]>, 3> planes;
};

/// Reads a JPEG strip by strip on one thread, while others turn strips into RGB rows: half the work
/// of decoding that way leaves the thread that has to go through the entropy-coded data in order.
class JpegStripReader {
 public:
  /// Starts `source`, which must outlive this.
  static Result<std::unique_ptr<JpegStripReader>> start(JpegSource* source);

  int64_t n_strips() const { return n_strips_; }
  JpegStrip make_strip() const;

  /// Reads strip `index` (0, 1, ... in order). `previous` is strip index - 1, which is complete
  /// after this call; null for index 0. The last strip is complete at once.
  Status read(int64_t index, JpegStrip* strip, JpegStrip* previous);

  /// One thread's scratch for rows().
  class Scratch {
   public:
    explicit Scratch(int64_t width);

   private:
    friend class JpegStripReader;
    std::unique_ptr<uint16_t[]> sums_;
    std::array<std::unique_ptr<uint8_t[]>, 2> chroma_;
  };

  /// Row y (of the picture) of a complete strip as R, G, B; writes up to kRowPadding bytes behind
  /// it. The same bytes as libjpeg's own upsampling and colour conversion.
  void rgb_row(const JpegStrip& strip, int64_t y, Scratch* scratch, const PlanarRow& out) const;

 private:
  explicit JpegStripReader(JpegSource* source);
  Status read_planes(JpegStrip* strip);
  /// Row r of a chroma plane in a strip; -1 and the number of rows are the neighbours.
  uint8_t* chroma_row(const JpegStrip& strip, size_t plane, int64_t r) const;

  JpegSource* source_;
  bool planes_;
  JpegSource::Band band_;
  int64_t rows_per_strip_;
  int64_t n_strips_;
  bool half_width_ = false;  // chroma at half resolution
  bool half_height_ = false;
};

}  // namespace triptych
