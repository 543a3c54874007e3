#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cpu/cpu_ops.h"
#include "ops/rows.h"
#include "ref/random_data.h"
#include "ref/rows_ref.h"

namespace triptych {
namespace {

class RowsTest : public testing::Test {
 protected:
  RowsTest() { fill_cpu_ops(table_, CpuIsa::kPortable); }
  KernelTable table_;
  ThreadPool pool_{2};
  Stream stream_{&pool_, nullptr};
};

TEST_F(RowsTest, GatherByEitherOrBothIndices) {
  const int64_t d = 5000;
  const std::vector<float> src = ref::random_floats(6 * d, 1);
  const std::vector<int32_t> from{5, 0, 2, 2};
  const std::vector<int32_t> to{1, 6, 0, 3};
  for (const bool use_from : {false, true}) {
    for (const bool use_to : {false, true}) {
      const int64_t ld = d + 2;
      std::vector<float> dst(static_cast<size_t>(7 * ld), -1);
      std::vector<float> want = dst;
      table_.gather_rows({src.data(), d, use_from ? from.data() : nullptr, dst.data(), ld,
                          use_to ? to.data() : nullptr, 4, d},
                         stream_);
      for (size_t i = 0; i < 4; ++i) {
        const int64_t source = use_from ? from[i] : static_cast<int64_t>(i);
        const int64_t target = use_to ? to[i] : static_cast<int64_t>(i);
        std::copy_n(src.begin() + source * d, d, want.begin() + target * ld);
      }
      EXPECT_EQ(dst, want);
    }
  }
}

TEST_F(RowsTest, PatchifyLeavesOutWhatIsNoWholePatch) {
  for (const auto& [height, width, patch] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{
           {28, 28, 14}, {336, 336, 14}, {37, 50, 8}, {7, 9, 1}, {5, 30, 6}, {3, 3, 3}}) {
    const std::vector<float> pixels = ref::random_floats(3 * height * width, 2);
    const std::vector<float> want = ref::patchify(pixels, 3, height, width, patch);
    std::vector<float> out(want.size(), -1);
    table_.patchify({pixels.data(), 3, height, width, patch, out.data()}, stream_);
    EXPECT_EQ(out, want) << height << " x " << width << " / " << patch;
  }
}

}  // namespace
}  // namespace triptych
