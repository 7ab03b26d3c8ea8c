#include "train/train_batch.h"

#include "base/error.h"

namespace paceline {

void TrainBatch::add(std::vector<int32_t> sequence_tokens, std::vector<float> sequence_weights) {
  PL_CHECK(sequence_tokens.size() >= 2 && sequence_weights.size() == sequence_tokens.size() - 1,
           "a sequence predicts all its tokens but the first");
  const auto count = static_cast<int64_t>(sequence_weights.size());
  sequences.push_back({.first_row = num_rows(), .num_rows = count});
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(sequence_tokens[static_cast<size_t>(i)]);
    targets.push_back(sequence_tokens[static_cast<size_t>(i) + 1]);
    positions.push_back(static_cast<int32_t>(i));
  }
  weights.insert(weights.end(), sequence_weights.begin(), sequence_weights.end());
}

void TrainBatch::pad_to_multiple(int64_t rows) {
  const int64_t missing = (rows - num_rows() % rows) % rows;
  if (missing == 0) return;
  sequences.push_back({.first_row = num_rows(), .num_rows = missing});
  for (int64_t i = 0; i < missing; ++i) {
    tokens.push_back(0);
    targets.push_back(0);
    positions.push_back(static_cast<int32_t>(i));
    weights.push_back(0.0f);
  }
}

}  // namespace paceline
