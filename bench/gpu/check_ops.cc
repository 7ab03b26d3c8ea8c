#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "bench/gpu/checks.h"
#include "bench/gpu/cpu_visible_device.h"
#include "kernels/cuda/make_cuda_backend.h"
#include "tests/kernels/gradient_cases.h"
#include "tests/kernels/op_cases.h"
#include "tests/kernels/op_inputs.h"

namespace paceline {
namespace {

// The largest |a - b| / (1 + |reference|); NaN on either side alone is infinite.
double largest_error(const std::vector<float>& found, const std::vector<float>& reference) {
  if (found.size() != reference.size()) return HUGE_VAL;
  double largest = 0.0;
  for (size_t i = 0; i < reference.size(); ++i) {
    if (std::isnan(found[i]) && std::isnan(reference[i])) continue;
    if (found[i] == reference[i]) continue;
    const double difference = std::abs(double{found[i]} - double{reference[i]});
    const double error = difference / (1.0 + std::abs(double{reference[i]}));
    largest = std::isnan(error) ? HUGE_VAL : std::max(largest, error);
  }
  return largest;
}

bool have_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::vector<OpCase> cases_of_serving() {
  std::vector<OpCase> cases = op_cases();
  std::set<std::string> gradients;
  for (const OpCase& one : gradient_cases()) gradients.insert(one.name);
  std::erase_if(cases, [&](const OpCase& one) {
    return one.size == CaseSize::large || gradients.contains(one.name);
  });
  return cases;
}

// The same case on one backend after another, each with inputs of its own, so that nothing is left
// of another's output.
class OpComparison {
 public:
  OpComparison(cuda::CudaDevice& device, const CheckOptions& options)
      : threads_(0),
        visible_(device),
        emulation_(cuda::make_emulated_device({.num_threads = threads_.num_threads()})),
        reference_(make_reference_backend(ActivationType::bf16)),
        on_gpu_(cuda::make_cuda_backend(visible_, threads_)),
        emulated_(cuda::make_cuda_backend(*emulation_, threads_)),
        is_hopper_(options.emulated || device.info().capability / 10 == kHopper) {}

  void check(const OpCase& op_case, CheckReport& report) {
    std::string fault;
    double error = HUGE_VAL;
    bool equal = false;
    try {
      const std::vector<float> found = run(op_case, *on_gpu_, on_gpu_->memory());
      error = largest_error(found, run(op_case, *reference_, memory_));
      equal = have_same_bits(found, run(op_case, *emulated_, emulated_->memory()));
    } catch (const Error& thrown) {
      fault = thrown.what();
    }
    const double tolerance = std::max(op_case.tolerance, op_case.rounded_tolerance);
    report.check("ops", op_case.name, error <= tolerance && (equal || !is_hopper_),
                 [&](JsonWriter& json) {
                   json.member("error", error).member("tolerance", tolerance);
                   json.member("bits_of_the_emulation", equal);
                   if (!fault.empty()) json.member("fault", fault);
                 });
  }

 private:
  static constexpr int kHopper = 9;  // whose matrix arithmetic the emulation has

  std::vector<float> run(const OpCase& op_case, Backend& backend, Memory& memory) {
    const PackedBy packing(backend);
    const OpInstance instance = op_case.make(threads_, memory);
    instance.run(backend);
    return instance.result();
  }

  ThreadPool threads_;
  Memory memory_;
  cuda::CpuVisibleDevice visible_;
  std::unique_ptr<cuda::CudaDevice> emulation_;
  std::unique_ptr<Backend> reference_, on_gpu_, emulated_;
  bool is_hopper_;
};

}  // namespace

void check_ops(cuda::CudaDevice& device, const CheckOptions& options, CheckReport& report) {
  const Deadline deadline(options.seconds);
  OpComparison comparison(device, options);
  const std::vector<OpCase> cases = cases_of_serving();
  size_t num_run = 0, num_wanted = 0;
  for (size_t i = 0; i < cases.size(); i += options.every) {
    ++num_wanted;
    if (deadline.is_over()) continue;
    comparison.check(cases[i], report);
    ++num_run;
  }
  report.measured("ops", "cases", [&](JsonWriter& json) {
    json.member("run", num_run).member("wanted", num_wanted).member("all", cases.size());
  });
}

}  // namespace paceline
