// Speed of every large case of the op table as GFLOP/s or GB/s, after the roofline of the same run.
// kernels [--isa=NAME|all] [--threads=N] [--benchmark_filter=matmul] ...
#include <benchmark/benchmark.h>

#include <charconv>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/backend.h"
#include "kernels/roofline.h"
#include "tests/kernels/op_cases.h"

namespace paceline {
namespace {

void run_case(benchmark::State& state, const OpCase& op_case, Backend& backend, ThreadPool& threads,
              Memory& memory) {
  const OpInstance instance = op_case.make(threads, memory);
  instance.run(backend);
  for (auto _ : state) instance.run(backend);
  const double runs = static_cast<double>(state.iterations()) / 1e9;
  using benchmark::Counter;
  if (op_case.flops > 0)
    state.counters["GFLOP/s"] = Counter(op_case.flops * runs, Counter::kIsRate);
  if (op_case.bytes > 0) state.counters["GB/s"] = Counter(op_case.bytes * runs, Counter::kIsRate);
}

void report_roofline(benchmark::State& state, Isa isa, ThreadPool& threads, Memory& memory) {
  Roofline roofline;
  for (auto _ : state) roofline = measure_roofline(isa, threads, memory, 0.5);
  state.counters["GB/s"] = roofline.read_bytes_per_s / 1e9;
  state.counters["bf16 GFLOP/s"] = roofline.bf16_flops_per_s / 1e9;
  state.counters["f32 GFLOP/s"] = roofline.f32_flops_per_s / 1e9;
  state.counters["int8 GOP/s"] = roofline.int8_ops_per_s / 1e9;
}

struct Options {
  std::vector<Isa> isas = {choose_isa()};
  int num_threads = 0;
};

// False when `text` isn't a count.
bool read_count(std::string_view text, int& count) {
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, count);
  return read.ec == std::errc() && read.ptr == end && count >= 0;
}

// Removes its own options from the arguments; false for a malformed one.
bool take_options(int& argc, char** argv, Options& options) {
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--isa=all") {
      options.isas.assign(available_isas().begin(), available_isas().end());
    } else if (argument.starts_with("--isa=")) {
      options.isas.clear();
      for (const Isa isa : available_isas()) {
        if (isa_name(isa) == argument.substr(6)) options.isas.push_back(isa);
      }
    } else if (argument.starts_with("--threads=")) {
      if (!read_count(argument.substr(10), options.num_threads)) return false;
    } else {
      argv[kept++] = argv[i];
    }
  }
  argc = kept;
  return !options.isas.empty();
}

void register_cases(Isa isa, const std::vector<OpCase>& cases, Backend& backend,
                    ThreadPool& threads, Memory& memory) {
  const std::string prefix = std::string(isa_name(isa)) + "/";
  benchmark::RegisterBenchmark((prefix + "roofline").c_str(), [&, isa](benchmark::State& state) {
    report_roofline(state, isa, threads, memory);
  })->Iterations(1);
  for (const OpCase& op_case : cases) {
    if (op_case.size != CaseSize::large) continue;
    benchmark::RegisterBenchmark((prefix + op_case.name).c_str(), [&](benchmark::State& state) {
      run_case(state, op_case, backend, threads, memory);
    })->UseRealTime();
  }
}

int run_benchmarks(int argc, char** argv) {
  Options options;
  const bool makes_sense = take_options(argc, argv, options);
  benchmark::Initialize(&argc, argv);
  if (!makes_sense || benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  Memory memory;
  ThreadPool threads(options.num_threads);
  const std::vector<OpCase> cases = op_cases();
  std::vector<std::unique_ptr<Backend>> backends;
  for (const Isa isa : options.isas) {
    backends.push_back(make_cpu_backend(isa, threads, memory));
    register_cases(isa, cases, *backends.back(), threads, memory);
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) { return paceline::run_benchmarks(argc, argv); }
