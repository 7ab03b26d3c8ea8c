// Settings holds the values of all options, from flags, environment and config file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "paceline/options.h"
#include "server/server_options.h"

namespace paceline {

// The options of bench; an empty list means the test's default sizes (bench_plan.h).
struct BenchChoice {
  std::string shape;               // empty: the model
  std::vector<std::string> tests;  // by their names
  std::vector<int64_t> prompt_tokens;
  std::vector<int64_t> contexts;
  std::vector<int64_t> sequences;
  std::optional<int64_t> output_tokens;
  std::vector<std::string> formats;
  std::vector<int64_t> threads;
  // speculate
  std::vector<double> acceptance;      // of replayed answers
  std::vector<int64_t> draft_lengths;  // fixed ones, beside the adaptive one
  std::vector<double> temperatures;
  std::string prompt_texts;  // empty: what suits the drafter
  int64_t repetitions = 3;
  bool roofline = false;
  bool plan = false;  // print the plan only
};

// What texts must be: at most one of the first four.
struct ConstraintChoice {
  std::string json_schema_file;
  std::optional<std::string> regex;
  std::string grammar_file;
  std::vector<std::string> choices;
  bool strict = false;

  bool is_given() const {
    return !json_schema_file.empty() || regex || !grammar_file.empty() || !choices.empty();
  }
};

using NamedNumbers = std::vector<std::pair<std::string, double>>;

// The options of train.
struct TrainChoice {
  std::string data;
  std::string validation_data;
  std::optional<double> validation_fraction;  // 0.05 where there is no file
  std::string loss_on;                        // all, completion or assistant; empty: all
  bool mask_prompt = false;                   // mlx_lm's name of --loss-on completion
  int64_t max_seq_length = 2048;
  bool is_packed = true;

  std::string sequence_lengths;  // of sequences that grow (train_data.h); empty: rows aren't cut
  std::string first_token;       // of each sequence of a plain text; empty: the token before it

  std::string fine_tune_type = "lora";
  bool from_scratch = false;
  std::vector<std::string> target_modules;  // empty: all linear ones
  int64_t num_layers = -1;                  // the last ones; -1: all
  int64_t rank = 8;
  double alpha = 16;
  std::optional<double> scale;  // instead of alpha: what the product is multiplied by
  NamedNumbers rank_pattern;    // by PEFT's keys: regular expressions of the ends of module names
  NamedNumbers alpha_pattern;
  double dropout = 0;
  bool use_rslora = false;
  std::string lora_dtype = "auto";
  std::string initial_adapter;

  int64_t num_steps = 1000;
  std::optional<double> num_epochs;  // instead of num_steps: passes over the training data
  int64_t batch_size = 4;
  int64_t accumulation_steps = 1;
  double learning_rate = 1e-5;
  std::string schedule = "constant";
  double decay_fraction = 0.2;  // of wsd
  int64_t warmup_steps = 0;
  std::optional<double> warmup_init;  // the first rate of the warm-up
  int64_t hold_steps = 0;             // at the peak, in front of the decay
  int64_t decay_steps = 0;            // of linear and cosine; 0: to the end of the run
  double final_learning_rate = 0;     // of schedules that fall
  std::string optimizer = "adamw";
  double weight_decay = 0.01;
  double muon_momentum = 0.95;
  std::optional<double> adamw_learning_rate;  // beside Muon; learning_rate
  double adamw_weight_decay = 0;              // beside Muon
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double max_gradient_norm = 1.0;
  bool checkpoints = true;  // of activations
  int64_t patience = 0;

  int64_t steps_per_report = 10;
  int64_t steps_per_evaluation = 200;
  int64_t validation_batches = 25;
  int64_t steps_per_checkpoint = 100;
  uint64_t seed = 0;
  bool resume = false;
  bool dry_run = false;
};

// The name of the one adapter of a run, whatever --lora calls it.
inline constexpr const char* kOnlyAdapter = "adapter";

struct Settings {
  LoadOptions load;         // an empty model means the bundled one
  std::string file_format;  // of the weights: safetensors, gguf; empty: any
  GenerateOptions generate;

  // Input.
  std::vector<std::string> prompts;
  std::vector<std::vector<int32_t>> id_prompts;
  std::optional<std::string> file;  // "-" is standard input
  bool jsonl = false;

  // chat, batch
  std::string system;
  std::string system_prompt_file;
  std::string chat_template_kwargs;  // a JSON object, or empty

  // render
  std::string template_file;

  // classify
  std::vector<std::string> labels;
  bool with_token_id = false;
  bool with_logits = false;

  // decide
  std::vector<std::string> predicates;
  std::string questions_file;
  std::optional<double> decide_temperature;
  std::optional<std::string> content_free_input;

  // embed
  std::optional<int64_t> dimensions;
  std::optional<std::string> prompt_name;

  // tokenize
  bool special = false;
  bool specials_as_text = false;
  bool spans = false;

  // generate, chat, grammar
  ConstraintChoice constraint;

  // grammar
  bool masks = false;

  // perplexity
  std::string dump_logits;
  std::string against = "transformers";  // what verify compares with
  std::string python = "python3";        // runs that
  double tolerance = 1e-3;               // of log-probabilities
  std::optional<int64_t> max_positions;

  // inspect: load.max_num_seqs when it was given
  std::optional<int64_t> max_num_seqs;

  // bench
  BenchChoice bench;

  // batch
  std::string input;
  std::vector<std::string> served_model_names;

  // serve
  std::vector<std::string> models;  // --model, each MODEL or NAME=MODEL
  std::string models_directory;
  std::optional<double> max_step_slowdown;  // load.max_step_slowdown when it was given
  ServerOptions server;                     // without what is read from files
  bool insecure = false;
  std::string seal_key_file;
  std::string compaction_prompt_file;
  bool allow_runtime_lora = false;
  std::string lora_directory;
  std::optional<int64_t> max_cpu_loras;
  bool log_requests = true;

  // trace
  bool replay = false;

  // quantize, fuse, convert
  std::optional<int64_t> bits;
  std::optional<int64_t> group_size;  // 64
  std::string recipe;
  std::string gguf_type;
  std::optional<std::string> check;
  std::optional<std::string> calibrate;

  // train
  TrainChoice train;

  // adapter, fuse
  std::string adapter;
  std::string adapter_format;  // to write; empty: none

  // trace, batch, quantize, convert, adapter, fuse, train
  std::string output;  // empty: standard output

  bool json = false;
  bool verbose = false;
  bool quiet = false;
  bool help = false;
  bool help_all = false;
};

}  // namespace paceline
