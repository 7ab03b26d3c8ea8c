// Opening the model that the options name, and saying what was opened.
#pragma once

#include <filesystem>
#include <memory>

#include "cli/session.h"
#include "cli/settings.h"
#include "paceline/llm.h"
#include "paceline/tokenizer.h"

namespace paceline {

// The directory or file of --model, or the bundled model's directory.
std::filesystem::path model_path(const Settings& settings);

// What the options say, with the bundled model's directory when none is named.
LoadOptions load_options(const Settings& settings);

// What went wrong with --weights-cache, unless --quiet; with --verbose also what went well.
void say_weights_cache(const WeightsCacheUse& use, const Settings& settings, Session& session);

// With --verbose, a few lines about the model and the machine.
LLM open_model(const Settings& settings, Session& session);

// Only the tokenizer's files are looked at.
Tokenizer open_tokenizer(const Settings& settings);

// With --verbose, a line about the call that was last.
void say_metrics(const Metrics& metrics, Session& session, std::string_view rest);

// "12.3 MiB"
std::string bytes_text(double bytes);

}  // namespace paceline
