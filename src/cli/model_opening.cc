#include "cli/model_opening.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/error.h"
#include "cli/figures.h"
#include "cli/lora_source.h"
#include "load/model_path.h"
#include "load/model_source.h"
#include "weights/checkpoint.h"

namespace paceline {
namespace {

std::string parameters_text(int64_t count) {
  const auto number = static_cast<double>(count);
  return count >= 1'000'000'000 ? fmt::format("{:.2f}B", number / 1e9)
                                : fmt::format("{:.1f}M", number / 1e6);
}

void print_model(const LLM& llm, double seconds, Session& session) {
  const ModelInfo model = llm.model_info();
  if (model.backend != "native") {
    return session.print_note("model: {} ({}, {} layers), computed by {}, opened in {:.2f} s",
                              model.path, model.family, model.num_layers, model.backend, seconds);
  }
  const DeviceInfo device = llm.device_info();
  session.print_note("model: {} ({}, {} layers, {} parameters, {}), opened in {:.2f} s", model.path,
                     model.family, model.num_layers, parameters_text(model.num_parameters),
                     model.weight_format, seconds);
  if (!model.quantised_files.empty()) {
    session.print_note("quantised files: {}", model.quantised_files);
  }
  const std::string cached =
      model.num_states == 0
          ? "keys and values"
          : fmt::format("keys, values and states ({}) of {} {}", model.state_dtype,
                        model.num_states, plural_of("sequence", model.num_states));
  session.print_note("memory: weights {}, {} {} ({}) for contexts of up to {} tokens",
                     bytes_text(model.weight_bytes), cached, bytes_text(model.kv_cache_bytes),
                     model.kv_cache_dtype, model.max_model_len);
  const std::string drafter = drafter_text(model.drafter);
  if (!drafter.empty()) session.print_note(drafter);
  session.print_note("machine: {}, {}, {} {}", device.name, device.instruction_set,
                     device.num_threads, plural_of("thread", device.num_threads));
}

std::string outcome_text(const WeightsCacheUse& use) {
  const std::string size = bytes_text(use.bytes);
  switch (use.outcome) {
    case WeightsCacheUse::Outcome::off:
      return "not used, dummy weights are made from the configuration alone";
    case WeightsCacheUse::Outcome::reused:
      return fmt::format("{}, {}, mapped", use.file, size);
    case WeightsCacheUse::Outcome::written:
      return fmt::format("{}, {}, written for the next start", use.file, size);
    case WeightsCacheUse::Outcome::failed:
      return "not used";
  }
  return {};
}

}  // namespace

void print_unread_weights(const Settings& settings, Session& session) {
  const LoadOptions& load = settings.load;
  if (load.model.empty() || load.load_format != LoadFormat::files) return;
  if (const auto note = unread_weights(model_path(settings))) {
    session.print_note("warning: " + *note);
  }
}

void print_weight_notes(const WeightsCacheUse& cache, const Settings& settings, Session& session) {
  print_unread_weights(settings, session);
  if (settings.load.weights_cache.empty()) return;
  if (cache.outcome == WeightsCacheUse::Outcome::off) {
    return session.print_note("warning: --weights-cache: " + outcome_text(cache));
  }
  if (!cache.problem.empty()) session.print_note("warning: weights cache: " + cache.problem);
  if (settings.verbose) session.print_note("weights cache: " + outcome_text(cache));
}

std::filesystem::path model_path(const Settings& settings) {
  return settings.load.model.empty() ? bundled_model_directory() : find_model(settings.load.model);
}

std::vector<std::string> served_names(const Settings& settings) {
  if (!settings.served_model_names.empty()) return settings.served_model_names;
  const std::string path =
      settings.load.model.empty() ? model_path(settings).string() : settings.load.model;
  std::vector<std::string> names = {name_of_path(path)};
  if (names[0] != path) names.push_back(path);
  return names;
}

void check_adapter_names(const Settings& settings, const std::vector<std::string>& names) {
  for (const LoraSource& adapter : settings.load.loras) {
    if (std::find(names.begin(), names.end(), adapter.name) == names.end()) continue;
    throw error_of(ErrorCode::invalid, "--lora {}: the model has this name, expected another one",
                   adapter.name);
  }
}

LoadOptions load_options(const Settings& settings) {
  LoadOptions options = settings.load;
  if (options.model.empty()) options.model = bundled_model_directory();
  check_load_format(settings);
  return options;
}

void check_load_format(const Settings& settings) {
  if (settings.file_format.empty()) return;
  const std::filesystem::path path = model_path(settings);
  const std::string_view found = path.extension() == ".gguf" ? "gguf" : "safetensors";
  if (found == settings.file_format) return;
  throw error_of(ErrorCode::invalid, "--load-format: {}, but the model is in {} ({})",
                 settings.file_format, found, path.string());
}

int64_t usual_sequences(const Settings& settings, size_t per_prompt) {
  if (settings.jsonl) return kManySequences;
  const size_t num_prompts = settings.prompts.size() + settings.id_prompts.size();
  const auto wanted = static_cast<int64_t>(std::max<size_t>(num_prompts, 1) * per_prompt);
  return std::min(wanted, kManySequences);
}

void print_cache_use(const CacheUse& use, const Settings& settings, Session& session) {
  const LoadOptions& load = settings.load;
  if (!load.kv_cache_memory_bytes) return;
  const auto given = static_cast<double>(*load.kv_cache_memory_bytes);
  constexpr double kNearly = 0.9;  // blocks are whole
  if (static_cast<double>(use.bytes) < kNearly * given && use.context >= use.full_context) {
    session.print_note(
        "note: keys and values take {}, enough for {} {} of {} tokens; "
        "--kv-cache-memory-bytes gives them {}",
        bytes_text(use.bytes), use.sequences, plural_of("sequence", use.sequences), use.context,
        bytes_text(given));
  }
  if (use.context >= use.full_context || load.max_model_len) return;
  session.print_note(
      "note: the context is {} tokens, which is all that --kv-cache-memory-bytes {} "
      "holds; the model's is {}",
      use.context, bytes_text(given), use.full_context);
}

ByteProgress::ByteProgress(const Session& session, std::string_view title)
    : bar_(session.shows_progress(), "MB", 0, title) {}

void ByteProgress::update(uint64_t done_bytes, uint64_t total_bytes) {
  constexpr uint64_t kMegabyte = 1'000'000;
  bar_.update(static_cast<int64_t>(done_bytes / kMegabyte),
              static_cast<int64_t>(total_bytes / kMegabyte));
}

std::function<void(uint64_t, uint64_t)> ByteProgress::callback() {
  return [this](uint64_t done, uint64_t total) { update(done, total); };
}

void print_notes(const std::vector<std::string>& notes, Session& session) {
  for (const std::string& note : notes) session.print_note("note: " + note);
}

LLM open_model(const Settings& settings, Session& session, int64_t num_sequences) {
  const auto start = std::chrono::steady_clock::now();
  LoadOptions options = load_options(settings);
  options.max_num_seqs = settings.max_num_seqs.value_or(num_sequences);
  std::optional<ByteProgress> progress(std::in_place, session);
  options.progress = progress->callback();
  LLM llm = LLM::load(options);
  progress.reset();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (settings.verbose) print_model(llm, took.count(), session);
  const std::string device = llm.device_info().note;
  if (!device.empty()) session.print_note(device);
  const ModelInfo model = llm.model_info();
  print_cache_use({.context = model.max_model_len,
                   .full_context = model.full_context,
                   .bytes = model.kv_cache_bytes + model.drafter.kv_cache_bytes,
                   .sequences = options.max_num_seqs},
                  settings, session);
  print_weight_notes(model.weights_cache, settings, session);
  return llm;
}

Tokenizer open_tokenizer(const Settings& settings) {
  return Tokenizer::load(ModelSource(model_path(settings)).files());
}

void print_metrics(const Metrics& metrics, Session& session, std::string_view rest) {
  std::string line = fmt::format("prefill: {} tokens, {} tok/s", metrics.prompt_tokens,
                                 grouped_number(metrics.prefill_tokens_per_second));
  if (metrics.completion_tokens > 0) {
    line += fmt::format("; decode: {} tokens, {} tok/s; first token after {}",
                        metrics.completion_tokens, grouped_number(metrics.decode_tokens_per_second),
                        duration_figure(metrics.time_to_first_token_seconds));
  }
  if (metrics.drafted_tokens > 0) {
    line += "; " + draft_figures({.drafted = metrics.drafted_tokens,
                                  .accepted = metrics.accepted_tokens,
                                  .output = metrics.completion_tokens});
  }
  if (metrics.peak_memory_bytes > 0) {
    line += fmt::format("; peak memory {}", bytes_text(metrics.peak_memory_bytes));
  }
  session.print_line(line + std::string(rest));
}

std::string drafter_text(const DrafterInfo& drafter) {
  if (drafter.name.empty()) return {};
  const std::string most = fmt::format("drafts up to {} {} a step", drafter.max_tokens,
                                       plural_of("token", drafter.max_tokens));
  if (drafter.weight_bytes == 0) return fmt::format("drafter: {}, {}", drafter.name, most);
  return fmt::format("draft model: {}, weights {}, keys and values {}; {}", drafter.name,
                     bytes_text(drafter.weight_bytes), bytes_text(drafter.kv_cache_bytes), most);
}

}  // namespace paceline
