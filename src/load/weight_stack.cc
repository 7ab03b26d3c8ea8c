#include "load/weight_stack.h"

#include <utility>

#include "weights/mlx_checkpoint.h"
#include "weights/mlx_quantization.h"

namespace paceline {

WeightStack::WeightStack(std::unique_ptr<Checkpoint> stored, const Options& options, Memory& memory,
                         ThreadPool& threads)
    : stored_(std::move(stored)), top_(stored_.get()) {
  if (options.digested) {
    digested_ = std::make_unique<DigestedCheckpoint>(*top_, threads);
    top_ = digested_.get();
  }
  if (options.made_up) return;
  if (const auto quantization = MlxQuantization::find(options.config, options.where)) {
    unpacked_ = std::make_unique<MlxCheckpoint>(*top_, *quantization, memory, threads);
    top_ = unpacked_.get();
  }
}

std::optional<Hash128> WeightStack::digest() const {
  return digested_ ? std::optional(digested_->digest()) : std::nullopt;
}

}  // namespace paceline
