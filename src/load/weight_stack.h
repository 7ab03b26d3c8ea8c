// WeightStack is what a model's weights are read through, from the stored bytes up.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "base/json.h"
#include "base/siphash.h"
#include "base/thread_pool.h"
#include "weights/checkpoint.h"
#include "weights/digested_checkpoint.h"
#include "weights/quantizing_checkpoint.h"

namespace paceline {

// Stored tensors; their digest, when it is wanted; matrices that MLX packed, unpacked; plain ones
// quantised, when that is wanted.
class WeightStack {
 public:
  struct Options {
    const Json& config;      // config.json, whose `quantization` may say how files are packed
    std::string_view where;  // its name in errors
    bool digested = false;   // keep a digest of what is read
    bool made_up = false;    // dummy weights: nothing is packed
    LoadQuantization quantization = LoadQuantization::none;
  };

  // `memory` and `threads` must outlive it. Errors are MlxQuantization's and MlxCheckpoint's;
  // invalid when what is packed should be quantised.
  WeightStack(std::unique_ptr<Checkpoint> stored, const Options& options, Memory& memory,
              ThreadPool& threads);

  Checkpoint& top() const { return *top_; }
  // Of the stored bytes of what was read so far; nothing unless it was wanted.
  std::optional<Hash128> digest() const;

 private:
  std::unique_ptr<Checkpoint> stored_;
  std::unique_ptr<DigestedCheckpoint> digested_;
  std::unique_ptr<Checkpoint> unpacked_;
  std::unique_ptr<Checkpoint> quantized_;
  Checkpoint* top_ = nullptr;
};

}  // namespace paceline
