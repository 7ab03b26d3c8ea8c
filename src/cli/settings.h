// Settings holds the values of all options, from flags, environment and config file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "paceline/options.h"
#include "paceline/train_options.h"
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
  TrainOptions train;  // without the model and the directory, which are `load` and `output`
  bool dry_run = false;

  // adapter, fuse
  std::string adapter;
  std::string adapter_format;  // to write; empty: none

  // trace, batch, quantize, convert, adapter, fuse, train
  std::string output;  // empty: standard output

  bool json = false;
  bool verbose = false;
  bool quiet = false;
  bool stop_with_parent = false;
  bool error_codes = false;
  bool help = false;
  bool help_all = false;
};

}  // namespace paceline
