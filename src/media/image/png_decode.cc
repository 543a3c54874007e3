#include <fmt/format.h>
#include <png.h>
#include <csetjmp>
#include <cstring>

#include <array>
#include <string>
#include <vector>

#include "media/image/composite.h"
#include "media/image/decoders.h"

namespace triptych {
namespace {

/// A libpng reader over a span. libpng reports errors by longjmp: guarded() is the only place that
/// calls into it, and what runs inside has no destructors to skip.
class PngReader {
 public:
  explicit PngReader(std::span<const std::byte> bytes) : bytes_(bytes) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, &PngReader::on_error,
                                  &PngReader::on_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  ~PngReader() {
    if (png_ != nullptr) png_destroy_read_struct(&png_, &info_, nullptr);
  }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  png_structp png() const { return png_; }
  png_infop info() const { return info_; }
  bool ready() const { return info_ != nullptr; }
  void* self() { return this; }
  static png_rw_ptr read_function() { return &PngReader::on_read; }

  /// Runs `f`; false when libpng raised an error, which status() then tells. Its frame stays its
  /// own, so that no local of a caller lives in a register across setjmp.
  template <typename F>
  [[gnu::noinline]] bool guarded(F&& f) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    f();
    return true;
  }

  Status status(std::string_view part) const {
    return data_loss(
        fmt::format("PNG: {} at byte {} of {}: {}", part, at_, bytes_.size(), message_.data()));
  }

 private:
  static void on_error(png_structp png, png_const_charp message) {
    auto* self = static_cast<PngReader*>(png_get_error_ptr(png));
    std::strncpy(self->message_.data(), message, self->message_.size() - 1);
    longjmp(png_jmpbuf(png), 1);
  }
  // Warnings are about ancillary chunks, which never change the pixels that we take.
  static void on_warning(png_structp, png_const_charp) {}
  static void on_read(png_structp png, png_bytep out, size_t n) {
    auto* self = static_cast<PngReader*>(png_get_io_ptr(png));
    if (n > self->bytes_.size() - self->at_) {
      self->at_ = self->bytes_.size();
      png_error(png, "the file is cut off here");
    }
    std::memcpy(out, self->bytes_.data() + self->at_, n);
    self->at_ += n;
  }

  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::array<char, 128> message_{};
};

/// Chunks that describe the picture without changing stored samples. They are skipped unread, so
/// that a broken or huge profile or text does no harm.
void ignore_descriptive_chunks(png_structp png) {
  static constexpr char kChunks[] =
      "iCCP\0gAMA\0cHRM\0sRGB\0sBIT\0bKGD\0hIST\0pHYs\0sPLT\0tIME\0tEXt\0zTXt\0iTXt\0eXIf\0oFFs\0"
      "pCAL\0sCAL\0acTL\0fcTL\0fdAT";
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER,
                              reinterpret_cast<png_const_bytep>(kChunks),
                              static_cast<int>(sizeof(kChunks) / 5));
}

/// Transforms to 8-bit RGB or RGBA; true when the rows will carry alpha.
bool set_transforms(png_structp png, png_infop info) {
  const auto color_type = png_get_color_type(png, info);
  const bool transparent =
      (color_type & PNG_COLOR_MASK_ALPHA) != 0 || png_get_valid(png, info, PNG_INFO_tRNS) != 0;
  png_set_expand(png);    // palette to RGB, small gray to 8 bits, tRNS to alpha
  png_set_scale_16(png);  // v / 257, rounded; dropping the low byte would be off by one
  png_set_gray_to_rgb(png);
  return transparent;
}

struct PngRows {
  int64_t width = 0;
  int64_t height = 0;
  bool alpha = false;
  int n_passes = 1;
};

Status read_header(PngReader* reader, PngRows* rows) {
  const bool ok = reader->guarded([&] {
    png_set_read_fn(reader->png(), reader->self(), PngReader::read_function());
    png_set_crc_action(reader->png(), PNG_CRC_DEFAULT, PNG_CRC_QUIET_USE);
    ignore_descriptive_chunks(reader->png());
    png_read_info(reader->png(), reader->info());
    rows->width = png_get_image_width(reader->png(), reader->info());
    rows->height = png_get_image_height(reader->png(), reader->info());
    rows->alpha = set_transforms(reader->png(), reader->info());
    rows->n_passes = png_set_interlace_handling(reader->png());
    png_read_update_info(reader->png(), reader->info());
  });
  return ok ? Status::ok() : reader->status("header");
}

}  // namespace

Result<Image> decode_png(std::span<const std::byte> bytes, const ImageHeader& header,
                         const DecodeOptions& options) {
  PngReader reader(bytes);
  if (!reader.ready()) return resource_exhausted("PNG: no memory for the decoder");
  PngRows rows;
  TRIPTYCH_RETURN_IF_ERROR(read_header(&reader, &rows));
  const StoredSize stored = stored_size(header);
  const auto row_bytes = static_cast<int64_t>(png_get_rowbytes(reader.png(), reader.info()));
  if (rows.width != stored.width || rows.height != stored.height ||
      row_bytes != rows.width * (rows.alpha ? 4 : 3)) {
    return data_loss("PNG: the header and the decoder disagree about the picture's shape");
  }
  Image image(rows.width, rows.height);
  // Interlaced rows come in passes over the same memory, so alpha needs the whole picture at once;
  // else a row at a time will do.
  const int64_t rgba_rows = !rows.alpha ? 0 : rows.n_passes > 1 ? rows.height : 1;
  std::vector<uint8_t> rgba(static_cast<size_t>(rgba_rows * rows.width * 4));
  int64_t y = 0;
  const bool ok = reader.guarded([&] {
    for (int pass = 0; pass < rows.n_passes; ++pass) {
      for (y = 0; y < rows.height; ++y) {
        if (!rows.alpha) {
          png_read_row(reader.png(), image.row(y), nullptr);
          continue;
        }
        uint8_t* row = rgba.data() + (rgba_rows > 1 ? y * row_bytes : 0);
        png_read_row(reader.png(), row, nullptr);
        if (pass == rows.n_passes - 1) {
          composite_over(row, rows.width, options.background, image.row(y));
        }
      }
    }
  });
  if (!ok) return reader.status(fmt::format("row {}", y));
  return image;
}

}  // namespace triptych
