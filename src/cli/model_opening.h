// Opening the model that the options name, and saying what was opened.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/session.h"
#include "cli/settings.h"
#include "paceline/llm.h"
#include "paceline/tokenizer.h"

namespace paceline {

// The directory or file of --model, or the bundled model's directory.
std::filesystem::path model_path(const Settings& settings);

// The options of loading, with the bundled model's directory when no model is named.
LoadOptions load_options(const Settings& settings);

// How many sequences the prompts of the command line are when each is `per_prompt` of them; any
// number with --jsonl.
int64_t usual_sequences(const Settings& settings, size_t per_prompt);

// What went wrong with --weights-cache, unless --quiet; with --verbose also what went well.
void print_weights_cache(const WeightsCacheUse& use, const Settings& settings, Session& session);

// That the cache holds less than the context that the model was made for, unless --quiet.
void print_short_context(int64_t context, int64_t full_context, const Settings& settings,
                         Session& session);

// How many sequences a command has at once unless --max-num-seqs says otherwise. The cache is sized
// for them.
constexpr int64_t kManySequences = 256;

// With --verbose, a few lines about the model and the machine.
LLM open_model(const Settings& settings, Session& session, int64_t num_sequences = kManySequences);

// What requests may call the model: the names given, else the last part of the model's path
// (without .gguf) and the path. The first is its name in responses.
std::vector<std::string> served_names(const Settings& settings);

// Only the tokenizer's files are looked at.
Tokenizer open_tokenizer(const Settings& settings);

// With --verbose, a line about the call that was last.
void print_metrics(const Metrics& metrics, Session& session, std::string_view rest);

// "12.3 MiB"
std::string bytes_text(double bytes);

}  // namespace paceline
