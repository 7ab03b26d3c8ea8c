// Speed of every large case of the op table, per instruction set, as GFLOP/s or GB/s.
// PACELINE_THREADS sets the number of threads; --benchmark_filter=avx512bf16/matmul picks cases.
#include <benchmark/benchmark.h>

#include <cstdlib>

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
}

void register_all(ThreadPool& threads, Memory& memory,
                  std::vector<std::unique_ptr<Backend>>& backends) {
  static const std::vector<OpCase> cases = op_cases();
  for (const Isa isa : available_isas()) {
    backends.push_back(make_cpu_backend(isa, threads, memory));
    Backend& backend = *backends.back();
    const std::string prefix = std::string(isa_name(isa)) + "/";
    benchmark::RegisterBenchmark((prefix + "roofline").c_str(), [isa, &threads,
                                                                 &memory](auto& state) {
      report_roofline(state, isa, threads, memory);
    })->Iterations(1);
    for (const OpCase& op_case : cases) {
      if (op_case.size != CaseSize::large) continue;
      benchmark::RegisterBenchmark((prefix + op_case.name).c_str(), [&](auto& state) {
        run_case(state, op_case, backend, threads, memory);
      })->UseRealTime();
    }
  }
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  const char* const wanted = std::getenv("PACELINE_THREADS");
  paceline::Memory memory;
  paceline::ThreadPool threads(wanted != nullptr ? std::atoi(wanted) : 0);
  std::vector<std::unique_ptr<paceline::Backend>> backends;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  paceline::register_all(threads, memory, backends);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
