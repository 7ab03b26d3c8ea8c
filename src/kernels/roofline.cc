#include "kernels/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "kernels/cpu/isa.h"

namespace paceline {
namespace {

constexpr int64_t kReadBytes = (int64_t{1} << 30) + (int64_t{256} << 20);
// A sample reads one part after another.
constexpr int64_t kReadParts = 10;
constexpr int64_t kPieceBytes = int64_t{1} << 20;
constexpr int64_t kIterations = 200000;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Units of work per second in the best run: other load on the machine only slows runs down.
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

// A register-only run of the instruction.
struct ProductRun {
  float (*run)(int64_t iterations, float seed);
  int64_t operations;  // of one iteration
};

ProductRun product_run(const KernelTable& kernels, ProductKind kind) {
  switch (kind) {
    case ProductKind::f32:
      return {kernels.run_f32, kernels.run_f32_flops};
    case ProductKind::bf16:
      return {kernels.run_bf16, kernels.run_bf16_flops};
    case ProductKind::int8:
      break;
  }
  return {kernels.run_int8, kernels.run_int8_ops};
}

}  // namespace

std::string_view product_instruction(Isa isa, ProductKind kind) {
  const bool has_fma = isa != Isa::baseline;
  const std::string_view f32 = has_fma ? "fp32 FMA" : "fp32 multiply and add";
  if (kind == ProductKind::f32) return f32;
  if (kind == ProductKind::bf16) {
    if (isa == Isa::amx) return "AMX tiles";
    return isa == Isa::avx512bf16 ? "vdpbf16ps" : f32;
  }
  const bool has_vnni = isa != Isa::baseline && isa != Isa::avx2 && isa != Isa::avx512;
  return has_vnni ? "vpdpbusd" : "pmaddwd";
}

RooflineMeter::RooflineMeter(Isa isa, ThreadPool& threads, Memory& memory)
    : isa_(isa),
      threads_(threads),
      memory_(memory),
      results_(static_cast<size_t>(threads.num_threads())) {}

double RooflineMeter::read_bytes_per_s(double seconds) {
  if (!buffer_) {
    buffer_.emplace(memory_, static_cast<size_t>(kReadBytes));
    auto* const bytes = static_cast<char*>(buffer_->get());
    threads_.parallel_for(kReadBytes, kPieceBytes, [&](int64_t begin, int64_t end, int) {
      std::fill(bytes + begin, bytes + end, 1);
    });
  }
  const double begin = now_s();
  double best = 0.0;
  do {
    for (const ReadKernel& kernel : kernel_table(isa_).reads) {
      if (kernel.run == nullptr) continue;
      const double rate = read_part(kernel);
      if (rate <= best) continue;
      best = rate;
      fastest_read_ = fmt::format("{}-bit loads, {} stream{}", kernel.vector_bits, kernel.streams,
                                  kernel.streams == 1 ? "" : "s");
    }
  } while (now_s() - begin < seconds);
  return best;
}

// The next part, which has left the caches since it was last read.
double RooflineMeter::read_part(const ReadKernel& kernel) {
  constexpr int64_t kPartBytes = kReadBytes / kReadParts;
  const char* const part = static_cast<const char*>(buffer_->get()) + next_part_ * kPartBytes;
  next_part_ = (next_part_ + 1) % kReadParts;
  const double begin = now_s();
  threads_.parallel_for(kPartBytes, kPieceBytes, [&](int64_t first, int64_t last, int thread) {
    results_[static_cast<size_t>(thread)] +=
        static_cast<float>(kernel.run(part + first, last - first));
  });
  return static_cast<double>(kPartBytes) / (now_s() - begin);
}

double RooflineMeter::operations_per_s(ProductKind kind, double seconds) {
  const ProductRun product = product_run(kernel_table(isa_), kind);
  const double units =
      static_cast<double>(product.operations * kIterations * threads_.num_threads());
  return best_rate(seconds, units, [&] {
    threads_.run_on_all([&](int thread) {
      results_[static_cast<size_t>(thread)] += product.run(kIterations, 1e-3f);
    });
  });
}

Roofline measure_roofline(Isa isa, ThreadPool& threads, Memory& memory, double seconds) {
  RooflineMeter meter(isa, threads, memory);
  const double read_bytes_per_s = meter.read_bytes_per_s(seconds);
  return {.read_bytes_per_s = read_bytes_per_s,
          .fastest_read = meter.fastest_read(),
          .bf16_flops_per_s = meter.operations_per_s(ProductKind::bf16, seconds),
          .f32_flops_per_s = meter.operations_per_s(ProductKind::f32, seconds),
          .int8_ops_per_s = meter.operations_per_s(ProductKind::int8, seconds)};
}

}  // namespace paceline
