// StepBudget finds, from the times of past steps, how many rows a step may have beside decodes.
#pragma once

#include <cstdint>

namespace paceline {

// Keeps a step with a prefill beside decoding sequences under `slowdown` times a step that only
// decodes, or under `free_seconds` where that is more; slowdown 0: no such limit. It is a
// controller, not a model of the machine: the prefill's share grows while steps stay well below the
// limit and shrinks in proportion when one is above it. The time of a step that only decodes is
// measured as it happens, first and again every so often, since contexts grow.
class StepBudget {
 public:
  struct Limit {
    double slowdown = 0;      // times a step that only decodes
    double free_seconds = 0;  // a step that takes at most this long is within the limit in any case
  };
  StepBudget(Limit limit, int64_t max_rows);

  // Records a step of `rows` rows, `num_decodes` of them single rows of decoding sequences.
  void record(int64_t rows, int64_t num_decodes, double seconds);

  // The most rows of a step with `num_decodes` decodes, decodes included; num_decodes itself when a
  // step without prefill must be timed first.
  int64_t rows_beside(int64_t num_decodes) const;

 private:
  Limit limit_;
  int64_t max_rows_;
  double decode_seconds_ = 0;  // of a step that only decodes; 0: not known
  double prefill_rows_;        // beside decodes
  int64_t steps_since_decode_ = 0;
};

}  // namespace paceline
