// BatchBuilder lays out slices of sequences as the flat arrays that a runner takes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "layers/batch.h"
#include "state/state_cache.h"

namespace paceline {

// Consecutive positions of one sequence, whose slots are reserved: tokens, then drafted ones.
struct BatchRows {
  std::span<const int32_t> tokens;
  std::span<const int32_t> drafted = {};
  int64_t first_position = 0;
  const SequenceBlocks& blocks;
  int32_t adapter = 0;    // its number; 0: none
  int64_t stretched = 0;  // Runner::stretched_length of the sequence
  // The first position whose token is of the second type, where a pair of texts has some.
  std::optional<int64_t> second_text = {};
};

class BatchBuilder {
 public:
  explicit BatchBuilder(const StateCache& cache) : cache_(cache) {}

  void clear();
  // Returns the first row. Neighbours with one adapter become one segment of Batch::adapters.
  int64_t add(const BatchRows& rows);
  // The row's state leaves the decoder, behind those of earlier calls.
  void add_output(int64_t row);
  // Takes the copies of blocks that the cache has asked for since StateCache::clear_copies.
  void add_copies();

  const Batch& batch() const { return batch_; }

 private:
  void add_state(const BatchRows& rows, int index, int64_t first_row, int64_t count,
                 GroupBatch& group);
  void add_types(const BatchRows& rows, int64_t count);
  void add_adapter(int32_t adapter, int64_t first_row, int64_t count);

  const StateCache& cache_;
  Batch batch_;
};

}  // namespace paceline
