// RowCheck compares the rows that calls for parts of them write with those of one call for all.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "bench/gpu/checks.h"
#include "bench/gpu/cpu_visible_device.h"
#include "kernels/cuda/make_cuda_backend.h"
#include "tests/kernels/op_inputs.h"

namespace paceline {

struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;
};
using RunRows = std::function<void(RowRange)>;

class RowCheck {
 public:
  RowCheck(std::string part, cuda::CudaDevice& device, const CheckOptions& options,
           CheckReport& report)
      : part_(std::move(part)),
        visible_(device),
        backend_(cuda::make_cuda_backend(visible_, threads_)),
        packing_(*backend_),
        num_rows_(options.is_small ? 40 : 255),
        deadline_(options.seconds),
        report_(report) {}

  Backend& backend() { return *backend_; }
  Memory& memory() { return backend_->memory(); }
  ThreadPool& threads() { return threads_; }
  int64_t num_rows() const { return num_rows_; }

  // `out` is contiguous.
  void check(std::string_view name, const Tensor& out, const RunRows& run) {
    if (deadline_.is_over()) return;
    const std::vector<float> expected = results(out, {0, num_rows_}, run);
    const size_t width = expected.size() / static_cast<size_t>(num_rows_);
    std::string differing;
    for (const RowRange range : ranges()) {
      const std::vector<float> found = results(out, range, run);
      const float* const same_rows = expected.data() + static_cast<size_t>(range.begin) * width;
      if (std::memcmp(found.data(), same_rows, found.size() * sizeof(float)) == 0) continue;
      differing += std::to_string(range.begin) + "-" + std::to_string(range.end) + " ";
    }
    report_.check(part_, name, differing.empty(), [&](JsonWriter& json) {
      json.member("rows", num_rows_).member("differing", differing);
    });
  }

 private:
  static constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();

  // The rows of `range`, of an output that was NaN before.
  std::vector<float> results(const Tensor& out, RowRange range, const RunRows& run) {
    std::fill_n(out.elements<float>(), out.num_elements(), kPoison);
    run(range);
    return to_vector(out.slice(0, range.begin, range.end));
  }

  std::vector<RowRange> ranges() const {
    std::vector<RowRange> ranges;
    for (const int64_t count : {1, 2, 7, 8, 16, 33, 64}) {
      if (count < num_rows_) ranges.push_back({0, count});
    }
    for (const int64_t row : {int64_t{3}, int64_t{8}, num_rows_ - 1}) {
      ranges.push_back({row, row + 1});
    }
    ranges.push_back({5, num_rows_ / 2});
    ranges.push_back({num_rows_ / 2, num_rows_});
    return ranges;
  }

  std::string part_;
  ThreadPool threads_{0};
  cuda::CpuVisibleDevice visible_;
  std::unique_ptr<Backend> backend_;
  PackedBy packing_;
  int64_t num_rows_;
  Deadline deadline_;
  CheckReport& report_;
};
}  // namespace paceline
