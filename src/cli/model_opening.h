// Opens the model that the options name, and reports what was opened.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cli/progress.h"
#include "cli/session.h"
#include "cli/settings.h"
#include "paceline/llm.h"
#include "paceline/tokenizer.h"

namespace paceline {

// The directory or file of --model, or the bundled model's directory.
std::filesystem::path model_path(const Settings& settings);

// The options of loading, with the bundled model's directory when no model is named.
LoadOptions load_options(const Settings& settings);

// Throws Error invalid where --load-format names another format than that of the model's files.
void check_load_format(const Settings& settings);

// The number of sequences of the command line's prompts, `per_prompt` each, up to kManySequences;
// that many with --jsonl.
int64_t usual_sequences(const Settings& settings, size_t per_prompt);

// Warns of weights beside the model's that aren't read.
void print_unread_weights(const Settings& settings, Session& session);

// The same, and reports failures of --weights-cache; with --verbose also successes.
void print_weight_notes(const WeightsCacheUse& cache, const Settings& settings, Session& session);

// What was made of the memory for keys and values.
struct CacheUse {
  int64_t context = 0;       // the longest
  int64_t full_context = 0;  // the model's
  size_t bytes = 0;          // with those of a draft model
  int64_t sequences = 0;     // at most at once
};

// Warns of a cache that holds less than the model's full context, or takes less memory than
// --kv-cache-memory-bytes gives it.
void print_cache_use(const CacheUse& use, const Settings& settings, Session& session);

// Shows the progress of work on bytes, of loading as a rule, on a terminal, while it lives.
class ByteProgress {
 public:
  explicit ByteProgress(const Session& session, std::string_view title = "loading the model  ");

  void update(uint64_t done_bytes, uint64_t total_bytes);
  // update(), for LoadOptions::progress; it must not outlive the object.
  std::function<void(uint64_t, uint64_t)> callback();

 private:
  ProgressBar bar_;
};

// Prints each, with "note: " in front.
void print_notes(const std::vector<std::string>& notes, Session& session);

// The default of --max-num-seqs for commands with many requests. The cache is sized for them.
constexpr int64_t kManySequences = 256;

// Opens the model; with --verbose prints a few lines about it and the machine.
LLM open_model(const Settings& settings, Session& session, int64_t num_sequences = kManySequences);

// The model's names in requests: those given, else the last part of the model's path (without
// .gguf) and the path. The first is its name in responses.
std::vector<std::string> served_names(const Settings& settings);

// Throws Error invalid when an adapter has one of the model's names.
void check_adapter_names(const Settings& settings, const std::vector<std::string>& names);

// Reads only the tokenizer's files.
Tokenizer open_tokenizer(const Settings& settings);

// With --verbose, prints a line about a call.
void print_metrics(const Metrics& metrics, Session& session, std::string_view rest);

// "draft model: PATH, weights 1.5 MiB, keys and values 2.0 MiB; drafts up to 8 tokens a step".
// Empty when nothing drafts.
std::string drafter_text(const DrafterInfo& drafter);

}  // namespace paceline
