// DecodeLoop decodes the sequences of a batch step after step where they are computed: the token
// that a step draws is the next step's input, and the caller reads tokens while that step runs.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/decode_slots.h"
#include "layers/batch.h"

namespace paceline {

// How a sequence is decoded.
struct DecodeTerms {
  int64_t num_steps = 0;                   // at most; its blocks hold the positions of that many
  std::span<const int32_t> stop_ids = {};  // its row behind one of them isn't computed
  std::span<const int32_t> forbidden_ids = {};  // that the first num_forbidding steps don't draw
  int64_t num_forbidding = 0;
  RowDraw draw = {};  // of the next token; those after it are at their positions, with all before
                      // them in the history
};

// One thread. A caller that stops early leaves keys and values, or a state, behind the last token
// that it read.
class DecodeLoop {
 public:
  virtual ~DecodeLoop() = default;

  // The most sequences of a batch.
  virtual int64_t max_sequences() const = 0;
  // Whether a batch may have adapters.
  virtual bool takes_adapters() const { return true; }
  // Copies the batch's block copies and starts the first step. Every slice is one row, and an
  // output; there are no stretched rows. States are saved where the batch says for all steps.
  // Adapters, which the table has, must outlive the steps.
  // Steps of an earlier batch are over.
  virtual void start(const Batch& batch, AdapterTable adapters,
                     std::span<const DecodeTerms> terms) = 0;
  enum class Then : uint8_t { goes_on, ends };
  // The tokens of the first step that was not read, one for each slice in the batch's order; valid
  // until the next call. Before it waits for them it starts the step after it, unless this one
  // ends.
  virtual std::span<const DecodedToken> next(Then then) = 0;
};

}  // namespace paceline
