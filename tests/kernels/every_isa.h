// Runs a test's body on every instruction set of this machine, with any number of threads.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/backend.h"
#include "tensor/memory.h"
#include "tests/kernels/chosen_isa.h"
#include "tests/kernels/same_bits.h"

namespace paceline {

constexpr int kThreadCounts[] = {1, 2, 3, 5};

// One backend per number of threads; the first has one thread.
class IsaTest : public testing::TestWithParam<Isa> {
 protected:
  IsaTest() {
    for (const int count : kThreadCounts) {
      pools_.push_back(std::make_unique<ThreadPool>(count));
      backends_.push_back(make_cpu_backend(GetParam(), *pools_.back(), memory_));
    }
  }

  Backend& backend() { return *backends_.front(); }
  ThreadPool& threads() { return *pools_.front(); }
  const std::vector<std::unique_ptr<Backend>>& backends() { return backends_; }
  std::span<const std::unique_ptr<Backend>> with_more_threads() {
    return std::span(backends_).subspan(1);
  }

  Memory memory_;

 private:
  std::vector<std::unique_ptr<ThreadPool>> pools_;
  std::vector<std::unique_ptr<Backend>> backends_;
};

inline std::string isa_test_name(const testing::TestParamInfo<Isa>& info) {
  return std::string(isa_name(info.param));
}

#define PL_TEST_EVERY_ISA(suite) \
  INSTANTIATE_TEST_SUITE_P(, suite, testing::ValuesIn(isas_to_run()), isa_test_name)

}  // namespace paceline
