#include "cli/bench_measure.h"

#include <algorithm>

#include "base/error.h"
#include "cli/bench_runs.h"
#include "kernels/cuda/device_rates.h"
#include "load/weight_info.h"

namespace paceline {
namespace {

constexpr double kSampleSeconds = 0.06;
constexpr double kEnoughSeconds = 10;

// Of a GPU that computes nothing else meanwhile, what is copied counts as read and as written.
class CeilingSampler {
 public:
  explicit CeilingSampler(const LoadedModel& model) {
    if (model.machine->device) {
      rates_.emplace(*model.machine->device);
      return;
    }
    const BenchProducts products = products_of(model);
    kind_ = products.kind;
    meter_.emplace(products.isa, *model.threads, memory_);
    if (products.vector_isa) vector_meter_.emplace(*products.vector_isa, *model.threads, memory_);
  }

  BenchCeilings sample() {
    if (rates_) {
      return {.read_bytes = rates_->copied_bytes_per_s(kSampleSeconds),
              .operations = rates_->mma_flops_per_s(kSampleSeconds)};
    }
    const auto operations = [this](RooflineMeter& meter) {
      return meter.operations_per_s(kind_, kSampleSeconds);
    };
    return {.read_bytes = meter_->read_bytes_per_s(kSampleSeconds),
            .operations = operations(*meter_),
            .vector_operations = vector_meter_ ? operations(*vector_meter_) : 0};
  }

 private:
  std::optional<cuda::DeviceRates> rates_;  // of the GPU; else the CPU's:
  Memory memory_;
  ProductKind kind_ = ProductKind::f32;
  std::optional<RooflineMeter> meter_;
  std::optional<RooflineMeter> vector_meter_;
};

BenchCeilings mean(const BenchCeilings& a, const BenchCeilings& b) {
  return {.read_bytes = (a.read_bytes + b.read_bytes) / 2,
          .operations = (a.operations + b.operations) / 2,
          .vector_operations = (a.vector_operations + b.vector_operations) / 2};
}

struct Measured {
  BenchSample sample;
  BenchCeilings ceilings;
};

// The median of `value(measured)`.
template <class Value>
double median(const std::vector<Measured>& all, Value&& value) {
  std::vector<double> values;
  for (const Measured& one : all) values.push_back(value(one));
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double ratio(double amount, double of) { return of > 0 ? amount / of : 0; }

double operations_per_second(const BenchTask& task, const BenchSample& sample) {
  const double weights =
      static_cast<double>(task.costs.used_block_weights()) * static_cast<double>(sample.rows) +
      static_cast<double>(task.costs.embedding_weights) * static_cast<double>(sample.head_rows);
  return ratio(2 * weights, sample.seconds);
}

double bytes_per_second(const BenchTask& task, const BenchSample& sample) {
  const auto steps = static_cast<double>(sample.steps);
  const double rows = ratio(static_cast<double>(sample.rows), steps);
  const double weights =
      static_cast<double>(task.decode_bytes) * task.costs.reading_of(rows) * steps;
  return ratio(weights + static_cast<double>(sample.kv_bytes), sample.seconds);
}

// The operation rate limits prefill, the bandwidth limits the decoding of one sequence; the nearer
// of the two limits batches.
BenchLimit limit_of(BenchTest test, double of_operations, double of_bandwidth) {
  if (test == BenchTest::prefill) return BenchLimit::operations;
  if (test == BenchTest::decode) return BenchLimit::bandwidth;
  return of_operations >= of_bandwidth ? BenchLimit::operations : BenchLimit::bandwidth;
}

SpeculationRow speculation_row(const BenchRun& run, const std::vector<Measured>& all, size_t i) {
  using M = const Measured&;
  const auto rate = [](const auto& sample) {
    return ratio(static_cast<double>(sample.tokens), sample.seconds);
  };
  SpeculationRow row{.limits = all[0].sample.drafted[i].limits};
  row.tokens = median(all, [&](M m) { return rate(m.sample.drafted[i]); });
  row.speedup = median(all, [&](M m) { return ratio(rate(m.sample.drafted[i]), rate(m.sample)); });
  row.tokens_per_step = median(all, [&](M m) {
    const SpeculationSample& sample = m.sample.drafted[i];
    return ratio(static_cast<double>(sample.tokens),
                 static_cast<double>(sample.steps * run.sequences));
  });
  for (M m : all) add_counters(m.sample.drafted[i].counters, row.counters);
  return row;
}

BenchRow median_row(const BenchRun& run, const std::vector<Measured>& all, const BenchTask& task) {
  using M = const Measured&;
  const auto operations = [&](M m) { return operations_per_second(task, m.sample); };
  const auto read_bytes = [&](M m) { return bytes_per_second(task, m.sample); };
  BenchRow row{.run = run, .runs = static_cast<int64_t>(all.size())};
  row.tokens = median(
      all, [](M m) { return ratio(static_cast<double>(m.sample.tokens), m.sample.seconds); });
  row.unit_seconds = median(all, [](M m) { return m.sample.unit_seconds; });
  row.operations = median(all, operations);
  row.read_bytes = median(all, read_bytes);
  row.kv_bytes = median(
      all, [](M m) { return ratio(static_cast<double>(m.sample.kv_bytes), m.sample.seconds); });
  row.ceilings = {
      .read_bytes = median(all, [](M m) { return m.ceilings.read_bytes; }),
      .operations = median(all, [](M m) { return m.ceilings.operations; }),
      .vector_operations = median(all, [](M m) { return m.ceilings.vector_operations; })};
  const double of_operations =
      median(all, [&](M m) { return ratio(operations(m), m.ceilings.operations); });
  const double of_bandwidth =
      median(all, [&](M m) { return ratio(read_bytes(m), m.ceilings.read_bytes); });
  row.limit = limit_of(run.test, of_operations, of_bandwidth);
  row.fraction = row.limit == BenchLimit::operations ? of_operations : of_bandwidth;
  row.vector_fraction =
      median(all, [&](M m) { return ratio(operations(m), m.ceilings.vector_operations); });
  for (size_t i = 0; i < all[0].sample.figures.size(); ++i) {
    row.figures.emplace_back(all[0].sample.figures[i].first,
                             median(all, [i](M m) { return m.sample.figures[i].second; }));
  }
  for (size_t i = 0; i < all[0].sample.drafted.size(); ++i) {
    row.drafted.push_back(speculation_row(run, all, i));
  }
  return row;
}

// The measurements of each repetition.
std::vector<Measured> repeat_run(BenchRunner& runner, CeilingSampler& sampler, const BenchRun& run,
                                 int64_t repetitions) {
  std::vector<Measured> all;
  runner.prepare(run);
  const auto begin = BenchClock::now();
  BenchCeilings before = sampler.sample();
  do {
    Measured measured{.sample = runner.run(run)};
    const bool may_be_cached = run.test == BenchTest::cached;
    PL_CHECK(may_be_cached || measured.sample.cached_tokens == 0,
             "a measured prompt came out of the prefix cache");
    const BenchCeilings after = sampler.sample();
    measured.ceilings = mean(before, after);
    all.push_back(std::move(measured));
    before = after;
  } while (static_cast<int64_t>(all.size()) < repetitions && seconds_since(begin) < kEnoughSeconds);
  return all;
}

}  // namespace

std::string_view instruction_of(const BenchProducts& products) {
  if (products.is_on_gpu) return "mma.sync";
  return product_instruction(products.isa, products.kind);
}

BenchProducts products_of(const LoadedModel& model) {
  const WeightInfo weights = weight_info(*model.decoder);
  BenchProducts products{.isa = model.isa, .kind = ProductKind::bf16};
  if (model.machine->device) {
    products.is_on_gpu = true;
    return products;
  }
  const bool has_f32_products =
      weights.format == dtype_name(DType::f32) || weights.format == dtype_name(DType::f16);
  if (has_f32_products) products.kind = ProductKind::f32;
  if (weights.integer_products) products.kind = ProductKind::int8;
  const auto isas = available_isas();
  const bool has_vectors = std::find(isas.begin(), isas.end(), Isa::avx512bf16) != isas.end();
  const bool is_other = product_instruction(model.isa, products.kind) !=
                        product_instruction(Isa::avx512bf16, products.kind);
  if (has_vectors && is_other) products.vector_isa = Isa::avx512bf16;
  return products;
}

void measure_runs(LoadedModel& model, const BenchTask& task) {
  BenchRunner runner(model, task.max_step_slowdown, task.observer);
  CeilingSampler sampler(model);
  runner.warm_up();
  for (const BenchRun& run : task.runs) {
    if (task.notice) task.notice(run);
    const std::vector<Measured> all = repeat_run(runner, sampler, run, task.repetitions);
    task.done(median_row(run, all, task));
  }
}

}  // namespace paceline
