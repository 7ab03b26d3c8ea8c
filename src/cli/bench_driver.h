// BenchDriver steps a model's engine in the calling thread, with prompts that bypass the prefix
// cache.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/channel.h"
#include "engine/engine.h"

namespace paceline {

using BenchClock = std::chrono::steady_clock;
double seconds_since(BenchClock::time_point begin);

class BenchDriver {
 public:
  explicit BenchDriver(Engine& engine) : engine_(engine) {}

  // A greedy request with a random prompt that ignores EOS and the prefix cache.
  GenerateRequest request(int64_t prompt_tokens, int64_t output_tokens);
  // Throws Error as the engine does.
  RequestId submit(GenerateRequest request);

  // Returns the number of new tokens. Throws Error with the engine's message when a request failed.
  int64_t step();
  // Of the last step.
  const std::vector<TokenEvent>& events() const { return events_; }
  // Whether the last step gave the request a token or ended it.
  bool has_event(RequestId id) const;
  bool is_busy() const { return engine_.num_running() + engine_.num_waiting() > 0; }
  void run_out();

  // Of the finished requests.
  int64_t num_cached_tokens() const { return num_cached_tokens_; }
  int64_t num_steps() const { return engine_.counters().steps; }
  Engine& engine() { return engine_; }

 private:
  Engine& engine_;
  std::shared_ptr<Channel> channel_ = std::make_shared<Channel>();
  std::vector<TokenEvent> events_;
  uint64_t next_prompt_ = 0;
  int64_t num_cached_tokens_ = 0;
};

}  // namespace paceline
