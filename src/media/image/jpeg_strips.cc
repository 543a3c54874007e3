#include "media/image/jpeg_strips.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"

namespace triptych {
namespace {

constexpr int64_t kBandsPerStrip = 4;
constexpr int64_t kRgbRowsPerStrip = 32;

std::unique_ptr<uint8_t[]> make_bytes(int64_t n) {
  return std::make_unique<uint8_t[]>(static_cast<size_t>(n + kRowPadding));
}

}  // namespace

JpegStripReader::Scratch::Scratch(int64_t width)
    : sums_(std::make_unique<uint16_t[]>(static_cast<size_t>(width + 2 * kRowPadding))),
      chroma_{make_bytes(width + kRowPadding), make_bytes(width + kRowPadding)} {}

JpegStripReader::JpegStripReader(JpegSource* source)
    : source_(source), planes_(source->has_planes()) {
  if (planes_) band_ = source->band();
  rows_per_strip_ = planes_ ? kBandsPerStrip * band_.luma_rows : kRgbRowsPerStrip;
  n_strips_ = ceil_div(source->height(), rows_per_strip_);
  if (!planes_) return;
  half_width_ = band_.plane_width[1] < source->width();
  half_height_ = band_.plane_rows[1] < band_.luma_rows;
}

Result<std::unique_ptr<JpegStripReader>> JpegStripReader::start(JpegSource* source) {
  std::unique_ptr<JpegStripReader> reader(new JpegStripReader(source));
  TRIPTYCH_RETURN_IF_ERROR(reader->planes_ ? source->start_planes() : source->start_rows());
  return reader;
}

JpegStrip JpegStripReader::make_strip() const {
  JpegStrip strip;
  if (!planes_) {
    strip.planes[0] = make_bytes(rows_per_strip_ * source_->width() * 3);
    return strip;
  }
  for (size_t p = 0; p < 3; ++p) {
    const int64_t n_rows = kBandsPerStrip * band_.plane_rows[p] + 2;
    strip.planes[p] = make_bytes(n_rows * band_.plane_stride[p]);
  }
  return strip;
}

uint8_t* JpegStripReader::chroma_row(const JpegStrip& strip, size_t plane, int64_t r) const {
  return strip.planes[plane].get() + (r + 1) * band_.plane_stride[plane];
}

Status JpegStripReader::read_planes(JpegStrip* strip) {
  for (int64_t b = 0; b * band_.luma_rows < strip->n_rows; ++b) {
    std::array<uint8_t*, 3> at{};
    for (size_t p = 0; p < 3; ++p) at[p] = chroma_row(*strip, p, b * band_.plane_rows[p]);
    TRIPTYCH_RETURN_IF_ERROR(source_->read_band(at));
  }
  return Status::ok();
}

Status JpegStripReader::read(int64_t index, JpegStrip* strip, JpegStrip* previous) {
  strip->y = index * rows_per_strip_;
  strip->n_rows = std::min(rows_per_strip_, source_->height() - strip->y);
  if (!planes_) {
    const int64_t stride = source_->width() * 3;
    return source_->read_rows(strip->n_rows, strip->planes[0].get(), stride);
  }
  TRIPTYCH_RETURN_IF_ERROR(read_planes(strip));
  for (size_t p = 1; p < 3; ++p) {
    const auto n = static_cast<size_t>(band_.plane_stride[p]);
    const int64_t n_rows = kBandsPerStrip * band_.plane_rows[p];
    if (previous != nullptr) {
      std::memcpy(chroma_row(*previous, p, n_rows), chroma_row(*strip, p, 0), n);
      std::memcpy(chroma_row(*strip, p, -1), chroma_row(*previous, p, n_rows - 1), n);
    } else {
      std::memcpy(chroma_row(*strip, p, -1), chroma_row(*strip, p, 0), n);
    }
    if (index == n_strips_ - 1) {  // the picture's last row is its own lower neighbour
      const int64_t end = band_.plane_height[p] - index * n_rows;
      std::memcpy(chroma_row(*strip, p, end), chroma_row(*strip, p, end - 1), n);
    }
  }
  return Status::ok();
}

void JpegStripReader::rgb_row(const JpegStrip& strip, int64_t y, Scratch* scratch,
                              const PlanarRow& out) const {
  const int64_t r = y - strip.y;
  const int64_t width = source_->width();
  if (!planes_) {
    split_channels(strip.planes[0].get() + r * width * 3, width, out);
    return;
  }
  std::array<const uint8_t*, 2> chroma{};
  for (size_t p = 1; p < 3; ++p) {
    const int64_t near = half_height_ ? r / 2 : r;
    uint8_t* full = scratch->chroma_[p - 1].get();
    if (half_height_) {
      const int64_t far = r % 2 == 0 ? near - 1 : near + 1;
      upsample_h2v2(chroma_row(strip, p, near), chroma_row(strip, p, far), band_.plane_width[p],
                    scratch->sums_.get(), full);
    } else if (half_width_) {
      upsample_h2v1(chroma_row(strip, p, near), band_.plane_width[p], scratch->sums_.get(), full);
    }
    chroma[p - 1] = half_width_ ? full : chroma_row(strip, p, near);
  }
  ycc_to_rgb(chroma_row(strip, 0, r), chroma[0], chroma[1], width, out);
}

}  // namespace triptych
