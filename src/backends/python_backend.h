// PythonBackend is a model that another implementation runs, in a Python child, and that scores
// texts.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "backends/model_child.h"
#include "base/json.h"

namespace paceline {

// What the child says of a text.
struct BackendScores {
  std::vector<double> logprobs;  // of each id but the first, given those before it
  std::vector<int32_t> best;     // the likeliest token after each id
};

class PythonBackend {
 public:
  // Starts the child and loads the model. Throws Error not_found when there is no such Python,
  // unsupported with the child's own words when it can't load the model, else as ChildProcess.
  explicit PythonBackend(const PythonBackendOptions& options,
                         const std::stop_token& cancelled = {});

  // The version of the package.
  const std::string& version() const { return child_.facts().version; }

  // Throws Error corrupt for an answer that isn't one, internal with the child's words where it
  // fails, else as ChildProcess.
  BackendScores score(std::span<const int32_t> ids, const std::stop_token& cancelled = {});

 private:
  // The next answer, or nothing once the model is loaded.
  std::optional<Json> wait(const std::stop_token& cancelled);

  std::chrono::seconds timeout_;
  ModelChild child_;
};

}  // namespace paceline
