// Measures products of a few rows with matrices far larger than the caches, as fractions of the
// read bandwidth sampled beside each. decode [--isa=NAME,...|all] [--threads=N,...] [--rows=N,...]
// [--formats=NAME,...] [--k=N]
//        [--rounds=N] [--cached]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "bench/options.h"
#include "kernels/backend.h"
#include "kernels/roofline.h"
#include "tests/kernels/op_inputs.h"

namespace paceline {
namespace {

// Formats of files, and the layouts that hold them (WeightType::name).
const std::map<std::string, std::string, std::less<>> kFormats = {
    {"bf16", "bfloat16"},
    {"Q8_0", "q8x32"},
    {"Q4_0", "q4x32"},
    {"Q4_1", "q4x32 offsets"},
    {"Q2_K", "q2x16 offsets multiples"},
    {"Q4_K", "q4x32 offsets multiples"},
    {"Q5_K", "q5x32 offsets multiples"},
    {"Q6_K", "q6x16 multiples"},
    {"FP8", "float8_e4m3x128"},
    {"q8", "q8x64"},
    {"MLX-4", "q4x64 offsets"},
    {"MLX-8", "q8x64 offsets"},
};

struct Options {
  std::vector<std::string> isas = {std::string(isa_name(choose_isa()))};
  std::vector<std::string> formats = {"bf16", "Q8_0", "Q4_0", "Q4_K", "Q6_K", "MLX-8", "MLX-4"};
  std::vector<int64_t> threads = {1, 2};
  std::vector<int64_t> rows = {1};
  int64_t k = 2048;
  int64_t rounds = 9;
  bool is_cached = false;
};

const WeightType& find_type(const std::string& format) {
  const auto found = kFormats.find(format);
  for (const WeightType& type : weight_types()) {
    if (found != kFormats.end() && type.name == found->second) return type;
  }
  fmt::print(stderr, "decode: no format {}; there are", format);
  for (const auto& [name, _] : kFormats) fmt::print(stderr, " {}", name);
  fmt::print(stderr, "\n");
  std::exit(2);
}

// Repeats a few packed panels of random weights: packing them all would take a minute.
PackedMatrix repeated_matrix(const WeightType& type, int64_t k, int64_t bytes, Memory& memory,
                             ThreadPool& threads) {
  constexpr int64_t kPanels = 8;
  const PackedMatrix few = random_matrix(memory, threads, type, kPanels * kPanelWidth, k, 1);
  PackedMatrix matrix;
  matrix.dtype = few.dtype;
  matrix.groups = few.groups;
  const int64_t copies = std::max<int64_t>(1, bytes / few.bytes());
  matrix.n = copies * few.n;
  matrix.k = few.k;
  matrix.storage = Buffer(memory, static_cast<size_t>(matrix.bytes()));
  auto* const to = static_cast<char*>(matrix.storage.get());
  threads.parallel_for(copies, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(to + i * few.bytes(), few.storage.get(), static_cast<size_t>(few.bytes()));
    }
  });
  return matrix;
}

template <class Run>
double seconds_of(const Run& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Bench {
  const Options& options;
  Isa isa;
  Memory& memory;
  ThreadPool& threads;
  RooflineMeter& meter;

  void measure(const std::string& format, const PackedMatrix& matrix, int64_t rows) const {
    constexpr double kReadSeconds = 0.1, kProductSeconds = 0.05;
    const auto backend = make_cpu_backend(isa, threads, memory);
    const OwnedTensor x = random_tensor(memory, DType::f32, {rows, matrix.k}, 3);
    const OwnedTensor out = allocate_tensor(memory, DType::f32, {rows, matrix.n});
    const auto multiply = [&] { backend->matmul(x.view, matrix, nullptr, out.view); };
    for (int i = 0; i < 64; ++i) multiply();  // completes choices by measurement
    const auto runs = static_cast<int64_t>(kProductSeconds / seconds_of(multiply)) + 1;
    std::vector<double> rates, reads, shares;
    for (int64_t round = 0; round < options.rounds; ++round) {
      const double read = options.is_cached ? 0.0 : meter.read_bytes_per_s(kReadSeconds);
      const double seconds = seconds_of([&] {
        for (int64_t i = 0; i < runs; ++i) multiply();
      });
      rates.push_back(static_cast<double>(matrix.bytes() * runs) / seconds);
      reads.push_back(read);
      shares.push_back(read > 0.0 ? rates.back() / read : 0.0);
    }
    fmt::print("{:<11} {:<6} {} threads, {} rows: {:6.1f} GB/s of {:5.1f}, {:3.0f} %\n",
               isa_name(isa), format, threads.num_threads(), rows, median(rates) / 1e9,
               median(reads) / 1e9, median(shares) * 100.0);
    std::fflush(stdout);
  }
};

Options read_options(int argc, char** argv) {
  Options options;
  bench::BenchOptions("decode")
      .words("isa", options.isas)
      .words("formats", options.formats)
      .counts("threads", options.threads)
      .counts("rows", options.rows)
      .count("k", options.k)
      .count("rounds", options.rounds)
      .flag("cached", options.is_cached)
      .read(argc, argv);
  if (options.isas == std::vector<std::string>{"all"}) {
    options.isas.clear();
    for (const Isa isa : available_isas()) options.isas.emplace_back(isa_name(isa));
  }
  return options;
}

Isa find_isa(const std::string& name) {
  for (const Isa isa : available_isas()) {
    if (isa_name(isa) == name) return isa;
  }
  fmt::print(stderr, "decode: this machine lacks {}\n", name);
  std::exit(2);
}

void run_benchmarks(const Options& options) {
  constexpr int64_t kBytes = 384 << 20, kCachedBytes = 256 << 10;
  for (const int64_t count : options.threads) {
    Memory memory;
    ThreadPool threads(static_cast<int>(count));
    RooflineMeter meter(choose_isa(), threads, memory);
    for (const std::string& format : options.formats) {
      const PackedMatrix matrix = repeated_matrix(
          find_type(format), options.k, options.is_cached ? kCachedBytes : kBytes, memory, threads);
      for (const std::string& name : options.isas) {
        const Bench bench = {options, find_isa(name), memory, threads, meter};
        for (const int64_t rows : options.rows) bench.measure(format, matrix, rows);
      }
    }
  }
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  paceline::run_benchmarks(paceline::read_options(argc, argv));
  return 0;
}
