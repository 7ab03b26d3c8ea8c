// Batches of random examples: each once, none too long, the same rows however they are divided.
#include "dataset/batch_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <tuple>

#include "dataset/length_stage.h"
#include "tests/expect_error.h"
#include "tests/test_scale.h"

namespace paceline {
namespace {

// Example i holds tokens 1000 * i, 1000 * i + 1, ...: each token tells where it came from.
std::vector<Example> random_examples(std::mt19937& random, int64_t count, int64_t max_length) {
  std::vector<Example> examples;
  for (int64_t i = 0; i < count; ++i) {
    const auto length = static_cast<int64_t>(2 + random() % static_cast<uint32_t>(max_length - 1));
    Example example;
    for (int64_t j = 0; j < length; ++j) {
      example.tokens.push_back(static_cast<int32_t>(1000 * i + j));
      example.counts.push_back(j > 0 && random() % 2 == 0 ? 1 : 0);
    }
    example.counts.back() = 1;
    examples.push_back(std::move(example));
  }
  return examples;
}

struct Case {
  std::vector<Example> examples;
  BatchOptions options;
  int64_t epoch = 0;
};

Case random_case(uint32_t seed) {
  std::mt19937 random(seed);
  Case drawn;
  drawn.options = {.max_seq_length = 2 + static_cast<int64_t>(random() % 600),
                   .batch_size = 1 + static_cast<int64_t>(random() % 8),
                   .micro_batch_rows = 1 + static_cast<int64_t>(random() % 8),
                   .is_packed = random() % 3 != 0,
                   .seed = random()};
  drawn.epoch = static_cast<int64_t>(random() % 5);
  const auto longest = 2 + static_cast<int64_t>(random()) % (drawn.options.max_seq_length - 1);
  drawn.examples = random_examples(random, 1 + static_cast<int64_t>(random() % 200), longest);
  return drawn;
}

template <class Check>
void for_random_cases(Check check) {
  const auto count = static_cast<uint32_t>(scaled(100, 2000));
  for (uint32_t seed = 0; seed < count; ++seed) {
    SCOPED_TRACE(seed);
    check(random_case(seed));
    if (testing::Test::HasFailure()) return;
  }
}

std::vector<PlannedRow> all_rows(const BatchPlan& plan) {
  std::vector<PlannedRow> rows;
  for (int64_t step = 0; step < plan.num_steps(); ++step) {
    for (const PlannedRow& row : plan.rows(step)) rows.push_back(row);
  }
  return rows;
}

// A row of a batch: token, position, target, weight, and the rows of its sequence.
using BatchRow = std::tuple<int32_t, int32_t, int32_t, float, int64_t>;

std::vector<BatchRow> rows_of(const std::vector<TrainBatch>& batches) {
  std::vector<BatchRow> rows;
  for (const TrainBatch& batch : batches) {
    for (const SequenceRows& sequence : batch.sequences) {
      for (int64_t row = sequence.first_row; row < sequence.first_row + sequence.num_rows; ++row) {
        const auto i = static_cast<size_t>(row);
        rows.emplace_back(batch.tokens[i], batch.positions[i], batch.targets[i], batch.weights[i],
                          sequence.num_rows);
      }
    }
  }
  return rows;
}

TEST(BatchPlanTest, HasEachExampleOnceAndNoRowTooLong) {
  for_random_cases([](const Case& drawn) {
    const BatchPlan plan(drawn.examples, drawn.options, drawn.epoch);
    std::multiset<int64_t> found;
    for (const PlannedRow& row : all_rows(plan)) {
      EXPECT_FALSE(row.empty());
      if (!drawn.options.is_packed) {
        EXPECT_EQ(row.size(), 1u);
      }
      int64_t places = 0;
      for (const int64_t example : row) {
        found.insert(example);
        places += drawn.examples.at(static_cast<size_t>(example)).num_tokens() - 1;
      }
      EXPECT_LE(places, drawn.options.max_seq_length);
    }
    std::multiset<int64_t> expected;
    for (size_t i = 0; i < drawn.examples.size(); ++i) expected.insert(static_cast<int64_t>(i));
    EXPECT_EQ(found, expected);
    for (int64_t step = 0; step + 1 < plan.num_steps(); ++step) {
      EXPECT_EQ(static_cast<int64_t>(plan.rows(step).size()), drawn.options.batch_size);
    }
  });
}

TEST(BatchPlanTest, IsAFunctionOfSeedAndEpoch) {
  std::mt19937 random(5);
  const std::vector<Example> examples = random_examples(random, 100, 50);
  BatchOptions options{.max_seq_length = 64, .seed = 3};
  const std::vector<PlannedRow> rows = all_rows(BatchPlan(examples, options, 0));
  EXPECT_EQ(all_rows(BatchPlan(examples, options, 0)), rows);
  EXPECT_NE(all_rows(BatchPlan(examples, options, 1)), rows);
  options.seed = 4;
  EXPECT_NE(all_rows(BatchPlan(examples, options, 0)), rows);
}

TEST(BatchPlanTest, KeepsTheShuffledOrderWithoutPacking) {
  std::mt19937 random(6);
  const std::vector<Example> examples = random_examples(random, 50, 20);
  const auto order = all_rows(BatchPlan(examples, {.max_seq_length = 20, .is_packed = false}, 2));
  EXPECT_EQ(
      all_rows(BatchPlan(examples, {.max_seq_length = 20, .batch_size = 7, .is_packed = false}, 2)),
      order);
  // Packed, the rows are opened in that order, too.
  std::vector<int64_t> place(50);
  for (size_t i = 0; i < order.size(); ++i) {
    place[static_cast<size_t>(order[i][0])] = static_cast<int64_t>(i);
  }
  int64_t last = -1;
  for (const PlannedRow& row : all_rows(BatchPlan(examples, {.max_seq_length = 20}, 2))) {
    EXPECT_GT(place[static_cast<size_t>(row[0])], last);
    last = place[static_cast<size_t>(row[0])];
    EXPECT_TRUE(std::is_sorted(row.begin(), row.end(), [&](int64_t a, int64_t b) {
      return place[static_cast<size_t>(a)] < place[static_cast<size_t>(b)];
    }));
  }
}

// First fit by trying every row that is open, written down plainly.
TEST(BatchPlanTest, PutsAnExampleIntoTheFirstOpenRowWithRoom) {
  for_random_cases([](Case drawn) {
    drawn.options.is_packed = false;
    const auto order = all_rows(BatchPlan(drawn.examples, drawn.options, drawn.epoch));
    std::vector<PlannedRow> expected;
    for (const PlannedRow& single : order) {
      const auto places = [&](const PlannedRow& row) {
        int64_t sum = 0;
        for (const int64_t i : row) sum += drawn.examples[static_cast<size_t>(i)].num_tokens() - 1;
        return sum;
      };
      const size_t first =
          expected.size() > BatchPlan::kOpenRows ? expected.size() - BatchPlan::kOpenRows : 0;
      const auto fits = std::find_if(
          expected.begin() + static_cast<ptrdiff_t>(first), expected.end(), [&](const auto& row) {
            return places(row) + places(single) <= drawn.options.max_seq_length;
          });
      if (fits == expected.end()) {
        expected.push_back(single);
      } else {
        fits->push_back(single[0]);
      }
    }
    drawn.options.is_packed = true;
    EXPECT_EQ(all_rows(BatchPlan(drawn.examples, drawn.options, drawn.epoch)), expected);
  });
}

TEST(BatchPlanTest, HoldsTheSameRowsHoweverTheyAreDivided) {
  for_random_cases([](Case drawn) {
    drawn.options.batch_size = 8;
    drawn.options.micro_batch_rows = 8;
    const BatchPlan whole(drawn.examples, drawn.options, drawn.epoch);
    const int64_t step = whole.num_steps() - 1 - drawn.epoch % whole.num_steps();
    const auto expected = rows_of(whole.step(step));
    EXPECT_EQ(whole.step(step).size(), 1u);
    for (const int64_t micro_batch_rows : {1, 3, 100}) {
      drawn.options.micro_batch_rows = micro_batch_rows;
      const BatchPlan divided(drawn.examples, drawn.options, drawn.epoch);
      ASSERT_EQ(divided.num_steps(), whole.num_steps());
      const std::vector<TrainBatch> batches = divided.step(step);
      const auto num_rows = static_cast<int64_t>(divided.rows(step).size());
      EXPECT_EQ(static_cast<int64_t>(batches.size()),
                (num_rows + micro_batch_rows - 1) / micro_batch_rows);
      EXPECT_TRUE(rows_of(batches) == expected) << micro_batch_rows;
    }
  });
}

TEST(BatchPlanTest, PadsEachRowAndHoldsEachExampleWhole) {
  for_random_cases([](const Case& drawn) {
    const BatchPlan plan(drawn.examples, drawn.options, drawn.epoch);
    for (int64_t step = 0; step < plan.num_steps(); ++step) {
      const std::vector<TrainBatch> batches = plan.step(step);
      size_t batch = 0, sequence = 0;
      int64_t row_begin = 0, row_index = 0;
      for (const PlannedRow& row : plan.rows(step)) {
        if (row_index > 0 && row_index % drawn.options.micro_batch_rows == 0) {
          ++batch;
          sequence = 0;
          row_begin = 0;
        }
        ++row_index;
        int64_t at = row_begin;
        for (const int64_t i : row) {
          const Example& example = drawn.examples[static_cast<size_t>(i)];
          const SequenceRows& rows = batches.at(batch).sequences.at(sequence++);
          EXPECT_EQ(rows.first_row, at);
          ASSERT_EQ(rows.num_rows, example.num_tokens() - 1);
          for (size_t j = 0; j + 1 < example.tokens.size(); ++j) {
            const size_t at_token = static_cast<size_t>(at) + j;
            EXPECT_EQ(batches[batch].tokens[at_token], example.tokens[j]);
            EXPECT_EQ(batches[batch].targets[at_token], example.tokens[j + 1]);
            EXPECT_EQ(batches[batch].positions[at_token], static_cast<int32_t>(j));
            EXPECT_EQ(batches[batch].weights[at_token] > 0, example.counts[j + 1] == 1);
          }
          at += rows.num_rows;
        }
        const int64_t missing = (kGradientRows - at % kGradientRows) % kGradientRows;
        if (missing > 0) {
          EXPECT_EQ(batches[batch].sequences.at(sequence++).num_rows, missing);
        }
        row_begin = at + missing;
        EXPECT_EQ(row_begin % kGradientRows, 0);
      }
      for (const TrainBatch& each : batches) EXPECT_EQ(each.num_rows() % kGradientRows, 0);
    }
  });
}

TEST(BatchPlanTest, WeighsTheCountedTokensOfAStepEqually) {
  for_random_cases([](const Case& drawn) {
    const BatchPlan plan(drawn.examples, drawn.options, drawn.epoch);
    for (int64_t step = 0; step < plan.num_steps(); ++step) {
      double sum = 0;
      int64_t num_weighted = 0;
      for (const TrainBatch& batch : plan.step(step)) {
        for (const float weight : batch.weights) {
          sum += weight;
          if (weight == 0) continue;
          ++num_weighted;
          EXPECT_EQ(weight, 1.0f / static_cast<float>(plan.num_counted(step)));
        }
      }
      EXPECT_EQ(num_weighted, plan.num_counted(step));
      EXPECT_NEAR(sum, 1, 1e-6);
    }
  });
}

// Cut into shorter sequences, a step predicts the same tokens with the same weights, in the same
// rows.
TEST(BatchPlanTest, CutsSequencesWithoutLosingAToken) {
  for_random_cases([](const Case& drawn) {
    BatchOptions options = drawn.options;
    if (drawn.epoch % 2 == 0) options.first_token = 7;
    const BatchPlan plan(drawn.examples, options, drawn.epoch);
    const int64_t length = 1 + drawn.epoch * 40;
    const std::vector<TrainBatch> whole = plan.step(0), cut = plan.step(0, length);
    ASSERT_EQ(cut.size(), whole.size());
    for (size_t i = 0; i < cut.size(); ++i) {
      EXPECT_EQ(cut[i].targets, whole[i].targets);
      EXPECT_EQ(cut[i].weights, whole[i].weights);
      for (const SequenceRows& one : cut[i].sequences) {
        const auto first = static_cast<size_t>(one.first_row);
        const bool is_padding = cut[i].weights[first] == 0 && cut[i].tokens[first] == 0;
        EXPECT_TRUE(is_padding || one.num_rows <= length);
        EXPECT_EQ(cut[i].positions[first], 0);
        const bool begins = whole[i].positions[first] == 0;
        const int32_t expected =
            begins || !options.first_token ? whole[i].tokens[first] : *options.first_token;
        EXPECT_EQ(cut[i].tokens[first], expected);
      }
    }
  });
}

TEST(LengthStages, HoldUntilTheirPartOfTheRun) {
  const std::vector<LengthStage> stages = {{.length = 256, .until = 0.5},
                                           {.length = 512, .until = 0.75}};
  EXPECT_EQ(sequence_length_at(stages, 0, 8), 256);
  EXPECT_EQ(sequence_length_at(stages, 3, 8), 256);
  EXPECT_EQ(sequence_length_at(stages, 4, 8), 512);
  EXPECT_EQ(sequence_length_at(stages, 6, 8), 0);
  EXPECT_EQ(sequence_length_at({}, 0, 8), 0);
}

TEST(BatchPlanTest, FindsStepsOverEpochs) {
  std::mt19937 random(8);
  const std::vector<Example> examples = random_examples(random, 37, 30);
  for (const bool is_packed : {false, true}) {
    const BatchOptions options{.max_seq_length = 40, .batch_size = 3, .is_packed = is_packed};
    int64_t number = 0;
    for (int64_t epoch = 0; epoch < 4; ++epoch) {
      const int64_t num_steps = BatchPlan(examples, options, epoch).num_steps();
      for (int64_t step = 0; step < num_steps; ++step) {
        const StepPlace place = find_step(examples, options, number++);
        EXPECT_EQ(place.epoch, epoch);
        EXPECT_EQ(place.step, step);
      }
    }
  }
}

TEST(BatchPlanTest, NamesTheOptionOrExampleAtFault) {
  std::mt19937 random(9);
  const std::vector<Example> examples = random_examples(random, 3, 9);
  const auto expect_fault = [&](std::span<const Example> given, const BatchOptions& options,
                                int64_t epoch, const std::string& part) {
    expect_error(ErrorCode::invalid, {part}, [&] { BatchPlan(given, options, epoch); });
  };
  expect_fault(examples, {.max_seq_length = 1}, 0, "the length of a row: found 1, expected");
  expect_fault(examples, {.batch_size = 0}, 0, "the batch size: found 0, expected");
  expect_fault(examples, {.micro_batch_rows = 0}, 0, "the rows of a micro-batch: found 0");
  expect_fault(examples, {}, -1, "the epoch: found -1, expected");
  expect_fault({}, {}, 0, "found no example");
  const std::vector<Example> longer = {{.tokens = {1, 2, 3, 4}, .counts = {0, 1, 1, 1}}};
  expect_fault(longer, {.max_seq_length = 3}, 0, "example 0: found 4 tokens, expected 2 to 3");
  const std::vector<Example> single = {{.tokens = {1}, .counts = {0}}};
  expect_fault(single, {}, 0, "example 0: found 1 tokens, expected 2 to 2048");
}

}  // namespace
}  // namespace paceline
