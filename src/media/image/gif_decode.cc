#include <fmt/format.h>
#include <gif_lib.h>

#include <cstring>
#include <memory>
#include <vector>

#include "media/image/composite.h"
#include "media/image/decoders.h"

namespace triptych {
namespace {

struct GifBytes {
  std::span<const std::byte> bytes;
  size_t at = 0;
};

int read_bytes(GifFileType* gif, GifByteType* out, int n) {
  auto* source = static_cast<GifBytes*>(gif->UserData);
  const size_t left = source->bytes.size() - source->at;
  const size_t taken = std::min(left, static_cast<size_t>(n));
  std::memcpy(out, source->bytes.data() + source->at, taken);
  source->at += taken;
  return static_cast<int>(taken);
}

struct GifClose {
  void operator()(GifFileType* gif) const {
    int ignored = 0;
    DGifCloseFile(gif, &ignored);
  }
};
using GifPointer = std::unique_ptr<GifFileType, GifClose>;

Status gif_error(int code, std::string_view part, const GifBytes& source) {
  const char* text = GifErrorString(code);
  return data_loss(fmt::format("GIF: {} at byte {} of {}: {}", part, source.at, source.bytes.size(),
                               text != nullptr ? text : "corrupt data"));
}

constexpr int kNoTransparency = -1;

/// Walks to the first image; gives the transparent index that its graphics control block sets.
Status find_first_frame(GifFileType* gif, const GifBytes& source, int* transparent) {
  for (;;) {
    GifRecordType record = UNDEFINED_RECORD_TYPE;
    if (DGifGetRecordType(gif, &record) == GIF_ERROR) {
      return gif_error(gif->Error, "block header", source);
    }
    if (record == IMAGE_DESC_RECORD_TYPE) {
      if (DGifGetImageDesc(gif) == GIF_ERROR) {
        return gif_error(gif->Error, "image descriptor", source);
      }
      return Status::ok();
    }
    if (record != EXTENSION_RECORD_TYPE) return gif_error(D_GIF_ERR_NO_IMAG_DSCR, "file", source);
    int label = 0;
    GifByteType* block = nullptr;
    int rc = DGifGetExtension(gif, &label, &block);
    while (rc != GIF_ERROR && block != nullptr) {
      GraphicsControlBlock control;
      if (label == GRAPHICS_EXT_FUNC_CODE &&
          DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK) {
        *transparent = control.TransparentColor;
      }
      rc = DGifGetExtensionNext(gif, &block);
    }
    if (rc == GIF_ERROR) return gif_error(gif->Error, "extension block", source);
  }
}

/// Row of the frame that the i-th stored row is, interlaced or not (GIF89a appendix E).
int64_t row_of(int64_t i, int64_t height, bool interlaced) {
  if (!interlaced) return i;
  constexpr int64_t kStart[] = {0, 4, 2, 1};
  constexpr int64_t kStep[] = {8, 8, 4, 2};
  for (int pass = 0; pass < 4; ++pass) {
    const int64_t n = height > kStart[pass] ? (height - kStart[pass] - 1) / kStep[pass] + 1 : 0;
    if (i < n) return kStart[pass] + i * kStep[pass];
    i -= n;
  }
  return height - 1;
}

}  // namespace

Result<Image> decode_gif(std::span<const std::byte> bytes, const ImageHeader& header,
                         const DecodeOptions& options) {
  GifBytes source{bytes};
  int open_error = 0;
  const GifPointer gif(DGifOpen(&source, &read_bytes, &open_error));
  if (!gif) return gif_error(open_error, "header", source);
  int transparent = kNoTransparency;
  TRIPTYCH_RETURN_IF_ERROR(find_first_frame(gif.get(), source, &transparent));
  const GifImageDesc& frame = gif->Image;
  const ColorMapObject* colors = frame.ColorMap != nullptr ? frame.ColorMap : gif->SColorMap;
  if (colors == nullptr) return data_loss("GIF: the first frame has no colour table");
  if (frame.Left < 0 || frame.Top < 0 || frame.Width < 1 || frame.Height < 1 ||
      frame.Left + frame.Width > header.width || frame.Top + frame.Height > header.height) {
    return data_loss("GIF: the first frame does not fit the screen");
  }
  // What the frame leaves free of the screen is transparent.
  Image image(header.width, header.height);
  for (int64_t i = 0; i < header.width * header.height; ++i) {
    std::memcpy(image.data() + 3 * i, options.background.data(), 3);
  }
  std::vector<GifPixelType> indices(static_cast<size_t>(frame.Width));
  for (int64_t i = 0; i < frame.Height; ++i) {
    if (DGifGetLine(gif.get(), indices.data(), frame.Width) == GIF_ERROR) {
      return gif_error(gif->Error, fmt::format("row {}", i), source);
    }
    uint8_t* out = image.row(frame.Top + row_of(i, frame.Height, frame.Interlace)) + 3 * frame.Left;
    for (const GifPixelType index : indices) {
      if (index != transparent && index < colors->ColorCount) {
        const GifColorType& color = colors->Colors[index];
        out[0] = color.Red;
        out[1] = color.Green;
        out[2] = color.Blue;
      }
      out += 3;
    }
  }
  return image;
}

}  // namespace triptych
