#include "media/image/resize.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstring>

#include "media/image/row_kernels.h"
#include "media/image/test_pixels.h"

namespace triptych {
namespace {

using test::crc32;
using test::noise_image;

void expect_pillow(ThreadPool& pool) {
  const Json golden = test::load_golden("resize.json");
  const auto& cases = golden.find("cases")->elements();
  ASSERT_GT(cases.size(), 100u);
  for (const Json& entry : cases) {
    const auto& in = entry.find("in")->elements();
    const auto& out = entry.find("out")->elements();
    const auto filter = static_cast<ResampleFilter>(entry.find("filter")->int_value());
    const Image image = noise_image(in[0].int_value(), in[1].int_value(),
                                    static_cast<uint32_t>(entry.find("seed")->int_value()));
    const auto resized =
        resize_image(image.view(), out[0].int_value(), out[1].int_value(), filter, pool);
    ASSERT_TRUE(resized.is_ok()) << resized.status().message();
    EXPECT_EQ(crc32(*resized), entry.find("crc32")->int_value()) << entry.dump();
  }
}

TEST(Resize, EqualsPillowByteForByte) {
  ThreadPool pool(1);
  expect_pillow(pool);
}

TEST(Resize, EqualsPillowWithSeveralThreads) {
  ThreadPool pool(3);
  expect_pillow(pool);
}

TEST(Resize, EqualsPillowAtEverySimdLevel) {
  ThreadPool pool(1);
  const auto supported = hwy::SupportedTargets();
  for (const auto target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    SCOPED_TRACE(row_kernels_level());
    expect_pillow(pool);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(supported);
}

TEST(Resize, WindowIsAPartOfTheWhole) {
  ThreadPool pool(2);
  const Image image = noise_image(211, 97, 4);
  for (int filter = 0; filter < 6; ++filter) {
    const auto id = static_cast<ResampleFilter>(filter);
    const auto whole = resize_image(image.view(), 73, 150, id, pool);
    const ResizeWindow window{20, 31, 40, 77};
    const auto part = resize_image_window(image.view(), 73, 150, window, id, pool);
    ASSERT_TRUE(whole.is_ok() && part.is_ok());
    for (int64_t y = 0; y < window.height; ++y) {
      EXPECT_EQ(std::memcmp(part->row(y), whole->row(y + 31) + 3 * 20, 3 * 40), 0)
          << "filter " << filter << " row " << y;
    }
  }
}

TEST(Resize, WindowOfAHugeResultStaysSmall) {
  ThreadPool pool(1);
  const Image image = noise_image(1, 60000, 4);
  // The whole result would take 20 GB.
  const auto part = resize_image_window(image.view(), 336, 336 * 60000, {0, 10000000, 336, 336},
                                        ResampleFilter::kBicubic, pool);
  ASSERT_TRUE(part.is_ok());
  EXPECT_EQ(part->height(), 336);
}

TEST(Resize, ReadsRowsByTheirStride) {
  ThreadPool pool(1);
  const Image image = noise_image(40, 30, 9);
  Image left(25, 30);
  for (int64_t y = 0; y < 30; ++y) std::memcpy(left.row(y), image.row(y), 3 * 25);
  const ImageView view{image.data(), 25, 30, image.stride()};
  const auto a = resize_image(view, 11, 12, ResampleFilter::kLanczos, pool);
  const auto b = resize_image(left.view(), 11, 12, ResampleFilter::kLanczos, pool);
  ASSERT_TRUE(a.is_ok() && b.is_ok());
  EXPECT_EQ(crc32(*a), crc32(*b));
}

TEST(Resize, RefusesEmptySides) {
  ThreadPool pool(1);
  const Image image = noise_image(4, 4, 0);
  for (const auto& [w, h] : {std::pair{0, 5}, {5, 0}, {-1, 5}}) {
    const auto out = resize_image(image.view(), w, h, ResampleFilter::kBox, pool);
    ASSERT_FALSE(out.is_ok());
    EXPECT_EQ(out.status().code(), StatusCode::kInvalidArgument);
  }
  EXPECT_FALSE(
      resize_image_window(image.view(), 8, 8, {4, 4, 5, 4}, ResampleFilter::kBox, pool).is_ok());
}

}  // namespace
}  // namespace triptych
