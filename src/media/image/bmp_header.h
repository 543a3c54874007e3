#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"

namespace triptych {

/// A bit field of a packed pixel: `mask` in place, `shift` down to its lowest bit, `max` there.
struct BmpField {
  uint32_t mask = 0;
  uint32_t shift = 0;
  uint32_t max = 0;
};

/// The headers of an uncompressed Windows bitmap, checked.
struct BmpInfo {
  int64_t width = 0;
  int64_t height = 0;
  bool top_down = false;
  int bits_per_pixel = 0;  ///< 1, 4, 8 (palette), 16, 24 or 32
  uint64_t pixel_offset = 0;
  uint64_t row_bytes = 0;  ///< rows are padded to 4 bytes
  uint64_t palette_offset = 0;
  uint32_t palette_entry_bytes = 4;  ///< 3 in OS/2 files
  uint32_t n_palette = 0;
  std::array<BmpField, 4> fields{};  ///< R, G, B, A; an alpha mask of 0 means opaque
};

/// kUnsupported for run-length and embedded JPEG/PNG coding, kDataLoss for headers that are cut or
/// contradict themselves.
Result<BmpInfo> parse_bmp_info(std::span<const std::byte> bytes);

}  // namespace triptych
