// How many steps a run has.
#include "finetune/training_data.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

// Examples of 2 to 41 tokens.
TrainingData examples(int64_t count) {
  TrainingData data;
  for (int64_t i = 0; i < count; ++i) {
    const auto length = static_cast<size_t>(2 + i % 40);
    data.train.push_back(
        {.tokens = std::vector<int32_t>(length, 1), .counts = std::vector<uint8_t>(length, 1)});
  }
  return data;
}

TEST(TrainSteps, AreThoseOfTheEpochs) {
  const TrainingData data = examples(50);
  TrainOptions choice;
  choice.num_steps = 9;
  EXPECT_EQ(num_run_steps(choice, data), 9);
  choice.packing = false;
  const auto steps = [&](double epochs) {
    choice.num_epochs = epochs;
    return num_run_steps(choice, data);
  };
  EXPECT_EQ(steps(1), 13);  // of 4 examples, the last of 2
  EXPECT_EQ(steps(3), 39);
  EXPECT_EQ(steps(0.5), 7);
  EXPECT_EQ(steps(2.5), 33);
  EXPECT_EQ(steps(0.001), 1);
  choice.accumulation_steps = 2;
  EXPECT_EQ(steps(1), 7);
}

// Packed, epochs differ in their steps: the run ends where its last epoch does.
TEST(TrainSteps, OfPackedEpochsEndWithAnEpoch) {
  const TrainingData data = examples(97);
  TrainOptions choice;
  choice.max_seq_length = 64;
  choice.batch_size = 3;
  for (const double epochs : {1.0, 2.0, 5.0}) {
    choice.num_epochs = epochs;
    const StepPlace next =
        find_step(data.train, batch_options(choice, data), num_run_steps(choice, data));
    EXPECT_EQ(next.epoch, static_cast<int64_t>(epochs));
    EXPECT_EQ(next.step, 0);
  }
}

}  // namespace
}  // namespace paceline
