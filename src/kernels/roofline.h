// Roofline is the measured limit of this machine, to which benchmarks relate their figures.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/backend.h"

namespace paceline {

struct ReadKernel;

// What products multiply; their instructions differ.
enum class ProductKind : uint8_t { f32, bf16, int8 };

// The instruction that products of an instruction set are made of: "vdpbf16ps".
std::string_view product_instruction(Isa isa, ProductKind kind);

// Measures one limit at a time, each in about the given seconds; the best of several runs counts.
// The threads and the memory must outlive it.
class RooflineMeter {
 public:
  RooflineMeter(Isa isa, ThreadPool& threads, Memory& memory);

  // All threads read parts of a buffer larger than the caches, with loads of every width and
  // several numbers of streams in turn: the fastest counts. The buffer takes more than 1 GiB and is
  // kept for the next time; throws Error exhausted when there is no memory.
  double read_bytes_per_s(double seconds);
  // The fastest way of the last sample: "512-bit loads, 2 streams".
  const std::string& fastest_read() const { return fastest_read_; }
  // All threads run the instruction of such products.
  double operations_per_s(ProductKind kind, double seconds);

 private:
  double read_part(const ReadKernel& kernel);

  Isa isa_;
  ThreadPool& threads_;
  Memory& memory_;
  std::optional<Buffer> buffer_;
  int64_t next_part_ = 0;  // of the buffer
  std::string fastest_read_;
  std::vector<float> results_;  // per thread, so that the compiler doesn't drop the work
};

struct Roofline {
  double read_bytes_per_s = 0.0;
  std::string fastest_read;  // "512-bit loads, 2 streams"
  double bf16_flops_per_s = 0.0;
  double f32_flops_per_s = 0.0;
  double int8_ops_per_s = 0.0;
};

// Measures all four, each in about `seconds`.
Roofline measure_roofline(Isa isa, ThreadPool& threads, Memory& memory, double seconds);

}  // namespace paceline
