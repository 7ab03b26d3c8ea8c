// Trainer takes training steps: gradients of a batch, clipped, then the optimizer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "train/decoder_pass.h"
#include "train/learning_rate.h"
#include "train/muon.h"
#include "train/trained_set.h"

namespace paceline {

struct TrainerOptions {
  LearningRate learning_rate;
  std::variant<AdamWOptions, MuonOptions> optimizer;
  double max_gradient_norm = 0;  // longer gradients are scaled down to it; 0: none are
  double dropout = 0;            // of the inputs of LoRA's matrices
  uint64_t seed = 0;             // of dropout
  PassOptions pass;
};

struct StepReport {
  double loss = 0;           // the mean over the tokens that count
  double gradient_norm = 0;  // before clipping
  double learning_rate = 0;
  int64_t num_tokens = 0;  // that count
  int64_t num_rows = 0;    // computed, padding included
};

class Trainer {
 public:
  // All must outlive it.
  Trainer(Backend& backend, ThreadPool& threads, const Decoder& decoder, TrainedSet& trained,
          const TrainerOptions& options);

  // The next step, over micro-batches whose weights are those of the whole step. Throws Error
  // numerical when the loss or the gradient isn't finite, exhausted when memory is; the matrices
  // are then what they were.
  StepReport step(std::span<const TrainBatch> micro_batches);

  // The mean loss over the tokens that count; 0 without any.
  double evaluate(std::span<const TrainBatch> batches);

  // Steps taken so far, and what a checkpoint keeps of them.
  int64_t num_steps() const { return optimizer_->num_steps(); }
  Optimizer& optimizer() { return *optimizer_; }
  TrainedSet& trained() { return trained_; }
  Backend& backend() { return backend_; }

 private:
  Backend& backend_;
  ThreadPool& threads_;
  TrainedSet& trained_;
  TrainerOptions options_;
  DecoderPass pass_;
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace paceline
