// Runs and times each bench test once on a loaded model.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/bench_driver.h"
#include "cli/bench_plan.h"
#include "cli/bench_speculation.h"
#include "cli/kv_reads.h"
#include "load/loaded_model.h"

namespace paceline {

// A finished run. The test's own figures have the names of the report.
struct BenchSample {
  double seconds = 0;         // 0: nothing was timed
  int64_t tokens = 0;         // in that time, for the speed
  int64_t rows = 0;           // computed by all layers in that time
  int64_t head_rows = 0;      // rows that passed the head
  int64_t steps = 0;          // forwards; each reads all weights
  int64_t kv_bytes = 0;       // of keys and values that these read
  int64_t cached_tokens = 0;  // prompt tokens taken from the prefix cache
  double unit_seconds = 0;    // per prompt, per output token (of all sequences), or per call
  std::vector<std::pair<std::string_view, double>> figures;
  std::vector<SpeculationSample> drafted;  // speculate: by length of drafts
};

// Makes runs of one model, any number of times.
class BenchRunner {
 public:
  // `max_step_slowdown` limits the steps of mixed runs. `observer`, if any, observes the model's
  // engine, as the runner does.
  BenchRunner(LoadedModel& model, double max_step_slowdown, StepObserver* observer = nullptr);
  ~BenchRunner();

  // Touches memory and wakes threads. Call it before the first run.
  void warm_up();
  // Computes the context of a decode or the answers of a speculate, which may take longer than the
  // measured part. Call it before the first repetition of a run.
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
  BenchSample speculate(const BenchRun& run);

  LoadedModel& model_;
  double max_step_slowdown_;
  KvReads reads_;  // of the model's engine
  BenchDriver driver_;
  GenerateRequest context_;  // of decode, in the prefix cache
  std::optional<SpeculationBench> speculation_;
};

}  // namespace paceline
