// Repeats the runs of a loaded model, and measures the machine's limits beside each run.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/bench_plan.h"
#include "engine/engine.h"
#include "kernels/roofline.h"
#include "load/loaded_model.h"
#include "models/model_costs.h"

namespace paceline {

// The machine's limits per second. Virtual machines change their speed within minutes, so the
// limits are sampled beside each run.
struct BenchCeilings {
  double read_bytes = 0;
  double operations = 0;  // of the instruction that the model's products use
  // The rate of the processor's vector instruction, where products use another one (tiles, or
  // float32 for bfloat16). 0: the same, or there is none.
  double vector_operations = 0;
};

enum class BenchLimit : uint8_t { operations, bandwidth };

// Speculate with drafts of one length. Tokens are counted in all runs.
struct SpeculationRow {
  SpeculationLimits limits;
  double tokens = 0;           // per second, the median
  double speedup = 0;          // over plain decoding in the same run, the median
  double tokens_per_step = 0;  // of a sequence
  SpeculationCounters counters;
};

// Medians over the runs; rates are per second.
struct BenchRow {
  BenchRun run;
  int64_t runs = 0;
  double tokens = 0;  // 0: nothing was timed
  double unit_seconds = 0;
  double operations = 0;  // two per weight and row
  double read_bytes = 0;  // of weights, once per forward, and of keys and values
  double kv_bytes = 0;    // of these, keys and values
  BenchCeilings ceilings;
  BenchLimit limit = BenchLimit::operations;
  double fraction = 0;         // of the limit
  double vector_fraction = 0;  // of the vector instruction's rate
  std::vector<std::pair<std::string_view, double>> figures;
  std::vector<SpeculationRow> drafted;  // by length of drafts
};

// The types and instructions of the model's products.
struct BenchProducts {
  Isa isa = Isa::baseline;
  ProductKind kind = ProductKind::f32;
  std::optional<Isa> vector_isa;  // of BenchCeilings::vector_operations
  bool is_on_gpu = false;         // whose matrix instruction is the limit, whatever the kind
};
BenchProducts products_of(const LoadedModel& model);
// "vdpbf16ps"; "mma.sync" of a GPU.
std::string_view instruction_of(const BenchProducts& products);

// A loaded model and its measurements.
struct BenchReport {
  std::string name;
  bool has_dummy_weights = false;  // making them takes longer than reading a file
  std::string dtype;
  std::string weight_format;
  BenchProducts products;
  std::string device;  // the GPU's name; empty: the CPU computes
  int threads = 0;
  double load_seconds = 0;
  int64_t resident_bytes = 0;  // growth while loading
  size_t weight_bytes = 0;     // as packed
  size_t decode_bytes = 0;     // weights read for one decoded token
  std::vector<BenchRow> rows;
  std::vector<std::string> notes;
  std::vector<std::string> choices;  // Backend::measured_choices(), with --roofline
};

struct BenchTask {
  std::vector<BenchRun> runs;
  ModelCosts costs;
  size_t decode_bytes = 0;
  int64_t repetitions = 3;  // at most; none begins after 10 seconds
  double max_step_slowdown = 2.5;
  StepObserver* observer = nullptr;             // of the model's engine
  std::function<void(const BenchRun&)> notice;  // called before each run
  std::function<void(BenchRow)> done;           // called after each run
};
void measure_runs(LoadedModel& model, const BenchTask& task);

}  // namespace paceline
