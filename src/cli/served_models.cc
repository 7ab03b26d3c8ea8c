#include "cli/served_models.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/time_source.h"
#include "cli/lora_source.h"
#include "cli/model_opening.h"
#include "engine/engine.h"
#include "engine/trace_writer.h"
#include "kernels/backend.h"
#include "load/load_adapter.h"
#include "load/model_path.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

// Clients don't see the path of the model's files, unless it was given as a name.
std::vector<std::string> public_names(const Settings& settings) {
  std::vector<std::string> names = served_names(settings);
  if (!settings.served_model_names.empty()) return names;
  std::erase_if(names, [](const std::string& name) { return name.starts_with('/'); });
  return names;
}

LoadOptions loading(const Settings& settings) {
  LoadOptions options = load_options(settings);
  if (settings.allow_runtime_lora) options.enable_lora = true;
  options.max_step_slowdown = settings.max_step_slowdown.value_or(kSmoothSteps);
  options.fingerprint = true;
  return options;
}

RuntimeAdapters runtime_adapters(const Settings& settings, LoadedModel& model) {
  if (!settings.allow_runtime_lora) return {};
  const int64_t max_rank = settings.load.max_lora_rank;
  return {.load =
              [&model, max_rank](const std::string& name, const std::string& path) {
                return load_adapter(model, {.name = name, .path = path}, max_rank);
              },
          .adapters = model.adapters.get(),
          .directory = settings.lora_directory,
          .most = settings.max_cpu_loras.value_or(settings.load.max_loras)};
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; !from.empty() && (at = text.find(from, at)) != text.npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// Replaces the model's path by its name in messages to clients.
TextModel named(TextModel text, const std::string& name) {
  text.chat_problem = replaced(std::move(text.chat_problem), text.name, name);
  text.name = name;
  return text;
}

// Whether the entry of a directory of models is one: a GGUF file, or a folder that has a model.
bool is_model(const fs::path& path) {
  if (path.extension() == ".gguf") return !is_later_part(path);
  if (!fs::is_directory(path)) return false;
  if (fs::exists(path / "config.json")) return true;
  return std::any_of(
      fs::directory_iterator(path), fs::directory_iterator(),
      [](const fs::directory_entry& file) { return file.path().extension() == ".gguf"; });
}

// "NAME-00001-of-00003" of a split file -> "NAME"
std::string model_name(const fs::path& path) {
  std::string name = (path.extension() == ".gguf" ? path.stem() : path.filename()).string();
  const size_t part = name.rfind("-00001-of-");
  return name.substr(0, part);
}

}  // namespace

ServedModels::ServedModels(const Settings& settings, LineWriter* log)
    : settings_(settings), log_(log) {
  for (const std::string& text : settings.models) {
    const auto source = read_lora_source(text);  // NAME=PATH, too
    if (!source) {
      throw error_of(ErrorCode::invalid, "--model: found \"{}\", expected MODEL or NAME=MODEL",
                     text);
    }
    std::vector<std::string> names;
    if (source->path != text) names.push_back(source->name);
    add(std::move(names), source->path, true);
  }
  if (!settings.models_directory.empty()) add_directory(settings.models_directory);
  if (choices_.empty()) add({}, "", true);
  check_names();
}

ServedModels::~ServedModels() = default;

// Options of one model's files are the first model's.
void ServedModels::add(std::vector<std::string> names, const std::string& path,
                       bool loads_at_once) {
  Settings own = settings_;
  own.load.model = path;
  const bool is_first = choices_.empty();
  if (!is_first) {
    own.served_model_names.clear();
    own.load.loras.clear();
    own.load.chat_template.clear();
    own.load.speculative_model.clear();
    own.load.speculative_config.clear();
    own.load.speculative_method = DraftMethod::automatic;
    own.load.trace_file.clear();
  }
  if (own.served_model_names.empty()) own.served_model_names = std::move(names);
  choices_.push_back({.names = public_names(own), .settings = own, .loads_at_once = loads_at_once});
}

void ServedModels::add_directory(const std::string& path) {
  std::error_code problem;
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, problem)) {
    if (is_model(entry.path())) found.push_back(entry.path());
  }
  if (problem || found.empty()) {
    throw error_of(ErrorCode::invalid,
                   "--models-dir: {}: {}, expected a directory of models: folders with "
                   "config.json, and GGUF files",
                   path, problem ? problem.message() : "has no model");
  }
  std::sort(found.begin(), found.end());
  for (const fs::path& one : found) add({model_name(one)}, one.string(), false);
}

void ServedModels::check_names() const {
  std::set<std::string> taken;
  for (const Choice& choice : choices_) {
    for (const std::string& name : choice.names) {
      if (taken.insert(name).second) continue;
      throw error_of(ErrorCode::invalid,
                     "--model: two models are called {}; name one by NAME=MODEL", name);
    }
  }
  check_adapter_names(settings_, {taken.begin(), taken.end()});
}

std::shared_ptr<LoadedModel> ServedModels::open(const Choice& choice, LoadOptions options) {
  if (options.backend != "native") return load_model(options);  // on a machine of its own
  if (machine_ == nullptr) machine_ = make_machine(options);
  std::unique_ptr<LoadedModel> model = load_model(options, machine_);
  const std::string& trace_file = choice.settings.load.trace_file;
  if (trace_ == nullptr && !trace_file.empty()) {
    trace_ = std::make_unique<TraceWriter>(trace_file, model->path.string(),
                                           model->engine->limits(), *model->cache);
  }
  // The machine keeps freed memory for reuse.
  return {model.release(), [machine = machine_](LoadedModel* unloaded) {
            delete unloaded;
            machine->backend->memory().clear_cache();
            machine->memory.clear_cache();
            ::malloc_trim(0);
          }};
}

ServedModel ServedModels::served(const Choice& choice, std::shared_ptr<LoadedModel> model) {
  LoadedModel& loaded = *model;
  const Settings& settings = choice.settings;
  const bool is_traced = !settings.load.trace_file.empty();
  return {.owner = std::move(model),
          .names = choice.names,
          .text = named(text_model(loaded), choice.names[0]),
          .observer = is_traced ? trace_.get() : nullptr,
          .window = {.timeout = std::chrono::milliseconds(settings.load.batch_timeout_ms),
                     .num_requests = settings.load.batch_size},
          .turns = loaded.decoder == nullptr ? nullptr : &turns_,
          .fingerprint = loaded.fingerprint,
          .cache_dtype = std::string(dtype_name(loaded.kv_dtype)),
          .runtime_adapters = runtime_adapters(settings, loaded)};
}

void ServedModels::load(
    const std::function<void(uint64_t done, uint64_t total)>& progress,
    const std::function<void(const LoadedModel& model, const Settings& its)>& loaded) {
  for (const Choice& choice : choices_) {
    std::vector<std::string> adapters;
    for (const LoraSource& adapter : choice.settings.load.loras) adapters.push_back(adapter.name);
    const LoadOptions& load = choice.settings.load;
    ModelEntry& entry = entries_.emplace_back(ModelEntry{
        .names = choice.names,
        .adapters = std::move(adapters),
        .max_requests = load.max_num_seqs + load.max_queued,
        .load = [this, &choice](const auto& cancelled) { return load_again(choice, cancelled); }});
    if (!choice.loads_at_once) continue;
    LoadOptions options = loading(choice.settings);
    options.progress = progress;
    try {
      std::shared_ptr<LoadedModel> model = open(choice, std::move(options));
      loaded(*model, choice.settings);
      entry.loaded.emplace(served(choice, std::move(model)));
    } catch (const Error& error) {
      if (entries_.size() == 1 || error.code() != ErrorCode::exhausted) throw;
      if (log_ != nullptr) {
        log_->write(fmt::format("note: {}; it is loaded by its first request", error.what()));
      }
    }
  }
}

ServedModel ServedModels::load_again(const Choice& choice, const std::atomic<bool>& cancelled) {
  const std::string& name = choice.names[0];
  const auto begin = Clock::now();
  try {
    LoadOptions options = loading(choice.settings);
    options.progress = [&cancelled](uint64_t /*done*/, uint64_t /*total*/) {
      if (cancelled) throw Error(ErrorCode::cancelled, "the server is shutting down");
    };
    ServedModel model = served(choice, open(choice, std::move(options)));
    const std::chrono::duration<double> took = Clock::now() - begin;
    if (log_ != nullptr) log_->write(fmt::format("loaded {} in {:.2f} s", name, took.count()));
    return model;
  } catch (const Error& error) {
    if (log_ != nullptr) log_->write(fmt::format("loading {} failed: {}", name, error.what()));
    const std::string& asked = choice.settings.load.model;
    std::string message = error.what();
    if (asked.find('/') != asked.npos) message = replaced(message, asked, name);
    throw Error(error.code(), message);
  }
}

std::vector<ModelEntry> ServedModels::take_entries() { return std::move(entries_); }

void ServedModels::finish_trace() {
  if (trace_ != nullptr) trace_->finish();
}

}  // namespace paceline
