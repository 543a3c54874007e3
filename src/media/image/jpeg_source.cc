#include "media/image/jpeg_source.h"

#include <fmt/format.h>

#include <csetjmp>
#include <cstdio>
#include <vector>

// After <cstdio>, which jpeglib.h needs and does not include; jerror.h takes its settings.
#include <jpeglib.h>

#include <jerror.h>

#include "base/checked.h"
#include "media/image/decoders.h"

namespace triptych {
namespace {

// A progressive file may name the same coefficients again and again; real ones have about ten
// scans.
constexpr int kMaxScans = 500;

/// libjpeg's error manager with a way back and the message.
struct ErrorManager {
  jpeg_error_mgr base;
  jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void fail(j_common_ptr cinfo) {
  auto* errors = reinterpret_cast<ErrorManager*>(cinfo->err);
  errors->base.format_message(cinfo, errors->message);
  longjmp(errors->jump, 1);
}

/// Warnings after which samples are missing or invented. The others (rubbish between segments,
/// odd JFIF versions or scan orders) leave the picture whole.
bool means_missing_data(j_common_ptr cinfo) {
  switch (cinfo->err->msg_code) {
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_MUST_RESYNC:
      return true;
    // Reading ahead of the last sample of a single scan may touch the end of a file without EOI;
    // in a file of several scans the end means that scans are missing.
    case JWRN_JPEG_EOF:
      return jpeg_has_multiple_scans(reinterpret_cast<j_decompress_ptr>(cinfo)) != FALSE;
    default:
      return false;
  }
}

void on_message(j_common_ptr cinfo, int level) {
  if (level < 0 && means_missing_data(cinfo)) fail(cinfo);
}

void on_output(j_common_ptr) {}

void on_progress(j_common_ptr cinfo) {
  auto* decoder = reinterpret_cast<j_decompress_ptr>(cinfo);
  if (decoder->input_scan_number > kMaxScans) {
    decoder->err->msg_code = JERR_BAD_PROGRESSION;
    fail(cinfo);
  }
}

/// CMYK as Adobe stores it (255 = no ink) to RGB, with Pillow's rounding.
void cmyk_to_rgb(const uint8_t* cmyk, int64_t n, uint8_t* rgb) {
  for (int64_t i = 0; i < n; ++i) {
    const int32_t paper = cmyk[4 * i + 3];
    for (int c = 0; c < 3; ++c) {
      const int32_t product = (255 - cmyk[4 * i + c]) * paper + 128;
      const int32_t ink = ((product >> 8) + product) >> 8;
      rgb[3 * i + c] = static_cast<uint8_t>(paper > ink ? paper - ink : 0);
    }
  }
}

}  // namespace

struct JpegSource::State {
  std::span<const std::byte> bytes;
  jpeg_decompress_struct cinfo{};
  ErrorManager errors{};
  jpeg_progress_mgr progress{};
  bool created = false;
  std::vector<uint8_t> cmyk_row;

  ~State() {
    if (created) jpeg_destroy_decompress(&cinfo);
  }

  /// The only place that calls into libjpeg: false after an error, which status() then tells. What
  /// runs inside has no destructors to skip, and the frame stays its own for setjmp's sake.
  template <typename F>
  [[gnu::noinline]] bool guarded(F&& f) {
    if (setjmp(errors.jump) != 0) return false;
    f();
    return true;
  }

  Status status(std::string_view part) {
    // At the end libjpeg reads from two bytes of its own.
    const auto* begin = reinterpret_cast<const JOCTET*>(bytes.data());
    const JOCTET* next = cinfo.src != nullptr ? cinfo.src->next_input_byte : begin;
    const bool inside = next >= begin && next <= begin + bytes.size();
    const auto at = inside ? static_cast<size_t>(next - begin) : bytes.size();
    return data_loss(
        fmt::format("JPEG: {} at byte {} of {}: {}", part, at, bytes.size(), errors.message));
  }
};

JpegSource::JpegSource(std::unique_ptr<State> state) : state_(std::move(state)) {}
JpegSource::~JpegSource() = default;

int64_t JpegSource::width() const { return state_->cinfo.image_width; }
int64_t JpegSource::height() const { return state_->cinfo.image_height; }

Result<std::unique_ptr<JpegSource>> JpegSource::open(std::span<const std::byte> bytes,
                                                     const ImageHeader& header) {
  auto state = std::make_unique<State>();
  State& s = *state;
  s.bytes = bytes;
  s.cinfo.err = jpeg_std_error(&s.errors.base);
  s.errors.base.error_exit = &fail;
  s.errors.base.emit_message = &on_message;
  s.errors.base.output_message = &on_output;
  s.progress.progress_monitor = &on_progress;
  const bool ok = s.guarded([&s] {
    jpeg_create_decompress(&s.cinfo);
    s.created = true;
    s.cinfo.progress = &s.progress;
    jpeg_mem_src(&s.cinfo, reinterpret_cast<const unsigned char*>(s.bytes.data()), s.bytes.size());
    jpeg_read_header(&s.cinfo, TRUE);
  });
  if (!ok) return s.status("header");
  const StoredSize stored = stored_size(header);
  if (s.cinfo.image_width != stored.width || s.cinfo.image_height != stored.height ||
      s.cinfo.num_components != header.channels) {
    return data_loss("JPEG: two frame headers disagree about the picture's shape");
  }
  s.cinfo.dct_method = JDCT_ISLOW;
  s.cinfo.do_fancy_upsampling = TRUE;
  return std::unique_ptr<JpegSource>(new JpegSource(std::move(state)));
}

bool JpegSource::has_planes() const {
  const jpeg_decompress_struct& cinfo = state_->cinfo;
  if (cinfo.num_components != 3 || cinfo.jpeg_color_space != JCS_YCbCr) return false;
  const jpeg_component_info* c = cinfo.comp_info;
  // Sampling factors in their lowest terms: other spellings of the same ratio take the row path.
  const bool luma = (c[0].h_samp_factor == 1 || c[0].h_samp_factor == 2) &&
                    (c[0].v_samp_factor == 1 || c[0].v_samp_factor == 2);
  const bool chroma = c[1].h_samp_factor == 1 && c[1].v_samp_factor == 1 &&
                      c[2].h_samp_factor == 1 && c[2].v_samp_factor == 1;
  // libjpeg does not interpolate chroma rows of one or two samples.
  const bool wide_enough = width() >= 8;
  return luma && chroma && wide_enough && !(c[0].h_samp_factor == 1 && c[0].v_samp_factor == 2);
}

JpegSource::Band JpegSource::band() const {
  const jpeg_component_info* c = state_->cinfo.comp_info;
  const int64_t h_max = c[0].h_samp_factor;
  const int64_t v_max = c[0].v_samp_factor;
  Band band;
  band.luma_rows = 8 * v_max;
  for (size_t p = 0; p < 3; ++p) {
    band.plane_rows[p] = 8 * c[p].v_samp_factor;
    band.plane_width[p] = ceil_div(width() * c[p].h_samp_factor, h_max);
    band.plane_height[p] = ceil_div(height() * c[p].v_samp_factor, v_max);
    band.plane_stride[p] = round_up(width(), 8 * h_max) * c[p].h_samp_factor / h_max;
  }
  return band;
}

Status JpegSource::start_rows() {
  State& s = *state_;
  const bool cmyk = s.cinfo.num_components == 4;
  s.cinfo.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
  if (cmyk) s.cmyk_row.resize(static_cast<size_t>(width() * 4));
  const bool ok = s.guarded([&s] { jpeg_start_decompress(&s.cinfo); });
  if (!ok) return s.status("picture data");
  return Status::ok();
}

Status JpegSource::read_rows(int64_t n, uint8_t* out, int64_t stride) {
  State& s = *state_;
  const bool ok = s.guarded([&] {
    for (int64_t done = 0; done < n;) {
      if (!s.cmyk_row.empty()) {
        JSAMPROW row = s.cmyk_row.data();
        jpeg_read_scanlines(&s.cinfo, &row, 1);
        cmyk_to_rgb(row, width(), out + done * stride);
        ++done;
        continue;
      }
      // A few rows at once let libjpeg hand out a whole group of upsampled rows.
      JSAMPROW rows[4];
      const auto want = static_cast<JDIMENSION>(n - done < 4 ? n - done : 4);
      for (JDIMENSION i = 0; i < want; ++i) rows[i] = out + (done + i) * stride;
      done += jpeg_read_scanlines(&s.cinfo, rows, want);
    }
  });
  if (!ok) return s.status(fmt::format("row {}", s.cinfo.output_scanline));
  return Status::ok();
}

Status JpegSource::start_planes() {
  State& s = *state_;
  s.cinfo.raw_data_out = TRUE;
  s.cinfo.out_color_space = JCS_YCbCr;
  const bool ok = s.guarded([&s] { jpeg_start_decompress(&s.cinfo); });
  if (!ok) return s.status("picture data");
  return Status::ok();
}

Status JpegSource::read_band(const std::array<uint8_t*, 3>& planes) {
  State& s = *state_;
  const Band shape = band();
  constexpr size_t kMostRows = 16;
  JSAMPROW rows[3][kMostRows];
  JSAMPARRAY arrays[3];
  for (size_t p = 0; p < 3; ++p) {
    for (int64_t y = 0; y < shape.plane_rows[p]; ++y) {
      rows[p][y] = planes[p] + y * shape.plane_stride[p];
    }
    arrays[p] = rows[p];
  }
  const bool ok = s.guarded(
      [&] { jpeg_read_raw_data(&s.cinfo, arrays, static_cast<JDIMENSION>(shape.luma_rows)); });
  if (!ok) return s.status(fmt::format("row {}", s.cinfo.output_scanline));
  return Status::ok();
}

}  // namespace triptych
