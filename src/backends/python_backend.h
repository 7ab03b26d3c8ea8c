// PythonBackend is a model that another implementation runs, in a Python child.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "backends/child_process.h"
#include "base/json.h"

namespace paceline {

// The implementations that a child can run: "transformers" and "mlx_lm".
std::span<const std::string_view> python_backends();

struct PythonBackendOptions {
  std::string backend;                // one of them
  std::string python = "python3";     // of an environment with its package
  std::string model;                  // a directory
  std::string dtype = "float32";      // float32, float16 or bfloat16
  std::chrono::seconds timeout{600};  // of loading, and of an answer
};

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
  const std::string& version() const { return version_; }

  // Throws Error corrupt for an answer that isn't one, internal with the child's words where it
  // fails, else as ChildProcess.
  BackendScores score(std::span<const int32_t> ids, const std::stop_token& cancelled = {});

 private:
  Json ask(const std::string& request, ErrorCode code, const std::stop_token& cancelled);

  std::chrono::seconds timeout_;
  ChildProcess child_;
  std::string version_;
};

}  // namespace paceline
