// BenchDriver steps a model's engine by itself, with prompts that are computed every time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

#include "engine/channel.h"
#include "engine/engine.h"

namespace paceline {

using BenchClock = std::chrono::steady_clock;
double seconds_since(BenchClock::time_point begin);

// The engine's thread is the caller's.
class BenchDriver {
 public:
  // A stop request makes step() throw Error cancelled.
  BenchDriver(Engine& engine, std::stop_token stop) : engine_(engine), stop_(std::move(stop)) {}

  // Greedy, to the last token, of a random prompt that doesn't look into the prefix cache.
  GenerateRequest request(int64_t prompt_tokens, int64_t output_tokens);
  // Throws Error as the engine does.
  RequestId submit(GenerateRequest request);

  // The tokens that came. Throws Error with the engine's message when a request failed.
  int64_t step();
  // Whether the last step gave the request a token or ended it.
  bool has_event(RequestId id) const;
  bool is_busy() const { return engine_.num_running() + engine_.num_waiting() > 0; }
  void run_out();

  // Of the requests that have ended so far.
  int64_t num_cached_tokens() const { return num_cached_tokens_; }
  int64_t num_steps() const { return engine_.counters().steps; }
  Engine& engine() { return engine_; }

 private:
  Engine& engine_;
  std::stop_token stop_;
  std::shared_ptr<Channel> channel_ = std::make_shared<Channel>();
  std::vector<TokenEvent> events_;
  uint64_t next_prompt_ = 0;
  int64_t num_cached_tokens_ = 0;
};

}  // namespace paceline
