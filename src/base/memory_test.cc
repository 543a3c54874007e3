#include "base/memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

namespace triptych {
namespace {

TEST(PageBuffer, IsAlignedAndZero) {
  for (const size_t n : {size_t{1}, size_t{4096}, size_t{5000}, (size_t{2} << 20) + 1}) {
    for (const bool huge : {false, true}) {
      auto buffer = PageBuffer::allocate(n, huge);
      ASSERT_TRUE(buffer.is_ok());
      EXPECT_GE(buffer->size(), n);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % (size_t{2} << 20), 0u);
      EXPECT_EQ(buffer->data()[0], std::byte{0});
      EXPECT_EQ(buffer->data()[n - 1], std::byte{0});
      std::memset(buffer->data(), 1, buffer->size());
    }
  }
}

TEST(PageBuffer, NothingIsNothing) {
  auto buffer = PageBuffer::allocate(0, true);
  ASSERT_TRUE(buffer.is_ok());
  EXPECT_EQ(buffer->size(), 0u);
}

TEST(PageBuffer, WhatNoMachineHasIsRefused) {
  for (const size_t n : {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX - 4095, size_t{1} << 60}) {
    const auto buffer = PageBuffer::allocate(n, false);
    ASSERT_FALSE(buffer.is_ok()) << n;
    EXPECT_EQ(buffer.status().code(), StatusCode::kResourceExhausted);
  }
}

TEST(PageBuffer, MovesKeepTheMemory) {
  auto made = PageBuffer::allocate(100, false);
  ASSERT_TRUE(made.is_ok());
  PageBuffer a = std::move(*made);
  a.data()[0] = std::byte{7};
  const std::byte* where = a.data();
  PageBuffer b = std::move(a);
  EXPECT_EQ(b.data(), where);
  PageBuffer c;
  c = std::move(b);
  EXPECT_EQ(c.data(), where);
  EXPECT_EQ(c.data()[0], std::byte{7});
}

TEST(Memory, TheSystemsFiguresMakeSense) {
  EXPECT_GT(resident_bytes(), uint64_t{1} << 20);
  EXPECT_GE(peak_resident_bytes(), resident_bytes() / 2);
  EXPECT_GT(total_memory_bytes(), available_memory_bytes() / 2);
  EXPECT_FALSE(transparent_huge_page_mode().empty());
}

}  // namespace
}  // namespace triptych
