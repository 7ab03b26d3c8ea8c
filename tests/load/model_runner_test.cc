// ModelRunner: its allocations, the rows of its results, and copies of blocks.
#include "runner/model_runner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "load/loaded_model.h"
#include "models/decoder.h"

namespace paceline {
namespace {

constexpr int64_t kBlockSize = 16;

auto tiny_model(const std::string& name) {
  return load_model({.model = PACELINE_SOURCE_DIR "/tests/goldens/models/" + name,
                     .kv_cache_memory_bytes = 1 << 20,
                     .num_threads = 1});
}

// The runner allocates the memory that `inspect` reports.
TEST(ModelRunner, AllocatesWhatTheConfigSays) {
  for (const std::string name : {"qwen3_tied", "gemma2_even"}) {
    SCOPED_TRACE(name);
    const auto model = tiny_model(name);
    for (const int64_t max_rows : {16, 512}) {
      const RunnerLimits limits{.max_rows = max_rows};
      const size_t before = model->memory.stats().active_bytes;
      const ModelRunner runner(*model->decoder, *model->backend,
                               KvStorage({}, kBlockSize, DType::f32, model->memory), limits);
      EXPECT_EQ(model->memory.stats().active_bytes - before,
                runner_activation_bytes(model->decoder->config(), limits));
    }
  }
}

// A model with two cache groups (layers with and without a window), four blocks each.
class ModelRunnerTest : public ::testing::Test {
 protected:
  static constexpr int64_t kNumBlocks = 4;

  // Tokens at positions from `first` on, in one block of every group.
  Batch batch(const std::vector<int32_t>& tokens, int64_t first, const int32_t& block) const {
    Batch batch;
    batch.tokens = tokens;
    batch.positions.resize(tokens.size());
    std::iota(batch.positions.begin(), batch.positions.end(), static_cast<int32_t>(first));
    const auto num_rows = static_cast<int64_t>(tokens.size());
    for (int64_t g = 0; g < num_groups_; ++g) {
      GroupBatch group;
      for (int64_t i = 0; i < num_rows; ++i) group.slots.push_back(block * kBlockSize + first + i);
      group.slices.push_back({.first_row = 0,
                              .num_rows = num_rows,
                              .first_position = first,
                              .block_table = {&block, 1}});
      batch.groups.push_back(std::move(group));
    }
    for (int32_t row = 0; row < num_rows; ++row) batch.output_rows.push_back(row);
    return batch;
  }

  std::vector<float> logits(int64_t first, int64_t count) {
    const std::span<const float> found = runner_.logits(first, count);
    return {found.begin(), found.end()};
  }

  static int64_t count_groups(const Decoder& decoder) {
    int64_t groups = 0;
    for (int64_t layer = 0; layer < decoder.config().num_layers(); ++layer)
      groups = std::max<int64_t>(groups, decoder.cache_group(layer) + 1);
    return groups;
  }
  KvStorage storage() {
    const std::vector<int64_t> blocks(static_cast<size_t>(num_groups_), kNumBlocks);
    return {model_->decoder->kv_layers(blocks), kBlockSize, DType::f32, model_->memory};
  }

  const std::shared_ptr<LoadedModel> model_ = tiny_model("gemma2_even");
  const int64_t num_groups_ = count_groups(*model_->decoder);
  ModelRunner runner_{
      *model_->decoder, *model_->backend, storage(), {.max_rows = 12, .max_logits_rows = 4}};
};

TEST_F(ModelRunnerTest, AnswersWithTheRowsAndColumnsAskedFor) {
  ASSERT_EQ(num_groups_, 2);
  const int32_t block = 1;
  runner_.run(batch({5, 9, 3, 7}, 0, block), {});
  EXPECT_EQ(runner_.finite_rows().size(), 4u);
  for (const uint8_t is_finite : runner_.finite_rows()) EXPECT_EQ(is_finite, 1);
  const auto vocab = static_cast<size_t>(runner_.vocab_size());
  const std::vector<float> all = logits(0, 4);
  const std::vector<float> two = logits(1, 2);
  EXPECT_TRUE(std::equal(two.begin(), two.end(), all.begin() + static_cast<int64_t>(vocab)));
  for (const std::vector<int32_t>& columns :
       {std::vector<int32_t>{3, 11, 8}, {3, 11, 8}, {3, 11}, {8, 3}, {8, 3, 11}}) {
    const std::span<const float> found = runner_.column_logits(1, 3, columns);
    for (size_t row = 0; row < 3; ++row) {
      for (size_t i = 0; i < columns.size(); ++i) {
        EXPECT_EQ(found[row * columns.size() + i],
                  all[(row + 1) * vocab + static_cast<size_t>(columns[i])]);
      }
    }
  }
}

TEST_F(ModelRunnerTest, SumsTheExponentialsOfARowOfTheLastLogits) {
  const int32_t block = 1;
  runner_.run(batch({5, 9, 3, 7}, 0, block), {});
  const auto vocab = static_cast<size_t>(runner_.vocab_size());
  const std::vector<float> rows = logits(1, 3);
  for (size_t row = 0; row < 3; ++row) {
    double sum = 0;
    for (size_t i = 0; i < vocab; ++i) sum += std::exp(double{rows[row * vocab + i]});
    EXPECT_NEAR(runner_.log_sum_exp(static_cast<int64_t>(row)), std::log(sum), 1e-5) << row;
  }
}

TEST_F(ModelRunnerTest, GathersTheSameColumnsOnce) {
  const int32_t block = 1;
  runner_.run(batch({5}, 0, block), {});
  const std::vector<int32_t> columns = {3, 11, 8};
  runner_.column_logits(0, 1, columns);
  Memory& memory = model_->memory;
  memory.reset_peak();
  const size_t before = memory.stats().peak_bytes;
  runner_.column_logits(0, 1, columns);
  EXPECT_EQ(memory.stats().peak_bytes, before);
  runner_.column_logits(0, 1, std::vector<int32_t>{3, 11, 9});
  EXPECT_GT(memory.stats().peak_bytes, before);
}

// A copied block continues like its source, in every layer, before rows are stored.
TEST_F(ModelRunnerTest, ACopiedBlockHoldsTheSameKeysAndValues) {
  const int32_t from = 2, to = 3;
  runner_.run(batch({5, 9, 3, 7}, 0, from), {});
  Batch next = batch({4}, 4, to);
  for (GroupBatch& group : next.groups) group.copies.push_back({.from = from, .to = to});
  runner_.run(next, {});
  const std::vector<float> copied = logits(0, 1);
  runner_.run(batch({4}, 4, from), {});
  EXPECT_EQ(logits(0, 1), copied);
  const int32_t other = 0;  // never written
  runner_.run(batch({6, 6, 6, 6}, 0, other), {});
  runner_.run(batch({4}, 4, other), {});
  EXPECT_NE(logits(0, 1), copied);
}

}  // namespace
}  // namespace paceline
