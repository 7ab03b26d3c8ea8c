// Every small case of the op table on the emulated CUDA backend against the reference.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "tests/cuda_backend/emulated_backend.h"
#include "tests/kernels/attention_pass.h"
#include "tests/kernels/gradient_cases.h"
#include "tests/kernels/lora_cases.h"
#include "tests/kernels/mixture_cases.h"
#include "tests/kernels/mixture_inputs.h"
#include "tests/kernels/op_cases.h"
#include "tests/kernels/op_inputs.h"
#include "tests/test_scale.h"

namespace paceline::cuda {
namespace {

// The largest |a - b| / (1 + |reference|); NaN on either side alone is infinite.
double largest_error(const std::vector<float>& result, const std::vector<float>& reference) {
  double largest = 0.0;
  for (size_t i = 0; i < reference.size(); ++i) {
    if (std::isnan(result[i]) && std::isnan(reference[i])) continue;
    if (result[i] == reference[i]) continue;
    const double error = std::abs(double{result[i]} - double{reference[i]});
    const double relative = error / (1.0 + std::abs(double{reference[i]}));
    if (!(relative <= largest)) largest = std::isnan(relative) ? HUGE_VAL : relative;
  }
  return largest;
}

std::vector<OpCase> small_cases_of(std::vector<OpCase> cases) {
  std::erase_if(cases, [](const OpCase& one) { return one.size == CaseSize::large; });
  return cases;
}

std::vector<OpCase> cases_of_serving() {
  std::vector<OpCase> cases = small_cases_of(op_cases());
  std::set<std::string> gradients;
  for (const OpCase& one : gradient_cases()) gradients.insert(one.name);
  std::erase_if(cases, [&](const OpCase& one) { return gradients.contains(one.name); });
  return cases;
}

// Of inputs that stand as the backend has them.
std::vector<float> result_of(const OpCase& op_case, ThreadPool& threads, Backend& backend) {
  const PackedBy packing(backend);
  const OpInstance instance = op_case.make(threads, backend.memory());
  instance.run(backend);
  return instance.result();
}

// Products with quantised weights are compared with the reference's for inputs of bfloat16, which a
// GPU has whatever the weights say.
void expect_reference(const std::vector<OpCase>& cases) {
  EmulatedBackend cuda({.num_threads = 2});
  const auto reference = make_reference_backend(ActivationType::bf16);
  std::map<std::string, double> worst;  // op -> the largest error / tolerance
  for (const OpCase& op_case : cases) {
    const std::vector<float> expected = result_of(op_case, cuda.threads, *reference);
    const double error = largest_error(result_of(op_case, cuda.threads, *cuda), expected);
    const double tolerance = std::max(op_case.tolerance, op_case.rounded_tolerance);
    EXPECT_LE(error, tolerance) << op_case.name;
    double& used = worst[op_case.name.substr(0, op_case.name.find(' '))];
    if (tolerance > 0) used = std::max(used, error / tolerance);
  }
  for (const auto& [op, used] : worst)
    ::testing::Test::RecordProperty("tolerance used by " + op, std::to_string(used));
}

TEST(CudaOpTable, AgreesWithTheReference) {
  const std::vector<OpCase> cases = cases_to_run(cases_of_serving(), 0, 8, 3);
  ASSERT_GT(cases.size(), 100u);
  expect_reference(cases);
}

TEST(CudaOpTable, GradientsAgreeWithTheReference) {
  const std::vector<OpCase> cases = cases_to_run(small_cases_of(gradient_cases()), 4, 40, 19);
  ASSERT_GE(cases.size(), 10u);
  expect_reference(cases);
}

}  // namespace
}  // namespace paceline::cuda
