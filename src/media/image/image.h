#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace triptych {

/// Borrowed 8-bit RGB pixels [height, width, 3], rows from top to bottom, `stride` bytes apart.
struct ImageView {
  const uint8_t* data = nullptr;
  int64_t width = 0;
  int64_t height = 0;
  int64_t stride = 0;

  const uint8_t* row(int64_t y) const { return data + y * stride; }
};

/// 8-bit RGB pixels [height, width, 3] without gaps between rows. Move-only; a new image's pixels
/// are not initialised, because a decoder writes every one of them.
class Image {
 public:
  Image() = default;
  Image(int64_t width, int64_t height)
      : width_(width),
        height_(height),
        pixels_(
            std::make_unique_for_overwrite<uint8_t[]>(static_cast<size_t>(width * height * 3))) {}

  int64_t width() const { return width_; }
  int64_t height() const { return height_; }
  int64_t stride() const { return width_ * 3; }
  int64_t n_bytes() const { return width_ * height_ * 3; }
  uint8_t* data() { return pixels_.get(); }
  const uint8_t* data() const { return pixels_.get(); }
  uint8_t* row(int64_t y) { return pixels_.get() + y * stride(); }
  const uint8_t* row(int64_t y) const { return pixels_.get() + y * stride(); }
  ImageView view() const { return {pixels_.get(), width_, height_, stride()}; }

 private:
  int64_t width_ = 0;
  int64_t height_ = 0;
  std::unique_ptr<uint8_t[]> pixels_;
};

}  // namespace triptych
