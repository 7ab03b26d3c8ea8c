// Calibration measures what the products of a model read over a text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "layers/adapter_weights.h"
#include "models/decoder_config.h"
#include "tensor/memory.h"
#include "weights/calibrated_quantizer.h"

namespace paceline {

struct CalibrationOptions {
  std::filesystem::path model;  // a directory
  std::string text;
  int64_t max_tokens = 1 << 16;  // of the text
  int num_threads = 0;
  // Called with the tokens computed so far and in total; may throw to end the work.
  std::function<void(uint64_t done, uint64_t all)> progress = [](uint64_t, uint64_t) {};
};

class Calibration {
 public:
  // Computes the text's windows with the model on the CPU. Throws the errors of load_model(), Error
  // invalid for a text without tokens, and exhausted when the sums don't fit into memory.
  Calibration(const CalibrationOptions& options, ThreadPool& threads);
  ~Calibration();

  // For a weight by its name in the files, "model.layers.3.self_attn.q_proj.weight", with `length`
  // columns. Null for one whose inputs weren't seen: of experts that are chosen, of an embedding
  // that isn't the head. Valid until the next call.
  const ErrorFeedback* feedback(std::string_view name, int64_t length);
  // input_importance() of the same inputs; empty where feedback() is null.
  std::vector<float> importance(std::string_view name, int64_t length) const;

 private:
  // A block and its product; the head's block is behind all others.
  using Place = std::pair<size_t, BlockProduct>;
  class Sums;

  const Tensor* find_sum(std::string_view name) const;

  DecoderConfig config_;
  bool has_own_head_ = false;
  ThreadPool& threads_;
  Memory memory_;
  std::unique_ptr<Sums> sums_;
  const Tensor* prepared_ = nullptr;  // whose feedback is kept
  std::unique_ptr<ErrorFeedback> feedback_;
};

}  // namespace paceline
