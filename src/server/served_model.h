// ServedModel is a loaded model and how it is to be served.
#pragma once

#include <string>
#include <vector>

#include "engine/engine_thread.h"
#include "server/server_options.h"
#include "text/text_model.h"

namespace paceline {

struct ServedModel {
  std::vector<std::string> names;  // what requests may call it, never none; the first is its own
  TextModel text;
  StepObserver* observer = nullptr;  // also observes the engine's steps
  AdmissionWindow window = {};
  std::string fingerprint = {};  // of responses; empty: left out
  std::string cache_dtype = {};  // of keys and values, in /metrics
  RuntimeAdapters runtime_adapters = {};
};

}  // namespace paceline
