// PacedModel is the bundled model's text side and a real engine, on a runner without weights.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "engine/step_engine.h"
#include "load/chat_setup.h"
#include "state/state_cache.h"
#include "text/text_model.h"
#include "traffic/paced_server/paced_drafter.h"
#include "traffic/paced_server/paced_runner.h"

namespace paceline::traffic {

struct PacedModelOptions {
  std::filesystem::path directory = "models/paceline-10m";
  PaceOptions pace;
  int64_t block_size = 16;
  int64_t num_blocks = 65'536;
  int64_t max_model_len = 4096;
  int64_t max_num_seqs = 256;
  int64_t max_batched_tokens = 8192;
  int64_t max_queued = 1024;
  int64_t num_drafted = 0;  // tokens of each step's draft; 0: none
};

// Each member depends only on earlier ones. Blocks are only integers here: no keys are stored.
class PacedModel {
 public:
  // Throws Error naming the file at fault.
  explicit PacedModel(const PacedModelOptions& options);

  StepEngine& engine() { return engine_; }
  // Refers to this.
  TextModel text_model();

 private:
  std::filesystem::path directory_;
  Memory memory_;
  Tokenizer tokenizer_;
  GenerationConfig generation_;
  ChatSetup chat_;
  StateCache cache_;
  PacedRunner runner_;
  PacedDrafter drafter_;
  StepEngine engine_;
  SipKey salt_key_ = random_sip_key();
};

}  // namespace paceline::traffic
