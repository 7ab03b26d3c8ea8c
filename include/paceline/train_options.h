// TrainOptions: what a run of training does; every field has a working default.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "paceline/options.h"

namespace paceline {

// What is trained.
enum class FineTuneType : uint8_t {
  lora,  // LoRA matrices beside the frozen weights
  full,  // all weights
};

// The tokens whose prediction is part of the loss.
enum class LossTokens : uint8_t {
  all,              // all but the first
  completion,       // the last message or the completion, as with mlx_lm's --mask-prompt
  assistant_turns,  // all messages of the assistant; of prompt and completion, the completion's
};

// How the learning rate falls after the warm-up.
enum class RateSchedule : uint8_t {
  constant,
  linear,
  cosine,
  wsd,  // warm-up, stable, decay: constant, then linear in the last part of the run
};

enum class OptimizerKind : uint8_t {
  adamw,
  muon,  // Muon for the matrices of blocks, AdamW for everything else
};

// Sequences of at most `length` tokens until the part `until` of a run, above 0 to 1.
struct LengthStage {
  int64_t length = 0;
  double until = 0;
};

using NamedNumbers = std::vector<std::pair<std::string, double>>;

// The options of `paceline train`. Training::open refuses what doesn't go together.
struct TrainOptions {
  // The model, and where it is computed. Of a model that is only trained, what serving needs has no
  // effect: batching, cache, speculation, adapters.
  LoadOptions model = {};
  // The run's directory: checkpoints, metrics.jsonl, and at last the files of the adapter, or of
  // the model.
  std::string output = {};
  // Goes on after the last checkpoint in `output`, with the bits of a run that was never stopped;
  // else `output` must be empty or missing.
  bool resume = false;

  // JSON Lines or a JSON array, a plain text, or a directory with train.jsonl.
  std::string data = {};
  std::string validation_data = {};                // empty: the directory's valid.jsonl, else
  std::optional<double> validation_fraction = {};  // this part of the data: 0.05; 0: none
  LossTokens loss_tokens = LossTokens::all;
  int64_t max_seq_length = 2048;                   // tokens of a row; longer examples are cut
  bool packing = true;                             // rows hold several examples; none sees another
  std::vector<LengthStage> sequence_lengths = {};  // rising; empty: rows aren't cut
  std::string first_token = {};  // of each sequence of a plain text; empty: the token before it

  FineTuneType fine_tune_type = FineTuneType::lora;
  bool from_scratch = false;  // random weights drawn from the seed; with FineTuneType::full
  // Linear modules by the ends of their names: "q_proj", "all-linear", "experts.down_proj"; empty:
  // all linear ones.
  std::vector<std::string> target_modules = {};
  int64_t num_layers = -1;           // adapts the last ones; -1: all
  int64_t rank = 8;                  // of the matrices, 1 to 1024
  double alpha = 16;                 // the product is multiplied by alpha / rank
  std::optional<double> scale = {};  // instead of alpha / rank
  NamedNumbers rank_pattern = {};    // by PEFT's keys: regular expressions of the ends of names
  NamedNumbers alpha_pattern = {};
  double dropout = 0;       // of the inputs of the matrices, 0 to 0.99
  bool use_rslora = false;  // alpha / sqrt(rank)
  // Of the matrices: automatic (float32 beside float32 weights, else bfloat16), float32, bfloat16.
  DataType lora_dtype = DataType::automatic;
  std::string initial_adapter = {};  // a directory with the first values; empty: random ones

  int64_t num_steps = 1000;
  std::optional<double> num_epochs = {};  // instead of num_steps: passes over the training data
  int64_t batch_size = 4;                 // rows
  int64_t accumulation_steps = 1;         // batches of a step
  double learning_rate = 1e-5;            // the peak
  RateSchedule schedule = RateSchedule::constant;
  double decay_fraction = 0.2;  // of wsd
  int64_t warmup_steps = 0;
  std::optional<double> warmup_init = {};  // the first rate of the warm-up
  int64_t hold_steps = 0;                  // at the peak, before linear and cosine fall
  int64_t decay_steps = 0;                 // of linear and cosine; 0: to the end of the run
  double final_learning_rate = 0;          // of schedules that fall
  OptimizerKind optimizer = OptimizerKind::adamw;
  double weight_decay = 0.01;
  double muon_momentum = 0.95;
  std::optional<double> adamw_learning_rate = {};  // beside Muon; learning_rate
  double adamw_weight_decay = 0;                   // beside Muon
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double max_gradient_norm = 1.0;  // longer gradients are scaled down to it; 0: none are
  bool checkpoints = true;         // activations of early layers are computed again, not kept
  int64_t patience = 0;            // evaluations without a lower loss that end the run; 0: none do

  int64_t steps_per_report = 10;
  int64_t steps_per_evaluation = 200;  // 0: before the first step and after the last only
  int64_t validation_batches = 25;     // of an evaluation; -1: all
  int64_t steps_per_checkpoint = 100;
  uint64_t seed = 0;  // of the examples' order, of random values and of dropout
};

struct TrainingPoint {
  int64_t step = 0;
  std::optional<double> loss = {};  // of training: the mean since the last report
  std::optional<double> validation_loss = {};
  double learning_rate = 0;
  double gradient_norm = 0;
  double tokens_per_second = 0;
  int64_t num_tokens = 0;  // trained so far
  uint64_t peak_bytes = 0;
};

struct TrainingOutcome {
  enum class End : uint8_t { finished, out_of_patience, stopped };
  End end = End::finished;
  int64_t num_steps = 0;
  int64_t saved_step = 0;  // of the last checkpoint, from which a stopped run goes on
};

}  // namespace paceline
