#include "media/image/jpeg_strips.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <jpeglib.h>

#include "media/image/decode.h"
#include "media/image/test_pixels.h"

namespace triptych {
namespace {

/// Noise as a JPEG with the given sampling factors of the luma component.
std::string make_jpeg(int width, int height, int h_factor, int v_factor) {
  const Image image = test::noise_image(width, height, static_cast<uint32_t>(width * 7 + height));
  jpeg_compress_struct cinfo;
  jpeg_error_mgr errors;
  cinfo.err = jpeg_std_error(&errors);
  jpeg_create_compress(&cinfo);
  unsigned char* data = nullptr;
  unsigned long n_bytes = 0;
  jpeg_mem_dest(&cinfo, &data, &n_bytes);
  cinfo.image_width = static_cast<JDIMENSION>(width);
  cinfo.image_height = static_cast<JDIMENSION>(height);
  cinfo.input_components = 3;
  cinfo.in_color_space = JCS_RGB;
  jpeg_set_defaults(&cinfo);
  jpeg_set_quality(&cinfo, 90, TRUE);
  cinfo.comp_info[0].h_samp_factor = h_factor;
  cinfo.comp_info[0].v_samp_factor = v_factor;
  jpeg_start_compress(&cinfo, TRUE);
  while (cinfo.next_scanline < cinfo.image_height) {
    auto* row = const_cast<JSAMPROW>(image.row(cinfo.next_scanline));
    jpeg_write_scanlines(&cinfo, &row, 1);
  }
  jpeg_finish_compress(&cinfo);
  jpeg_destroy_compress(&cinfo);
  std::string out(reinterpret_cast<const char*>(data), n_bytes);
  std::free(data);
  return out;
}

Image decode_by_strips(const std::string& file, bool* planes) {
  const auto header = probe_image(test::as_bytes(file));
  EXPECT_TRUE(header.is_ok());
  auto source = JpegSource::open(test::as_bytes(file), *header);
  EXPECT_TRUE(source.is_ok());
  *planes = (*source)->has_planes();
  auto reader = JpegStripReader::start(source->get());
  EXPECT_TRUE(reader.is_ok());
  const int64_t width = (*source)->width();
  Image out(width, (*source)->height());
  std::vector<uint8_t> planar(static_cast<size_t>(3 * (width + kRowPadding)));
  JpegStripReader::Scratch scratch(width);
  const auto take = [&](const JpegStrip& strip) {
    for (int64_t y = strip.y; y < strip.y + strip.n_rows; ++y) {
      uint8_t* p = planar.data();
      const PlanarRow row = {p, p + width + kRowPadding, p + 2 * (width + kRowPadding)};
      (*reader)->rgb_row(strip, y, &scratch, row);
      join_channels({row[0], row[1], row[2]}, width, out.row(y));
    }
  };
  std::vector<JpegStrip> strips;
  for (int64_t i = 0; i < (*reader)->n_strips(); ++i) {
    strips.push_back((*reader)->make_strip());
    const auto n = strips.size();
    EXPECT_TRUE((*reader)->read(i, &strips[n - 1], i > 0 ? &strips[n - 2] : nullptr).is_ok());
    if (i > 0) take(strips[n - 2]);
  }
  take(strips.back());
  return out;
}

// Upsampling and colour conversion are ours on this way and libjpeg's on the other.
TEST(JpegStrips, EqualsLibjpeg) {
  for (const auto& [h, v] : {std::pair{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}}) {
    for (const auto& [width, height] : {std::pair{8, 8},
                                        {9, 7},
                                        {16, 64},
                                        {17, 65},
                                        {33, 63},
                                        {64, 128},
                                        {65, 129},
                                        {130, 200},
                                        {257, 31},
                                        {1, 100},
                                        {3, 40},
                                        {100, 1},
                                        {511, 97}}) {
      const std::string file = make_jpeg(width, height, h, v);
      bool planes = false;
      const Image strips = decode_by_strips(file, &planes);
      const auto whole = decode_image(test::as_bytes(file));
      ASSERT_TRUE(whole.is_ok());
      EXPECT_EQ(test::crc32(strips), test::crc32(*whole))
          << width << " x " << height << " sampling " << h << " x " << v << " planes " << planes;
      EXPECT_EQ(planes, width >= 8 && h <= 2 && h >= v);
    }
  }
}

}  // namespace
}  // namespace triptych
