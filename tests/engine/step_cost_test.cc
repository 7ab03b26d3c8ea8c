// A step of decoding sequences allocates no memory: it reuses the memory of earlier steps.
#include <gtest/gtest.h>

#include "tests/engine/allocation_count.h"
#include "tests/engine/engine_fixture.h"

namespace paceline::testing {
namespace {

// Computes and allocates nothing.
class QuietRunner : public Runner {
 public:
  int64_t vocab_size() const override { return kVocab; }
  int64_t max_logits_rows() const override { return 64; }
  void run(const Batch& batch, AdapterTable /*adapters*/) override {
    finite_.assign(static_cast<size_t>(batch.num_rows()), 1);
  }
  std::span<const uint8_t> finite_rows() const override { return finite_; }
  std::span<const float> logits(int64_t, int64_t count) override {
    return std::span(rows_).first(static_cast<size_t>(count * kVocab));
  }
  float log_sum_exp(int64_t) override { return 0.0f; }
  std::span<const float> column_logits(int64_t first, int64_t count,
                                       std::span<const int32_t>) override {
    return logits(first, count);
  }

 private:
  std::vector<uint8_t> finite_;
  std::vector<float> rows_ = std::vector<float>(64 * kVocab, 0.0f);
};

TEST(StepCost, AStepAllocatesNothingAfterWarmUp) {
  QuietRunner runner;
  Memory memory;
  const std::vector<CacheGroup> groups = {{.num_blocks = 4096}, {.window = 24, .num_blocks = 4096}};
  StateCache cache(16, groups);
  StepEngine engine(runner, memory, cache, {.max_model_len = 600, .max_batched_tokens = 256},
                    letter);
  const auto channel = std::make_shared<Channel>();
  for (int i = 0; i < 256; ++i) {
    GenerateRequest request = greedy({1, i % 8, 3}, 400);
    if (i % 2 == 0) request.sampling.temperature = 1;
    request.stop_strings = {"xyzzy"};
    request.ignore_eos = true;
    ASSERT_TRUE(engine.submit(std::move(request), channel).has_value());
  }
  std::vector<TokenEvent> events;
  events.reserve(4096);
  for (int i = 0; i < 40; ++i) {
    engine.step();
    channel->poll(events);
  }
  ASSERT_EQ(engine.num_running(), 256);
  const int64_t before = num_allocations();
  for (int i = 0; i < 200; ++i) {
    engine.step();
    channel->poll(events);
  }
  EXPECT_EQ(num_allocations() - before, 0);
  EXPECT_EQ(engine.num_running(), 256);
}

}  // namespace
}  // namespace paceline::testing
