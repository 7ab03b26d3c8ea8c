#include "load/weight_stack.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "weights/expert_checkpoint.h"
#include "weights/mlx_checkpoint.h"
#include "weights/mlx_quantization.h"
#include "weights/mxfp4_checkpoint.h"

namespace paceline {

WeightStack::WeightStack(std::unique_ptr<Checkpoint> stored, const Options& options, Memory& memory,
                         ThreadPool& threads)
    : stored_(std::move(stored)), top_(stored_.get()) {
  if (options.digested) {
    digested_ = std::make_unique<DigestedCheckpoint>(*top_, threads);
    top_ = digested_.get();
  }
  if (options.published && !options.is_dummy) {
    published_ = std::make_unique<QuantisedCheckpoint>(*top_, *options.published, memory, threads);
    top_ = published_.get();
  }
  const auto packed =
      options.is_dummy ? std::nullopt : MlxQuantization::find(options.config, options.where);
  const bool quantizes = options.quantization != LoadQuantization::none;
  if (packed && quantizes) {
    throw Error(ErrorCode::invalid,
                fmt::format("--quantize: the weights are quantised already, according to {}",
                            options.where));
  }
  if (packed) {
    unpacked_ = std::make_unique<MlxCheckpoint>(*top_, *packed, memory, threads);
    top_ = unpacked_.get();
  }
  if (!options.is_dummy && has_mxfp4(options.config, options.where)) {
    unpacked_ = std::make_unique<Mxfp4Checkpoint>(*top_, memory, threads);
    top_ = unpacked_.get();
  }
  if (!options.is_dummy) {
    experts_ = std::make_unique<ExpertCheckpoint>(*top_, memory, threads);
    top_ = experts_.get();
  }
  if (quantizes) {
    quantized_ =
        std::make_unique<QuantizingCheckpoint>(*top_, options.quantization, memory, threads);
    top_ = quantized_.get();
  }
}

std::optional<Hash128> WeightStack::digest() const {
  return digested_ ? std::optional(digested_->digest()) : std::nullopt;
}

}  // namespace paceline
