#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "media/image/probe.h"

// A header that is accepted names sides within the limits and a cost of at least its pixels.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const triptych::ImageLimits limits;
  const auto header =
      triptych::probe_image({reinterpret_cast<const std::byte*>(data), size}, limits);
  if (!header.is_ok()) {
    if (header.status().message().empty()) std::abort();
    return 0;
  }
  const int64_t n_pixels = header->width * header->height;
  if (header->width < 1 || header->height < 1 || n_pixels > limits.max_pixels ||
      header->decoded_bytes < 3 * n_pixels || header->orientation < 1 || header->orientation > 8) {
    std::abort();
  }
  return 0;
}
