// Counts the bytes of keys and values that an engine's steps read.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/step_record.h"
#include "models/decoder_config.h"

namespace paceline {

// What attention has to read: the keys and values that a slice's rows see, once in every layer,
// with the scales of 8-bit codes. A layer with a window sees no more than that many positions a
// row.
class KvReads final : public StepObserver {
 public:
  // `next`, if any, observes too.
  KvReads(const DecoderConfig& config, DType dtype, DType state_dtype,
          StepObserver* next = nullptr);

  int64_t bytes() const { return bytes_; }

  void on_submitted(const Sequence& sequence, int64_t step) override;
  void on_cancelled(RequestId id, int64_t step) override;
  void on_step(const StepRecord& record) override;

 private:
  struct LayerReads {
    int64_t window = 0;  // 0: none
    int64_t position_bytes = 0;
  };
  std::vector<LayerReads> layers_;  // with attention, also those that share keys
  int64_t state_bytes_ = 0;         // of all layers: the matrices that a chunk's rows read
  StepObserver* next_;
  int64_t bytes_ = 0;
};

}  // namespace paceline
