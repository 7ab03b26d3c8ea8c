// Operations of recurrent layers on the CPU.
#include <gtest/gtest.h>

#include "kernels/backend.h"
#include "tests/kernels/every_isa.h"
#include "tests/kernels/recurrent_checks.h"

namespace paceline {
namespace {

class RecurrentTest : public IsaTest {
 protected:
  RecurrentChecks cases() {
    constexpr int kRounds = 12;
    std::vector<RecurrentOps*> all;
    for (const auto& backend : backends()) all.push_back(backend->recurrent());
    return {memory_, std::move(all), kRounds, {DType::f32, DType::bf16}};
  }
};

TEST_P(RecurrentTest, DeltaRuleIsItsRecurrence) { cases().delta_rule_is_its_recurrence(); }
TEST_P(RecurrentTest, DeltaRuleHasTheSameBitsHoweverItIsCut) {
  cases().delta_rule_has_the_same_bits_however_it_is_cut();
}
TEST_P(RecurrentTest, PositionsAreTakenBack) { cases().positions_are_taken_back(); }
TEST_P(RecurrentTest, SequencesRunSideBySide) { cases().sequences_run_side_by_side(); }
TEST_P(RecurrentTest, ConvolutionsHaveTheSameBitsHoweverTheyAreCut) {
  cases().convolutions_have_the_same_bits_however_they_are_cut();
}
TEST_P(RecurrentTest, InputsOfConvolutionsAreTakenBack) {
  cases().inputs_of_convolutions_are_taken_back();
}
TEST_P(RecurrentTest, SelectiveScanIsItsRecurrence) { cases().selective_scan_is_its_recurrence(); }
TEST_P(RecurrentTest, SelectiveScansHaveTheSameBitsHoweverTheyAreCut) {
  cases().selective_scans_have_the_same_bits_however_they_are_cut();
}
TEST_P(RecurrentTest, ScannedPositionsAreTakenBack) { cases().scanned_positions_are_taken_back(); }
TEST_P(RecurrentTest, DecayGates) { cases().decay_gates(); }
TEST_P(RecurrentTest, Products) { cases().products(); }

PL_TEST_EVERY_ISA(RecurrentTest);

TEST(RecurrentReference, DeltaRuleHasTheSameBitsHoweverItIsCut) {
  Memory memory;
  const auto reference = make_reference_backend();
  RecurrentChecks(memory, {reference->recurrent()}, 2, {DType::f32, DType::bf16})
      .delta_rule_has_the_same_bits_however_it_is_cut();
}

}  // namespace
}  // namespace paceline
