// ServedModels are the models of `paceline serve`, which share a machine.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/line_writer.h"
#include "cli/settings.h"
#include "engine/step_turns.h"
#include "load/loaded_model.h"
#include "server/served_model.h"

namespace paceline {

class TraceWriter;

class ServedModels {
 public:
  // Those of --model, --models-dir or the bundled one. `log`, or null, gets a line about each later
  // load. Throws Error invalid naming the option for names that occur twice or can't be used.
  ServedModels(const Settings& settings, LineWriter* log);
  ~ServedModels();

  // Loads those of --model, the first one at least: where memory is short, others wait for their
  // first request. `progress` as in LoadOptions; `loaded` is called with each.
  void load(const std::function<void(uint64_t done, uint64_t total)>& progress,
            const std::function<void(const LoadedModel& model, const Settings& its)>& loaded);
  // Once. It must outlive them.
  std::vector<ModelEntry> take_entries();

  // Ends the trace of the first model. Throws Error exhausted when not everything could be written.
  void finish_trace();

 private:
  struct Choice {
    std::vector<std::string> names;
    Settings settings;  // of it alone
    bool loads_at_once = true;
  };

  void add(std::vector<std::string> names, const std::string& path, bool loads_at_once);
  void add_directory(const std::string& path);
  void check_names() const;
  std::shared_ptr<LoadedModel> open(const Choice& choice, LoadOptions options);
  ServedModel served(const Choice& choice, std::shared_ptr<LoadedModel> model);
  ServedModel load_again(const Choice& choice, const std::atomic<bool>& cancelled);

  const Settings& settings_;
  LineWriter* log_;
  std::vector<Choice> choices_;
  std::vector<ModelEntry> entries_;
  std::shared_ptr<Machine> machine_;
  StepTurns turns_;
  std::unique_ptr<TraceWriter> trace_;  // of the first model
};

}  // namespace paceline
