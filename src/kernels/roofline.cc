#include "kernels/roofline.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "kernels/cpu/isa.h"

namespace paceline {
namespace {

constexpr int64_t kReadBytes = (int64_t{1} << 30) + (int64_t{256} << 20);
constexpr int64_t kPieceFloats = int64_t{1} << 18;
constexpr int64_t kIterations = 200000;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Units of work per second of the best run: others may use the machine, which only slows it down.
template <class Run>
double best_rate(double seconds, double units, Run&& run) {
  const double begin = now_s();
  double best = 0.0;
  double last = begin;
  do {
    run();
    const double now = now_s();
    best = std::max(best, units / (now - last));
    last = now;
  } while (last - begin < seconds);
  return best;
}

double measure_read(const KernelTable& kernels, ThreadPool& threads, Memory& memory,
                    double seconds) {
  const int64_t count = kReadBytes / int64_t{sizeof(float)};
  const Buffer buffer(memory, static_cast<size_t>(kReadBytes));
  auto* const floats = static_cast<float*>(buffer.get());
  threads.parallel_for(count, kPieceFloats, [&](int64_t begin, int64_t end, int) {
    std::fill(floats + begin, floats + end, 1.0f);
  });
  std::vector<float> sums(static_cast<size_t>(threads.num_threads()));
  return best_rate(seconds, static_cast<double>(kReadBytes), [&] {
    threads.parallel_for(count, kPieceFloats, [&](int64_t begin, int64_t end, int thread_index) {
      sums[static_cast<size_t>(thread_index)] += kernels.read(floats + begin, end - begin);
    });
  });
}

double measure_run(float (*run)(int64_t, float), int64_t flops, ThreadPool& threads,
                   double seconds) {
  std::vector<float> results(static_cast<size_t>(threads.num_threads()));
  const double units = static_cast<double>(flops * kIterations * threads.num_threads());
  return best_rate(seconds, units, [&] {
    threads.run_on_all([&](int thread_index) {
      results[static_cast<size_t>(thread_index)] += run(kIterations, 1e-3f);
    });
  });
}

}  // namespace

Roofline measure_roofline(Isa isa, ThreadPool& threads, Memory& memory, double seconds) {
  const KernelTable& kernels = kernel_table(isa);
  return {measure_read(kernels, threads, memory, seconds),
          measure_run(kernels.run_bf16, kernels.run_bf16_flops, threads, seconds),
          measure_run(kernels.run_f32, kernels.run_f32_flops, threads, seconds),
          measure_run(kernels.run_int8, kernels.run_int8_ops, threads, seconds)};
}

double measure_vdpbf16ps_flops_per_s(ThreadPool& threads, double seconds) {
  const auto isas = available_isas();
  if (std::find(isas.begin(), isas.end(), Isa::avx512bf16) == isas.end()) return 0.0;
  const KernelTable& kernels = kernel_table(Isa::avx512bf16);
  return measure_run(kernels.run_bf16, kernels.run_bf16_flops, threads, seconds);
}

}  // namespace paceline
