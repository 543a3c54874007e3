#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "media/image/probe.h"

namespace triptych {

/// A JPEG file read from top to bottom through libjpeg-turbo (accurate integer DCT, as Pillow has
/// it), either as RGB rows or as its Y, Cb and Cr planes before upsampling. One use: rows or
/// planes, each once. Missing data (a cut file, a bad code, a lost restart marker) is an error at
/// once.
class JpegSource {
 public:
  /// Shape of one band: the smallest number of rows that the planes can be read in.
  struct Band {
    int64_t luma_rows = 0;                  ///< 8 or 16 picture rows
    std::array<int64_t, 3> plane_rows{};    ///< rows of each plane in a band
    std::array<int64_t, 3> plane_stride{};  ///< bytes of a row, padded to whole blocks
    std::array<int64_t, 3> plane_width{};   ///< samples of a row that belong to the picture
    std::array<int64_t, 3> plane_height{};  ///< rows of the whole plane that belong to it
  };

  static Result<std::unique_ptr<JpegSource>> open(std::span<const std::byte> bytes,
                                                  const ImageHeader& header);
  ~JpegSource();
  JpegSource(const JpegSource&) = delete;
  JpegSource& operator=(const JpegSource&) = delete;

  int64_t width() const;
  int64_t height() const;
  /// Whether planes can be read: YCbCr with chroma at full or half resolution in each direction.
  bool has_planes() const;
  Band band() const;

  Status start_rows();
  /// Reads the next `n` rows to `out`, RGB, rows `stride` bytes apart.
  Status read_rows(int64_t n, uint8_t* out, int64_t stride);

  Status start_planes();
  /// Reads the next band; plane p gets plane_rows[p] rows from planes[p] on. Rows past the end of
  /// the picture hold padding.
  Status read_band(const std::array<uint8_t*, 3>& planes);

 private:
  struct State;
  explicit JpegSource(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace triptych
