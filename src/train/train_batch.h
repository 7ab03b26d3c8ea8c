// TrainBatch is the input of one forward and backward pass: whole sequences side by side.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/gradients.h"

namespace paceline {

struct TrainBatch {
  std::vector<int32_t> tokens;     // [rows]
  std::vector<int32_t> positions;  // [rows], from 0 in each sequence
  std::vector<SequenceRows>
      sequences;                 // ascending; they hold all rows and see nothing of each other
  std::vector<int32_t> targets;  // [rows]: the token to predict
  std::vector<float> weights;    // [rows]: of each loss in the sum; 0: not part of it

  int64_t num_rows() const { return static_cast<int64_t>(tokens.size()); }
  // Adds a sequence that predicts each next token: `weights[i]` is that of predicting tokens[i +
  // 1].
  void add(std::vector<int32_t> sequence_tokens, std::vector<float> sequence_weights);
  // Adds rows without loss until their number is a multiple of `rows`.
  void pad_to_multiple(int64_t rows);
};

}  // namespace paceline
