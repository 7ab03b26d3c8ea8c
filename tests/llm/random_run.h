// Runs a RandomCase: its requests alone, and all of them together on the case's engine.
#pragma once

#include <cstdint>
#include <stop_token>
#include <vector>

#include "engine/step_engine.h"
#include "llm/llm_state.h"
#include "llm/request_pool.h"
#include "state/state_cache.h"
#include "tests/llm/random_case.h"

namespace paceline::testing {

using RandomAnswer = decltype(RequestPool::Done::result);

// A model for one sequence, one thread, nothing cached; each choice is a request of its own.
class Alone {
 public:
  explicit Alone(const Subject& subject);

  RandomAnswer answer(const RandomRequest& request);

  const LoadedModel& model() const { return *state_.model; }

 private:
  RandomAnswer run(const RandomRequest& request);

  LLM::State state_;
};

// The case's engine, stepped by the caller, with its integrity checked after every step, or by a
// thread. `drawn` must outlive it.
class Together {
 public:
  Together(const RandomCase& drawn, const Alone& alone, uint64_t seed);

  // Submits and cancels at random moments; returns the answers in the order of the requests.
  std::vector<RandomAnswer> run();

  // Fails the test unless every block was released.
  EngineCounters finish();

 private:
  StepEngine& engine() { return static_cast<StepEngine&>(*state_.model->engine); }
  void load(const LoadedModel& model);
  void submit_next(RequestPool& pool);
  void cancel_some(int64_t one_in);
  void run_stepped(RequestPool& pool);
  void run_on_thread(RequestPool& pool);

  const RandomCase& case_;
  Dice dice_;
  LLM::State state_;
  std::vector<std::stop_source> stops_;
  size_t num_submitted_ = 0;
};

}  // namespace paceline::testing
