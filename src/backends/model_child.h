// ModelChild is a Python child that loads a model, and the messages that it writes.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "backends/child_process.h"
#include "base/json.h"
#include "base/time_source.h"

namespace paceline {

struct PythonBackendOptions {
  std::string backend;             // one of backends() but the first
  std::string python = "python3";  // of an environment with its package
  std::string model;               // a directory
  std::string dtype = "float32";   // auto (as stored), float32, float16 or bfloat16
  std::string device = "auto";     // auto, cpu, cuda or cuda:N
  int num_threads = 0;             // 0: as the package chooses
  std::chrono::seconds load_timeout{600};
  std::chrono::seconds timeout{600};  // between two messages of an answer
};

// What a child says of itself and of its model when it has loaded it.
struct ChildFacts {
  std::string version;                        // of the package
  int64_t vocab_size = 0;                     // columns of its logits; 0: it doesn't say
  std::set<std::string, std::less<>> fields;  // of requests that it obeys
  int64_t max_concurrent = 1;                 // generations that it computes at once
  bool scores = false;                        // it has log-probabilities and logits of prompts
  std::optional<int64_t> memory_bytes = {};   // that it takes, as of its last message
};

// One thread. Throws as ChildProcess.
class ModelChild {
 public:
  // Starts the child, which begins to load the model. Throws Error not_found when there is no such
  // Python, unsupported in a build without such children.
  explicit ModelChild(const PythonBackendOptions& options);

  bool is_ready() const { return is_ready_; }
  const ChildFacts& facts() const { return facts_; }
  const std::string& name() const { return process_.name(); }
  Clock::time_point started() const { return started_; }

  void post(std::string_view message) { process_.post_line(message); }
  // The next message that is an answer; nothing at the timeout, when `wake` can be read, or after
  // another message. Throws Error corrupt for what is none, and unsupported with the child's own
  // words when it can't load the model.
  std::optional<Json> poll(std::chrono::milliseconds timeout, int wake = -1);

 private:
  void read_facts(const Json& message);

  Clock::time_point started_ = Clock::now();
  ChildProcess process_;
  bool is_ready_ = false;
  ChildFacts facts_;
};

// The child's words where a message is an error; empty: it is none. They name what would help.
std::string child_error(const Json& message);

}  // namespace paceline
