// Models whose layers have states, against transformers: float32 logits within 1e-4, greedy tokens
// equal, on every ISA; and the same bits however a prompt is cut.
#include <gtest/gtest.h>

#include "tests/kernels/chosen_isa.h"
#include "tests/models/test_model.h"

namespace paceline::testing {
namespace {

class HybridGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(HybridGolden, LogitsAndGreedyTokensAreTransformers) {
  const Golden golden = read_golden(GetParam(), "hybrids");
  std::vector<RunOptions> runs = {{.backend = BackendKind::reference}};
  for (const Isa isa : isas_to_run()) {
    runs.push_back({.backend = BackendKind::cpu, .isa = isa, .num_threads = 2});
  }
  for (const RunOptions& run : runs) {
    TestModel model(golden.directory, run);
    SCOPED_TRACE(std::string(model.backend().name()));
    EXPECT_LE(max_difference(model.logits(golden.prompt_ids), golden.logits), 1e-4f);
    EXPECT_EQ(model.greedy(golden.prompt_ids, std::ssize(golden.greedy_ids)), golden.greedy_ids);
  }
}

TEST_P(HybridGolden, BitsDontDependOnCuts) {
  const Golden golden = read_golden(GetParam(), "hybrids");
  for (const Isa isa : isas_to_run()) {
    TestModel model(golden.directory, {.backend = BackendKind::cpu, .isa = isa, .num_threads = 2});
    const std::vector<float> whole = model.logits(golden.prompt_ids);
    for (const int64_t chunk : {1, 3, 16, 29}) {
      EXPECT_EQ(model.logits(golden.prompt_ids, chunk), whole) << isa_name(isa) << ", " << chunk;
    }
  }
}

std::string hybrid_test_name(const ::testing::TestParamInfo<std::string>& one) { return one.param; }

INSTANTIATE_TEST_SUITE_P(, HybridGolden, ::testing::ValuesIn(golden_names("hybrids")),
                         hybrid_test_name);

}  // namespace
}  // namespace paceline::testing
