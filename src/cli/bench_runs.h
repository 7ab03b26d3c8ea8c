// Runs of a loaded model, each once and timed: what bench repeats and puts beside the roofline.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/bench_driver.h"
#include "cli/bench_plan.h"
#include "load/loaded_model.h"

namespace paceline {

// A run that was made. A test's own figures stand under the names that the report has for them.
struct BenchSample {
  double seconds = 0;         // 0: nothing was timed
  int64_t tokens = 0;         // in that time, which the speed is of
  int64_t rows = 0;           // computed by all layers in that time
  int64_t head_rows = 0;      // of them those that passed the head
  int64_t steps = 0;          // forwards, each of which reads the weights
  int64_t cached_tokens = 0;  // of prompts, not computed
  double unit_seconds = 0;    // a prompt, a token of the output (of all sequences), a call
  std::vector<std::pair<std::string_view, double>> figures;
};

// Makes runs of one model, again and again.
class BenchRunner {
 public:
  // `max_step_slowdown`: of the engine with streams beside a prompt. A stop request makes every
  // call throw Error cancelled.
  BenchRunner(LoadedModel& model, double max_step_slowdown, const std::stop_token& stop);

  // Before the first run: memory is touched, threads are awake.
  void warm_up();
  // Before a run is made the first time: the context that decode begins behind is computed, which
  // may take longer than what is measured.
  void prepare(const BenchRun& run);
  BenchSample run(const BenchRun& run);

 private:
  BenchSample prefill(const BenchRun& run);
  BenchSample decode(const BenchRun& run);
  BenchSample batch(const BenchRun& run);
  BenchSample mixed(const BenchRun& run);
  BenchSample classify(const BenchRun& run);
  BenchSample cached(const BenchRun& run);
  BenchSample memory(const BenchRun& run);

  LoadedModel& model_;
  double max_step_slowdown_;
  std::stop_token stop_;
  BenchDriver driver_;
  GenerateRequest context_;  // what decode begins behind, in the prefix cache
};

}  // namespace paceline
