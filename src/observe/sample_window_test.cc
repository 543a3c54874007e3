#include "observe/sample_window.h"

#include <gtest/gtest.h>

namespace triptych {
namespace {

TEST(SampleWindow, GivesQuantilesOfTheLatestValues) {
  SampleWindow window;
  EXPECT_EQ(window.summary().n_seen, 0u);
  EXPECT_EQ(window.summary().jitter(), 0);
  for (int i = 100; i >= 1; --i) window.add(i);
  EXPECT_EQ(window.summary().p50, 50);
  EXPECT_EQ(window.summary().p99, 99);
  EXPECT_EQ(window.summary().jitter(), 49);
  for (size_t i = 0; i < SampleWindow::kSize; ++i) window.add(7);
  EXPECT_EQ(window.summary().p99, 7) << "what is older is forgotten";
  EXPECT_EQ(window.summary().n_seen, 100 + SampleWindow::kSize);
}

}  // namespace
}  // namespace triptych
