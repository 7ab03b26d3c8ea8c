// Every small case of the op table (under a sanitizer every third) on every instruction set against
// the reference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/kernels/chosen_isa.h"
#include "tests/kernels/op_cases.h"
#include "tests/test_scale.h"

namespace paceline {
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

TEST(OpTable, EveryInstructionSetAgreesWithTheReference) {
  Memory memory;
  ThreadPool threads(2);
  const auto reference = make_reference_backend();
  std::vector<std::unique_ptr<Backend>> backends;
  for (const Isa isa : isas_to_run()) backends.push_back(make_cpu_backend(isa, threads, memory));
  std::map<std::string, double> worst;  // op -> the largest error / tolerance
  std::vector<OpCase> cases = op_cases();
  std::erase_if(cases, [](const OpCase& one) { return one.size == CaseSize::large; });
  for (const OpCase& op_case : cases_to_run(cases, 0, 3)) {
    const OpInstance instance = op_case.make(threads, memory);
    instance.run(*reference);
    const std::vector<float> expected = instance.result();
    for (const auto& backend : backends) {
      instance.run(*backend);
      const double error = largest_error(instance.result(), expected);
      EXPECT_LE(error, op_case.tolerance) << backend->name() << " " << op_case.name;
      double& used = worst[op_case.name.substr(0, op_case.name.find(' '))];
      if (op_case.tolerance > 0) used = std::max(used, error / op_case.tolerance);
    }
  }
  for (const auto& [op, used] : worst)
    RecordProperty("tolerance used by " + op, std::to_string(used));
}

}  // namespace
}  // namespace paceline
