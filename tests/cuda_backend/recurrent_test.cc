// Operations of recurrent layers on the emulated device.
#include <gtest/gtest.h>

#include "tests/cuda_backend/emulated_backend.h"
#include "tests/kernels/recurrent_checks.h"

namespace paceline::cuda {
namespace {

class CudaRecurrentTest : public ::testing::Test {
 protected:
  RecurrentChecks cases() {
    constexpr int kRounds = 4;
    return {backend_->memory(), {backend_->recurrent()}, kRounds, {DType::f32}, false};
  }

 private:
  EmulatedBackend backend_{{.num_threads = 2}};
};

TEST_F(CudaRecurrentTest, DeltaRuleIsItsRecurrence) { cases().delta_rule_is_its_recurrence(); }
TEST_F(CudaRecurrentTest, DeltaRuleHasTheSameBitsHoweverItIsCut) {
  cases().delta_rule_has_the_same_bits_however_it_is_cut();
}
TEST_F(CudaRecurrentTest, PositionsAreTakenBack) { cases().positions_are_taken_back(); }
TEST_F(CudaRecurrentTest, SequencesRunSideBySide) { cases().sequences_run_side_by_side(); }
TEST_F(CudaRecurrentTest, ConvolutionsHaveTheSameBitsHoweverTheyAreCut) {
  cases().convolutions_have_the_same_bits_however_they_are_cut();
}
TEST_F(CudaRecurrentTest, InputsOfConvolutionsAreTakenBack) {
  cases().inputs_of_convolutions_are_taken_back();
}
TEST_F(CudaRecurrentTest, SelectiveScanIsItsRecurrence) {
  cases().selective_scan_is_its_recurrence();
}
TEST_F(CudaRecurrentTest, SelectiveScansHaveTheSameBitsHoweverTheyAreCut) {
  cases().selective_scans_have_the_same_bits_however_they_are_cut();
}
TEST_F(CudaRecurrentTest, ScannedPositionsAreTakenBack) {
  cases().scanned_positions_are_taken_back();
}
TEST_F(CudaRecurrentTest, DecayGates) { cases().decay_gates(); }
TEST_F(CudaRecurrentTest, Products) { cases().products(); }

}  // namespace
}  // namespace paceline::cuda
