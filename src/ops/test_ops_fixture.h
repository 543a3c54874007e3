#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "ops/op_context.h"

namespace triptych {

/// A context whose kernels do nothing but count their calls: for what the wrappers check before
/// any kernel runs. The kernels themselves are tested in each backend.
class OpsTest : public testing::Test {
 protected:
  OpsTest() {
    Result<Arena> arena = Arena::create(size_t{1} << 20);
    EXPECT_TRUE(arena.is_ok());
    if (arena.is_ok()) arena_ = std::move(*arena);
#define TRIPTYCH_OP(name, Args) table_.name = &count<Args>;
#include "ops/op_list.def"
#undef TRIPTYCH_OP
    calls_ = 0;
    ctx_.kernels = &table_;
    ctx_.stream.pool = &pool_;
    ctx_.scratch = &arena_;
  }

  /// f32 memory of any shape that a test asks for; its contents do not matter.
  View view(const Shape& shape) {
    memory_.emplace_back(static_cast<size_t>(shape.n_elements() + 1));
    return View::dense(memory_.back().data(), DType::kF32, shape);
  }

  static inline int calls_ = 0;
  KernelTable table_;
  ThreadPool pool_{1};
  Arena arena_;
  OpContext ctx_;

 private:
  template <typename Args>
  static void count(const Args&, const Stream&) {
    ++calls_;
  }
  std::vector<std::vector<float>> memory_;
};

}  // namespace triptych
