#include <fmt/format.h>
#include <webp/decode.h>
#include <webp/demux.h>

#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "media/image/composite.h"
#include "media/image/decoders.h"

namespace triptych {
namespace {

struct DemuxerDelete {
  void operator()(WebPDemuxer* demuxer) const { WebPDemuxDelete(demuxer); }
};

/// The first frame of a WebP file. The frame iterator has to be released before its demuxer.
class FirstFrame {
 public:
  explicit FirstFrame(const WebPData& data) {
    WebPDemuxState state = WEBP_DEMUX_PARSING_HEADER;
    demuxer_.reset(WebPDemuxPartial(&data, &state));
    state_ = state;
    if (demuxer_) found_ = WebPDemuxGetFrame(demuxer_.get(), 1, &frame_) != 0;
  }
  ~FirstFrame() {
    if (found_) WebPDemuxReleaseIterator(&frame_);
  }
  FirstFrame(const FirstFrame&) = delete;
  FirstFrame& operator=(const FirstFrame&) = delete;

  bool parsed() const { return state_ == WEBP_DEMUX_DONE; }
  bool found() const { return found_ && frame_.complete != 0; }
  bool broken() const { return state_ == WEBP_DEMUX_PARSE_ERROR || !demuxer_; }
  const WebPIterator& frame() const { return frame_; }
  int64_t canvas_width() const { return WebPDemuxGetI(demuxer_.get(), WEBP_FF_CANVAS_WIDTH); }
  int64_t canvas_height() const { return WebPDemuxGetI(demuxer_.get(), WEBP_FF_CANVAS_HEIGHT); }

 private:
  std::unique_ptr<WebPDemuxer, DemuxerDelete> demuxer_;
  WebPDemuxState state_ = WEBP_DEMUX_PARSE_ERROR;
  WebPIterator frame_{};
  bool found_ = false;
};

std::string_view vp8_status_name(VP8StatusCode code) {
  switch (code) {
    case VP8_STATUS_OUT_OF_MEMORY:
      return "out of memory";
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return "the data is cut off";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "a coding feature that libwebp does not know";
    default:
      return "the bitstream is corrupt";
  }
}

/// Decodes one frame into `out`, rows `stride` bytes apart.
Status decode_frame(const WebPIterator& frame, WEBP_CSP_MODE mode, uint8_t* out, int64_t stride,
                    int64_t out_bytes) {
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) return internal_error("libwebp has another ABI");
  config.output.colorspace = mode;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = out;
  config.output.u.RGBA.stride = static_cast<int>(stride);
  config.output.u.RGBA.size = static_cast<size_t>(out_bytes);
  const VP8StatusCode code = WebPDecode(frame.fragment.bytes, frame.fragment.size, &config);
  if (code == VP8_STATUS_OK) return Status::ok();
  return data_loss(
      fmt::format("WebP: frame data of {} bytes: {}", frame.fragment.size, vp8_status_name(code)));
}

}  // namespace

Result<Image> decode_webp(std::span<const std::byte> bytes, const ImageHeader& header,
                          const DecodeOptions& options) {
  const WebPData data = {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
  const FirstFrame first(data);
  if (first.broken()) return data_loss("WebP: the chunk structure is corrupt");
  if (!first.found() || (!first.parsed() && !header.animated)) {
    return data_loss(fmt::format("WebP: the file is cut off at byte {}", bytes.size()));
  }
  const WebPIterator& frame = first.frame();
  const StoredSize canvas = stored_size(header);
  if (first.canvas_width() != canvas.width || first.canvas_height() != canvas.height ||
      frame.x_offset < 0 || frame.y_offset < 0 || frame.width < 1 || frame.height < 1 ||
      frame.x_offset + frame.width > canvas.width ||
      frame.y_offset + frame.height > canvas.height) {
    return data_loss("WebP: the first frame does not fit the canvas");
  }
  const bool whole = frame.width == canvas.width && frame.height == canvas.height;
  Image image(canvas.width, canvas.height);
  if (whole && frame.has_alpha == 0) {
    TRIPTYCH_RETURN_IF_ERROR(
        decode_frame(frame, MODE_RGB, image.data(), image.stride(), image.n_bytes()));
    return image;
  }
  // What the frame leaves free of the canvas is transparent.
  const int64_t stride = canvas.width * 4;
  std::vector<uint8_t> rgba(static_cast<size_t>(stride * canvas.height), 0);
  const int64_t offset = frame.y_offset * stride + frame.x_offset * 4;
  TRIPTYCH_RETURN_IF_ERROR(decode_frame(frame, MODE_RGBA, rgba.data() + offset, stride,
                                        static_cast<int64_t>(rgba.size()) - offset));
  for (int64_t y = 0; y < canvas.height; ++y) {
    composite_over(rgba.data() + y * stride, canvas.width, options.background, image.row(y));
  }
  return image;
}

}  // namespace triptych
