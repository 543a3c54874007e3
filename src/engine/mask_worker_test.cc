// Masks of grammars are worked out while the machine computes, over a fake machine.
#include <gtest/gtest.h>

#include <thread>

#include "engine/engine.h"
#include "engine/test_fakes.h"

namespace triptych {
namespace {

/// Allows id 1 alone, and counts the masks.
class OnlyOne final : public TokenConstraint {
 public:
  explicit OnlyOne(std::atomic<int>& n_masks) : n_masks_(&n_masks) {}
  size_t mask_words() const override { return 1; }
  Status allowed(std::span<uint32_t> mask) override {
    mask[0] = 1u << 1;
    ++*n_masks_;
    return Status::ok();
  }
  Status accept(int32_t token) override {
    return token == 1 ? Status::ok() : invalid_argument("not allowed");
  }
  bool finished() const override { return false; }

 private:
  std::atomic<int>* n_masks_;
};

class OnlyOneSource final : public TokenConstraintSource {
 public:
  Result<std::unique_ptr<TokenConstraint>> start() const override {
    return std::unique_ptr<TokenConstraint>(std::make_unique<OnlyOne>(n_masks));
  }
  mutable std::atomic<int> n_masks = 0;
};

TEST(MaskWorker, MasksAreReadyBeforeTheLogits) {
  const auto source = std::make_shared<OnlyOneSource>();
  auto runner = std::make_unique<FakeRunner>();
  int n_forward = 0;
  // A pass does not end before two masks more are there: nothing else would make them now.
  runner->on_forward = [&] {
    ++n_forward;
    while (source->n_masks < 2 * n_forward) std::this_thread::yield();
  };
  auto engine = Engine::create(std::move(runner), {}, [] { return 0.0; });
  ASSERT_TRUE(engine.is_ok()) << engine.status().message();
  for (int i = 0; i < 2; ++i) {
    PreparedRequest request = fake_prompt({2, 3, 4}, 5);
    request.constraint = source;
    ASSERT_TRUE((*engine)->submit(std::move(request)).is_ok());
  }
  int n_tokens = 0;
  while (!(*engine)->idle()) {
    for (const SequenceEvent& event : (*engine)->step()) {
      EXPECT_EQ(event.token.token, 1);
      ++n_tokens;
    }
  }
  EXPECT_EQ(n_tokens, 10);
  EXPECT_EQ(n_forward, 5);
  EXPECT_EQ(source->n_masks, 10);
}

}  // namespace
}  // namespace triptych
