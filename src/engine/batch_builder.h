// BatchBuilder turns slices of sequences into the flat arrays that a runner takes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/sequence.h"
#include "layers/batch.h"

namespace paceline {

// A row whose state leaves the decoder, and its use.
struct BatchOutput {
  Sequence* sequence = nullptr;
  int64_t position = 0;
  bool is_last = false;  // of its sequence: drawn from; otherwise it scores the token after it
};

struct BatchSlice {
  Sequence* sequence = nullptr;
  int64_t first_row = 0;
  int64_t count = 0;
};

class BatchBuilder {
 public:
  explicit BatchBuilder(const KvCache& cache) : cache_(cache) {}

  void clear();
  // The next `count` uncomputed tokens of the sequence, whose slots are reserved.
  void add(Sequence& sequence, int64_t count);
  // Adds the copies of blocks, then the outputs: whole rows first, then rows that need only
  // some columns.
  void finish();

  const Batch& batch() const { return batch_; }
  std::span<const BatchSlice> slices() const { return slices_; }
  // In the order of the batch's output rows.
  std::span<const BatchOutput> outputs() const { return outputs_; }
  int64_t num_whole_outputs() const { return num_whole_outputs_; }

 private:
  struct Row {
    BatchOutput output;
    int32_t row = 0;
  };

  const KvCache& cache_;
  Batch batch_;
  std::vector<BatchSlice> slices_;
  std::vector<BatchOutput> outputs_;
  std::vector<Row> column_rows_;
  int64_t num_whole_outputs_ = 0;
};

}  // namespace paceline
