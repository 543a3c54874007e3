// Reports about pictures from other servers and decoders, each as a small case: what was sent and
// what has to come out.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "media/image/recipe.h"

namespace triptych {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Pixel = std::vector<int>;

std::span<const std::byte> as_bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::string sample(const std::string& name) {
  auto file = read_file("tests/field/data/image/" + name);
  EXPECT_TRUE(file.is_ok()) << file.status().message();
  return file.is_ok() ? std::move(file).value() : std::string();
}

Image decode(const std::string& name) {
  const std::string file = sample(name);
  auto image = decode_image(as_bytes(file));
  EXPECT_TRUE(image.is_ok()) << name << ": " << image.status().message();
  return image.is_ok() ? std::move(image).value() : Image(1, 1);
}

Pixel pixel(const Image& image, int64_t x, int64_t y) {
  const uint8_t* at = image.row(y) + 3 * x;
  return {at[0], at[1], at[2]};
}

/// The corner colour by its letter, whatever a lossy coder made of it.
char letter(const Pixel& p) {
  const bool r = p[0] > 127, g = p[1] > 127, b = p[2] > 127;
  if (r && g && !b) return 'Y';
  if (r && !g && !b) return 'R';
  if (!r && g && !b) return 'G';
  return !r && !g && b ? 'B' : '?';
}

ImageRecipe recipe_of(const std::string& text) {
  const auto json = parse_json(text);
  EXPECT_TRUE(json.is_ok());
  auto recipe = parse_image_recipe(JsonRef(*json, "preprocessor_config.json"));
  EXPECT_TRUE(recipe.is_ok()) << recipe.status().message();
  return std::move(recipe).value();
}

// F01: a JPEG with an EXIF orientation reaches the model as raw sensor pixels.
TEST(ImageField, F01ExifOrientationIsApplied) {
  std::string corners;
  for (int tag = 1; tag <= 8; ++tag) {
    const std::string name = "orientation_" + std::to_string(tag) + ".jpg";
    const Image image = decode(name);
    const bool swapped = tag >= 5;
    EXPECT_EQ(image.width(), swapped ? 224 : 448) << name;
    EXPECT_EQ(image.height(), swapped ? 448 : 224) << name;
    corners += letter(pixel(image, 20, 20));
    const auto header = probe_image(as_bytes(sample(name)));
    ASSERT_TRUE(header.is_ok());
    EXPECT_EQ(header->width, image.width());
    EXPECT_EQ(header->orientation, tag);
  }
  EXPECT_EQ(corners, "RGYBRBYG");
  EXPECT_EQ(letter(pixel(decode("orientation_broken.jpg"), 20, 20)), 'R');
  EXPECT_EQ(decode("exif6_before.png").width(), 16);
  EXPECT_EQ(decode("exif6_after.png").width(), 16);
}

// F03: 16-bit PNG comes out white, black or with lost colours.
TEST(ImageField, F03SixteenBitsBecomeEight) {
  for (const char* name : {"gray16_ramp.png", "rgb16_ramp.png"}) {
    const Image image = decode(name);
    for (int x = 0; x < 256; ++x) EXPECT_THAT(pixel(image, x, 2), ElementsAre(x, x, x)) << name;
  }
}

// F04: alpha is dropped instead of composited.
TEST(ImageField, F04AlphaIsCompositedOverWhite) {
  const Image image = decode("hidden_rgb.png");
  for (int64_t x = 0; x < image.width(); ++x) {
    EXPECT_THAT(pixel(image, x, 2), ElementsAre(255, 255, 255));
    // 200, 100, 50 at alpha 128
    EXPECT_THAT(pixel(image, x, 25), ElementsAre(227, 177, 152));
  }
  EXPECT_THAT(pixel(image, 10, 10), ElementsAre(0, 0, 0));
}

// F06: a cut JPEG ends in a 500, and some valid progressive files are refused.
TEST(ImageField, F06CutJpegsAreErrorsAndTwinsAreEqual) {
  for (const char* name : {"noise_baseline.jpg", "noise_progressive.jpg"}) {
    const std::string file = sample(name);
    for (const size_t n : {file.size() - 128, file.size() / 2}) {
      const std::string cut = file.substr(0, n);
      const auto image = decode_image(as_bytes(cut));
      ASSERT_FALSE(image.is_ok()) << name << " cut to " << n;
      EXPECT_EQ(image.status().code(), StatusCode::kDataLoss);
      EXPECT_THAT(image.status().message(), HasSubstr("JPEG"));
      EXPECT_THAT(image.status().message(), HasSubstr("byte"));
    }
  }
  const Image baseline = decode("noise_baseline.jpg");
  const Image progressive = decode("noise_progressive.jpg");
  ASSERT_EQ(baseline.n_bytes(), progressive.n_bytes());
  EXPECT_EQ(
      std::memcmp(baseline.data(), progressive.data(), static_cast<size_t>(baseline.n_bytes())), 0);
}

/// The first bytes of an ISO base media file with these brands.
std::string iso_media(const std::string& brands) {
  std::string out("\0\0\0\0ftyp", 8);
  out[3] = static_cast<char>(8 + brands.size());
  return out + brands + std::string("\0\0\0\x08mdat", 8) + std::string(64, 'x');
}

// F08: label and bytes disagree.
TEST(ImageField, F08TypeComesFromTheBytes) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {iso_media(std::string("heic\0\0\0\0mif1heic", 16)), "HEIC"},
      {iso_media(std::string("mif1\0\0\0\0mif1heic", 16)), "HEIC"},
      {iso_media(std::string("avif\0\0\0\0mif1miaf", 16)), "AVIF"},
      {iso_media(std::string("mif1\0\0\0\0mif1avif", 16)), "AVIF"},
      {iso_media(std::string("isom\0\0\2\0isomiso2", 16)), "MP4"},
      {iso_media(std::string("qt  \0\0\0\0qt  ", 12)), "QuickTime"},
      {std::string("II*\0\x08\0\0\0", 8), "TIFF"},
      {"<?xml version=\"1.0\"?>\n<svg xmlns=\"x\"/>", "SVG"},
      {"  <svg/>", "SVG"},
      {"<!DOCTYPE html><html></html>", "HTML"},
      {"%PDF-1.7", "PDF"},
      {"{\"error\": \"not found\"}", "JSON"},
      {"data:image/png;base64,AAAA", "data URI"},
      {"just some text", "not a picture"},
      {"BMW is not a bitmap", "not a picture"},
  };
  for (const auto& [bytes, name] : cases) {
    const auto image = decode_image(as_bytes(bytes));
    ASSERT_FALSE(image.is_ok());
    EXPECT_EQ(image.status().code(), StatusCode::kUnsupported) << image.status().message();
    EXPECT_THAT(image.status().message(), HasSubstr(name));
  }
  const auto png = probe_image(as_bytes(sample("quad_plain.png")));
  ASSERT_TRUE(png.is_ok());
  EXPECT_EQ(png->format, ImageFormat::kPng);
}

// F09: animated files give an error, or a frame nobody expects.
TEST(ImageField, F09FirstShownFrameOnTheFullCanvas) {
  for (const char* name : {"animated.gif", "animated.webp", "animated.png"}) {
    const Image image = decode(name);
    EXPECT_EQ(image.width(), 40) << name;
    EXPECT_EQ(image.height(), 30) << name;
    for (const auto& [x, y] : {std::pair{0, 0}, {10, 10}, {39, 29}}) {
      EXPECT_THAT(pixel(image, x, y), ElementsAre(255, 0, 0)) << name;
    }
    EXPECT_TRUE(probe_image(as_bytes(sample(name)))->animated) << name;
  }
}

// F10: pictures below the patch size, 1 x 1, 1 x N or with a ratio over 200 bring the runner down.
TEST(ImageField, F10TinyAndNarrowPicturesAreScaled) {
  ThreadPool pool(2);
  const ImageRecipe squash = recipe_of(R"({"image_processor_type": "SiglipImageProcessor"})");
  const ImageRecipe crop = recipe_of(R"({"image_processor_type": "CLIPImageProcessor"})");
  for (const char* size : {"1x1", "1x1000", "27x257", "1000x5", "1093x5"}) {
    const std::string file = sample(std::string("small_") + size + ".png");
    for (const ImageRecipe* recipe : {&squash, &crop}) {
      const auto pixels = preprocess_image(as_bytes(file), *recipe, {}, pool);
      ASSERT_TRUE(pixels.is_ok()) << size << ": " << pixels.status().message();
      EXPECT_EQ(pixels->values.size(), 3u * 224 * 224);
    }
  }
}

// F11: a decompression bomb takes all memory.
TEST(ImageField, F11BombsAreRefusedByTheHeaderAlone) {
  // A PNG of 30000 x 30000 pixels with one bit each; its data would be 112 MB unpacked.
  std::string bomb("\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x75\x30\0\0\x75\x30\1\0\0\0\0\0\0\0\0", 33);
  bomb += std::string("\0\1\xAD\xB0IDAT", 8) + std::string(110000, '\0');
  const auto before = mallinfo2();
  const auto start = std::chrono::steady_clock::now();
  const auto image = decode_image(as_bytes(bomb));
  ASSERT_FALSE(image.is_ok());
  EXPECT_EQ(image.status().code(), StatusCode::kOutOfRange);
  EXPECT_THAT(image.status().message(), HasSubstr("30000 x 30000"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
  const auto after = mallinfo2();
  EXPECT_LT(after.hblkhd + after.arena, before.hblkhd + before.arena + (1u << 20));
  // What a camera makes is taken: the limit speaks of pixels, not of bytes.
  ImageHeader photo;
  photo.width = 9000;
  photo.height = 6000;
  EXPECT_LE(photo.width * photo.height, ImageLimits().max_pixels);
}

// F13: an ICC profile or gAMA gives other colours than expected.
TEST(ImageField, F13StoredSamplesPassUnchanged) {
  const Image plain = decode("quad_plain.png");
  for (const char* name : {"quad_iccp.png", "quad_gama.png", "quad_broken_iccp.png"}) {
    const Image image = decode(name);
    ASSERT_EQ(image.n_bytes(), plain.n_bytes()) << name;
    EXPECT_EQ(std::memcmp(image.data(), plain.data(), static_cast<size_t>(plain.n_bytes())), 0)
        << name;
  }
}

/// 1024 x 768 with lines of one pixel, upright, level and slanting.
Image line_chart() {
  Image chart(1024, 768);
  for (int64_t y = 0; y < 768; ++y) {
    for (int64_t x = 0; x < 1024; ++x) {
      const bool line = x % 16 == 3 || y % 24 == 5 || (x + 2 * y) % 41 == 0;
      for (int64_t c = 0; c < 3; ++c) {
        chart.row(y)[3 * x + c] = static_cast<uint8_t>(line ? 20 * c : 250 - 10 * c);
      }
    }
  }
  return chart;
}

// F14: the wrong filter: bilinear where the checkpoint says bicubic.
TEST(ImageField, F14FilterComesFromTheCheckpoint) {
  ThreadPool pool(2);
  const Image chart = line_chart();
  const auto golden = parse_json_file("tests/parity/goldens/image/line_chart.json");
  ASSERT_TRUE(golden.is_ok()) << golden.status().message();
  std::vector<PixelTensor> results;
  for (const Json& entry : golden->find("cases")->elements()) {
    const auto resample = entry.find("resample")->int_value();
    const ImageRecipe recipe = recipe_of(
        R"({"image_processor_type": "SiglipImageProcessor", "do_normalize": false, "resample": )" +
        std::to_string(resample) + "}");
    const auto plan = plan_image(1024, 768, recipe);
    auto out = apply_recipe(chart.view(), recipe, *plan, pool);
    ASSERT_TRUE(out.is_ok());
    const auto& row = entry.find("row_100")->elements();  // green bytes of one row, by Pillow
    ASSERT_EQ(row.size(), 224u);
    for (size_t x = 0; x < row.size(); ++x) {
      const float value = out->values[224 * 224 + 100 * 224 + x];
      EXPECT_NEAR(value * 255, static_cast<float>(row[x].int_value()), 0.01F) << resample;
    }
    results.push_back(std::move(out).value());
  }
  ASSERT_EQ(results.size(), 2u);
  EXPECT_NE(results[0].values, results[1].values);
}

// F17: the number of placeholders and of features differ by one at edge sizes; portraits crash.
TEST(ImageField, F17PlanAndPixelsAgreeAtEdgeSizes) {
  ThreadPool pool(1);
  constexpr int64_t kPatch = 14;
  const ImageRecipe free = recipe_of(
      R"({"image_processor_type": "CLIPImageProcessor", "size": 56, "do_center_crop": false})");
  std::vector<int64_t> sides;
  for (int64_t k = 1; k <= 6; ++k) {
    for (const int64_t d : {-1, 0, 1, 7}) sides.push_back(k * kPatch + d);
  }
  for (const int64_t width : sides) {
    for (const int64_t height : sides) {
      const auto plan = plan_image(width, height, free);
      const auto turned = plan_image(height, width, free);
      ASSERT_TRUE(plan.is_ok() && turned.is_ok());
      EXPECT_EQ(plan->width, turned->height) << width << " x " << height;
      EXPECT_EQ(plan->n_patches(kPatch), turned->n_patches(kPatch));
      Image image(width, height);
      std::memset(image.data(), 90, static_cast<size_t>(image.n_bytes()));
      const auto out = apply_recipe(image.view(), free, *plan, pool);
      ASSERT_TRUE(out.is_ok());
      EXPECT_EQ((out->width / kPatch) * (out->height / kPatch), plan->n_patches(kPatch));
      EXPECT_EQ(static_cast<int64_t>(out->values.size()), 3 * plan->width * plan->height);
    }
  }
  const auto portrait = plan_image(600, 1200, free);
  const auto landscape = plan_image(1200, 600, free);
  EXPECT_EQ(portrait->height, landscape->width);
  EXPECT_EQ(portrait->width, landscape->height);
}

}  // namespace
}  // namespace triptych
