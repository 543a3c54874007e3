#include "media/image/decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "media/image/test_pixels.h"

namespace triptych {
namespace {

using test::as_bytes;
using test::load_sample;
using testing::HasSubstr;

int largest_difference(const Image& a, const Image& b) {
  int worst = 0;
  for (int64_t i = 0; i < a.n_bytes(); ++i)
    worst = std::max(worst, std::abs(a.data()[i] - b.data()[i]));
  return worst;
}

TEST(Decode, EqualsPillow) {
  const Json golden = test::load_golden("decode.json");
  for (const Json& entry : golden.find("cases")->elements()) {
    const std::string& name = entry.find("file")->string_value();
    SCOPED_TRACE(name);
    const std::string file = load_sample(name);
    const auto image = decode_image(as_bytes(file));
    ASSERT_TRUE(image.is_ok()) << image.status().message();
    const auto& size = entry.find("size")->elements();
    ASSERT_EQ(image->width(), size[0].int_value());
    ASSERT_EQ(image->height(), size[1].int_value());
    if (const Json* picture = entry.find("picture")) {
      // Another version of the codec made these: a level or two of difference is allowed.
      const auto expected = decode_image(as_bytes(
          test::load_file(std::string(test::kGoldens) + "decoded/" + picture->string_value())));
      ASSERT_TRUE(expected.is_ok());
      EXPECT_LE(largest_difference(*image, *expected), 2);
    } else if (const Json* crc = entry.find("crc32")) {
      EXPECT_EQ(test::crc32(*image), crc->int_value());
    }
  }
}

TEST(Decode, InterlacingChangesNothing) {
  for (const char* kind : {"type0_depth1", "type0_depth16", "type2_depth16", "type3_depth2",
                           "type4_depth16", "type6_depth8", "type6_depth16"}) {
    const std::string name = std::string("png_") + kind;
    const auto plain = decode_image(as_bytes(load_sample(name + ".png")));
    const auto interlaced = decode_image(as_bytes(load_sample(name + "_interlaced.png")));
    ASSERT_TRUE(plain.is_ok() && interlaced.is_ok()) << name;
    EXPECT_EQ(test::crc32(*plain), test::crc32(*interlaced)) << name;
  }
}

// The key of these files is the sample at (4, 3).
TEST(Decode, PngColourKeyBecomesBackground) {
  for (const char* kind : {"type0_depth1", "type0_depth2", "type0_depth4", "type0_depth8",
                           "type0_depth16", "type2_depth8", "type2_depth16"}) {
    const std::string name = std::string("png_") + kind;
    const auto opaque = decode_image(as_bytes(load_sample(name + ".png")));
    const auto keyed = decode_image(as_bytes(load_sample(name + "_trns.png")));
    ASSERT_TRUE(opaque.is_ok() && keyed.is_ok()) << name;
    const auto key = test::pixel(*opaque, 4, 3);
    const std::array<int, 3> white = {255, 255, 255};
    EXPECT_EQ(test::pixel(*keyed, 4, 3), white) << name;
    // Of 16 bits, several samples share the byte of the key.
    if (name.ends_with("16")) continue;
    for (int64_t y = 0; y < opaque->height(); ++y) {
      for (int64_t x = 0; x < opaque->width(); ++x) {
        const auto value = test::pixel(*opaque, x, y);
        EXPECT_EQ(test::pixel(*keyed, x, y), value == key ? white : value) << name;
      }
    }
  }
}

TEST(Decode, ProbeAgreesWithTheDecoder) {
  const Json golden = test::load_golden("decode.json");
  for (const Json& entry : golden.find("cases")->elements()) {
    const std::string& name = entry.find("file")->string_value();
    const std::string file = load_sample(name);
    const auto header = probe_image(as_bytes(file));
    ASSERT_TRUE(header.is_ok()) << name << ": " << header.status().message();
    EXPECT_EQ(header->width, entry.find("size")->elements()[0].int_value()) << name;
    EXPECT_EQ(header->height, entry.find("size")->elements()[1].int_value()) << name;
    EXPECT_GE(header->decoded_bytes, header->width * header->height * 3) << name;
    EXPECT_EQ(header->animated, name.starts_with("animated")) << name;
    EXPECT_EQ(header->progressive, name.find("progressive") != std::string::npos ||
                                       name.find("_interlaced.png") != std::string::npos)
        << name;
  }
}

// Every prefix of every sample: an error or a picture, never a crash; and a picture only when no
// sample of it is missing.
TEST(Decode, PrefixesNeverGiveOtherPictures) {
  const Json golden = test::load_golden("decode.json");
  for (const Json& entry : golden.find("cases")->elements()) {
    const std::string& name = entry.find("file")->string_value();
    const std::string file = load_sample(name);
    const auto whole = decode_image(as_bytes(file));
    ASSERT_TRUE(whole.is_ok()) << name;
    const uint32_t crc = test::crc32(*whole);
    const size_t step = file.size() / 97 + 1;
    for (size_t n = 0; n < file.size(); n += n + 40 < file.size() ? step : 1) {
      const std::string cut = file.substr(0, n);
      const auto image = decode_image(as_bytes(cut));
      // EXIF behind the data may be lost with the end of a file; the samples may not.
      if (!image.is_ok() || name.starts_with("exif")) continue;
      EXPECT_EQ(test::crc32(*image), crc) << name << " cut to " << n << " of " << file.size();
    }
  }
}

TEST(Decode, FlippedBytesNeverCrash) {
  const Json golden = test::load_golden("decode.json");
  uint32_t state = 1;
  for (const Json& entry : golden.find("cases")->elements()) {
    const std::string file = load_sample(entry.find("file")->string_value());
    for (int i = 0; i < 30; ++i) {
      std::string broken = file;
      for (int k = 0; k < 3; ++k) {
        state = state * 1664525u + 1013904223u;
        broken[(state >> 8) % broken.size()] = static_cast<char>(state);
      }
      ImageLimits limits;
      limits.max_pixels = 1 << 20;
      (void)decode_image(as_bytes(broken), {.limits = limits});
    }
  }
}

TEST(Decode, CutFilesNamePartAndByte) {
  for (const auto& [name, part] : {std::pair{"jpeg_420.jpg", "row"},
                                   {"jpeg_420_progressive.jpg", "picture data"},
                                   {"png_type2_depth8.png", "row"},
                                   {"lossless.webp", "cut off"},
                                   {"palette.gif", "row"},
                                   {"rgb24.bmp", "pixel data"}}) {
    const std::string file = load_sample(name);
    const std::string half = file.substr(0, file.size() * 3 / 4);
    const auto image = decode_image(as_bytes(half));
    ASSERT_FALSE(image.is_ok()) << name;
    EXPECT_EQ(image.status().code(), StatusCode::kDataLoss) << image.status().message();
    EXPECT_THAT(image.status().message(), HasSubstr(part));
    EXPECT_THAT(image.status().message(), HasSubstr("byte"));
  }
}

TEST(Decode, BackgroundIsConfigurable) {
  const std::string file = load_sample("transparent.gif");
  const auto white = decode_image(as_bytes(file));
  const auto black = decode_image(as_bytes(file), {.background = {0, 0, 0}});
  ASSERT_TRUE(white.is_ok() && black.is_ok());
  EXPECT_THAT(test::pixel(*white, 2, 0), testing::ElementsAre(255, 255, 255));
  EXPECT_THAT(test::pixel(*black, 2, 0), testing::ElementsAre(0, 0, 0));
  EXPECT_EQ(test::pixel(*white, 0, 0), test::pixel(*black, 0, 0));
}

TEST(Decode, TransparentPngOverBackground) {
  const std::string file = load_sample("hidden_rgb.png");
  const auto black = decode_image(as_bytes(file), {.background = {0, 0, 0}});
  ASSERT_TRUE(black.is_ok());
  EXPECT_THAT(test::pixel(*black, 0, 0), testing::ElementsAre(0, 0, 0));
}

/// A BMP made by hand: 2 x 2 pixels of `depth` bits behind a 40-byte header.
std::string small_bmp(int depth, uint32_t compression, int height, const std::string& rest) {
  std::string out = "BM";
  const auto put = [&out](uint32_t v, int n) {
    for (int i = 0; i < n; ++i) out.push_back(static_cast<char>(v >> (8 * i)));
  };
  put(0, 4);
  put(0, 4);
  put(54 + (compression == 3 ? 12u : 0u), 4);
  put(40, 4);
  put(2, 4);
  put(static_cast<uint32_t>(height), 4);
  put(1, 2);
  put(static_cast<uint32_t>(depth), 2);
  put(compression, 4);
  for (int i = 0; i < 5; ++i) put(0, 4);
  return out + rest;
}

TEST(Decode, BmpKinds) {
  // 5-5-5, top down: red, green / blue, white
  const std::string packed("\x00\x7C\xE0\x03\x1F\x00\xFF\x7F", 8);
  const auto top_down = decode_image(as_bytes(small_bmp(16, 0, -2, packed)));
  ASSERT_TRUE(top_down.is_ok()) << top_down.status().message();
  EXPECT_THAT(test::pixel(*top_down, 0, 0), testing::ElementsAre(255, 0, 0));
  EXPECT_THAT(test::pixel(*top_down, 1, 1), testing::ElementsAre(255, 255, 255));
  const auto bottom_up = decode_image(as_bytes(small_bmp(16, 0, 2, packed)));
  ASSERT_TRUE(bottom_up.is_ok());
  EXPECT_THAT(test::pixel(*bottom_up, 0, 1), testing::ElementsAre(255, 0, 0));
  // 5-6-5 by masks
  const std::string masks("\x00\xF8\0\0\xE0\x07\0\0\x1F\0\0\0", 12);
  const std::string pixels("\x00\xF8\xE0\x07\x1F\x00\xFF\xFF", 8);
  const auto fields = decode_image(as_bytes(small_bmp(16, 3, -2, masks + pixels)));
  ASSERT_TRUE(fields.is_ok()) << fields.status().message();
  EXPECT_THAT(test::pixel(*fields, 1, 0), testing::ElementsAre(0, 255, 0));
  const auto rle = decode_image(as_bytes(small_bmp(8, 1, 2, std::string(2000, '\0'))));
  EXPECT_EQ(rle.status().code(), StatusCode::kUnsupported);
}

TEST(Probe, LimitsNameBothNumbers) {
  const std::string file = load_sample("jpeg_420.jpg");  // 53 x 37
  ImageLimits limits;
  limits.max_pixels = 1000;
  const auto pixels = probe_image(as_bytes(file), limits);
  EXPECT_EQ(pixels.status().code(), StatusCode::kOutOfRange);
  EXPECT_THAT(pixels.status().message(), HasSubstr("1961"));
  EXPECT_THAT(pixels.status().message(), HasSubstr("1000"));
  limits = {};
  limits.max_side = 50;
  EXPECT_THAT(probe_image(as_bytes(file), limits).status().message(), HasSubstr("53 x 37"));
  limits = {};
  limits.max_file_bytes = 100;
  EXPECT_EQ(probe_image(as_bytes(file), limits).status().code(), StatusCode::kOutOfRange);
}

TEST(Probe, ZeroSidesAndEmptyInput) {
  std::string file = load_sample("png_type2_depth8.png");
  for (int i = 16; i < 20; ++i) file[static_cast<size_t>(i)] = 0;
  const auto zero = probe_image(as_bytes(file));
  EXPECT_EQ(zero.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(zero.status().message(), HasSubstr("zero"));
  EXPECT_THAT(probe_image({}).status().message(), HasSubstr("empty"));
}

}  // namespace
}  // namespace triptych
