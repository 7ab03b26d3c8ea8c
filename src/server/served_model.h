// ServedModel is a loaded model and how it is to be served; ModelEntry is one to load.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine_thread.h"
#include "server/server_options.h"
#include "text/text_model.h"

namespace paceline {

struct ServedModel {
  std::shared_ptr<void> owner = {};  // of all that follows, or null
  std::vector<std::string> names;    // what requests may call it, never none; the first is its own
  TextModel text;
  StepObserver* observer = nullptr;  // also observes the engine's steps
  AdmissionWindow window = {};
  StepTurns* turns = nullptr;    // of the engines that share its machine
  std::string fingerprint = {};  // of responses; empty: left out
  std::string cache_dtype = {};  // of keys and values, in /metrics
  RuntimeAdapters runtime_adapters = {};
};

// A model that a server can serve.
struct ModelEntry {
  std::vector<std::string> names;          // as those of ServedModel
  std::vector<std::string> adapters = {};  // that it has once it is loaded: names of it, too
  int64_t max_requests = 0;                // that it runs and queues
  // Loads it. Throws Error, exhausted where memory is short; cancelled once the flag is set. Null:
  // it can't be loaded again.
  std::function<ServedModel(const std::atomic<bool>& cancelled)> load = nullptr;
  std::optional<ServedModel> loaded = {};  // is loaded already
};

}  // namespace paceline
