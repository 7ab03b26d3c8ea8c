// The front door: what it refuses, and how an instruction set is chosen.
#include "kernels/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "kernels/gradients.h"
#include "kernels/roofline.h"
#include "tests/build_kind.h"
#include "tests/expect_error.h"
#include "tests/kernels/attention_pass.h"
#include "tests/kernels/chosen_isa.h"
#include "tests/kernels/op_inputs.h"

namespace paceline {
namespace {

class FrontDoor : public testing::Test {
 protected:
  Tensor rows(int64_t count, int64_t width) {
    owned_.push_back(allocate_tensor(memory_, DType::f32, {count, width}));
    return owned_.back().view;
  }

  Memory memory_;
  ThreadPool threads_{1};
  std::unique_ptr<Backend> backend_ = make_reference_backend();

 private:
  std::vector<OwnedTensor> owned_;
};
using FrontDoorDeathTest = FrontDoor;

TEST_F(FrontDoorDeathTest, NamesTheDimensionThatDiffers) {
  const PackedMatrix w = random_matrix(memory_, threads_, DType::f32, 8, 5, 1);
  EXPECT_DEATH(backend_->matmul(rows(2, 6), w, nullptr, rows(2, 8)),
               "matmul: x has k = 6, but w has 5");
  EXPECT_DEATH(backend_->matmul(rows(2, 5), w, nullptr, rows(3, 8)),
               "matmul: out has rows = 3, but x has 2");
  EXPECT_DEATH(backend_->add(rows(2, 5), rows(2, 4), rows(2, 5)),
               "add: y has width = 4, but x has 5");
}

TEST_F(FrontDoorDeathTest, RefusesAnotherRankTypeOrLayout) {
  const OwnedTensor half = allocate_tensor(memory_, DType::f16, {2, 5});
  EXPECT_DEATH(backend_->soft_cap(half.view, 1.0f, rows(2, 5)),
               "soft_cap: x is float16 .2, 5., expected .rows, width.");
  EXPECT_DEATH(backend_->soft_cap(rows(2, 5).transpose(0, 1), 1.0f, rows(5, 2)),
               "a contiguous last dimension");
  EXPECT_DEATH(backend_->rope(rows(2, 5), RopePairs::halves, rows(2, 5)),
               "rope: table is float32 .2, 5., expected .rows, half, 2.");
}

TEST_F(FrontDoorDeathTest, RefusesMemoryThatIsNotAllocated) {
  if (!is_address_sanitized()) GTEST_SKIP() << "only AddressSanitizer's build checks it";
  std::vector<float> memory(10);
  const Tensor fits(memory.data(), DType::f32, {2, 5});
  backend_->add(fits, fits, rows(2, 5));
  const Tensor too_long(memory.data(), DType::f32, {3, 5});
  EXPECT_DEATH(backend_->add(too_long, rows(3, 5), rows(3, 5)), "add: x is .* isn't allocated");
  EXPECT_DEATH(backend_->add(rows(3, 5), rows(3, 5), too_long), "add: out is .* isn't allocated");
}

TEST_F(FrontDoorDeathTest, RefusesIndicesOutOfRange) {
  const PackedMatrix w = random_matrix(memory_, threads_, DType::f32, 8, 5, 1);
  EXPECT_DEATH(backend_->embedding(w, std::vector<int32_t>{8}, 1.0f, rows(1, 5)),
               "embedding: id 8 of 8");
  const AttentionShape shape = {.slices = {{0, 20}}};
  AttentionInputs inputs(shape, 1, 2, memory_);
  inputs.block_tables[0][1] = 1 << 20;
  const OwnedTensor out = allocate_tensor(memory_, DType::f32, inputs.q.view.shape());
  EXPECT_DEATH(backend_->attention(inputs.q.view, inputs.store(), inputs.slices, {}, out.view),
               "entry 1 of a block table is block 1048576");
  EXPECT_DEATH(backend_->store_kv(inputs.q.view.slice(1, 0, 2), inputs.q.view.slice(1, 0, 2),
                                  std::vector<int64_t>(20, -1), inputs.store()),
               "store_kv: slot -1");
}

TEST_F(FrontDoorDeathTest, RefusesADevicesIndicesOnTheCpu) {
  const int32_t row = 7;  // which is not read
  const auto elsewhere = Indices<int32_t>::on_device(&row, 1);
  EXPECT_DEATH(backend_->gather_rows(rows(3, 5), elsewhere, rows(2, 5)),
               "gather_rows: out has rows = 2, but rows has 1");
  EXPECT_DEATH(backend_->gather_rows(rows(3, 5), elsewhere, rows(1, 5)),
               "an operand on the device");
}

TEST_F(FrontDoorDeathTest, RefusesGradientsThatDoNotFit) {
  GradientOps& ops = backend_->gradients();
  const PackedMatrix w = random_matrix(memory_, threads_, DType::f32, 8, 5, 1);
  EXPECT_DEATH(ops.matmul_input_gradient(rows(2, 8), w, rows(2, 6)),
               "matmul_input_gradient: dx has k = 6, but w has 5");
  EXPECT_DEATH(
      ops.matmul_weight_gradient(rows(2, 8), rows(3, 5), OperandRounding::none, rows(8, 5)),
      "matmul_weight_gradient: x has rows = 3, but dy has 2");
  EXPECT_DEATH(ops.embedding_gradient(std::vector<int32_t>{8}, 1.0f, rows(1, 5), rows(8, 5)),
               "embedding_gradient: id 8 of 8");
  std::vector<float> losses(1);
  EXPECT_DEATH(ops.cross_entropy_gradient(std::vector<int32_t>{-1}, std::vector<float>{0.5f},
                                          rows(1, 5), losses),
               "cross_entropy_gradient: target -1 of 5");
  AttentionPass pass({.lengths = {5, 6}}, 1, memory_);
  pass.sequences[1].first_row = 4;
  EXPECT_DEATH(pass.backward(*backend_),
               "attention_gradient: sequence .4, .6. of 11 rows, after row 5");
  pass.sequences[1] = {.first_row = 6, .num_rows = 6};
  EXPECT_DEATH(pass.backward(*backend_), "attention_gradient: sequence .6, .6. of 11 rows");
}

TEST_F(FrontDoorDeathTest, RefusesSegmentsThatDoNotFit) {
  const PackedMatrix a = random_matrix(memory_, threads_, DType::f32, 4, 5, 1);
  const PackedMatrix b = random_matrix(memory_, threads_, DType::f32, 3, 2, 2);
  const auto add = [&](const std::vector<LoraSegment>& segments) {
    backend_->add_lora(rows(6, 5), segments, rows(6, 8));
  };
  const LoraSegment fits = {.num_rows = 2, .a = &a, .first_rank = 2, .b = &b, .first_column = 5};
  const LoraSegment below = {.first_row = 2, .num_rows = 4, .a = &a, .b = &b};
  const LoraSegment beside = {.first_row = 2, .num_rows = 4, .a = &a, .b = &b, .first_column = 3};
  add({fits, below, beside});
  EXPECT_DEATH(add({below, fits}), "add_lora: the segment of row 0 and column 5 stands behind");
  EXPECT_DEATH(add({fits, fits}), "add_lora: the segment of row 0 and column 5 stands behind");
  LoraSegment wrong = below;
  wrong.first_row = 1;
  EXPECT_DEATH(add({fits, wrong}), "add_lora: the segment of row 1 and column 0 stands behind");
  wrong = fits;
  wrong.first_rank = 3;
  EXPECT_DEATH(add({wrong}), "add_lora: b has ranks .3, .2. of a's 4");
  wrong = fits;
  wrong.first_column = 6;
  EXPECT_DEATH(add({wrong}), "add_lora: columns .6, .3. of 8");
  wrong = fits;
  wrong.num_rows = 7;
  EXPECT_DEATH(add({wrong}), "add_lora: rows .0, .7. of a batch of 6");
  EXPECT_DEATH(backend_->add_lora(rows(6, 4), std::vector{fits}, rows(6, 8)),
               "add_lora: x has k = 4, but a has 5");
}

TEST_F(FrontDoor, EmptyBatchesAreNoWork) {
  const PackedMatrix w = random_matrix(memory_, threads_, DType::f32, 8, 5, 1);
  backend_->matmul(rows(0, 5), w, nullptr, rows(0, 8));
  backend_->embedding(w, {}, 1.0f, rows(0, 5));
  backend_->add_lora(rows(0, 5), {}, rows(0, 8));
  backend_->soft_cap(rows(0, 5), 1.0f, rows(0, 5));
  backend_->log_sum_exp(rows(0, 5), {});
  GradientOps& ops = backend_->gradients();
  ops.matmul_input_gradient(rows(0, 8), w, rows(0, 5));
  const Tensor dw = rows(8, 5);
  dw.elements<float>()[7] = 3.0f;
  ops.matmul_weight_gradient(rows(0, 8), rows(0, 5), OperandRounding::none, dw);
  EXPECT_EQ(dw.elements<float>()[7], 3.0f);
  ops.cross_entropy_gradient({}, {}, rows(0, 5), {});
  ops.embedding_gradient({}, 1.0f, rows(0, 5), dw);
}

TEST(Isa, TheEnvironmentForcesAnyThatTheMachineRuns) {
  EXPECT_EQ(available_isas().front(), Isa::baseline);
  Memory memory;
  ThreadPool threads(1);
  for (const Isa isa : available_isas()) {
    const std::string name(isa_name(isa));
    const ChosenIsa chosen(isa);
    EXPECT_EQ(choose_isa(), isa);
    EXPECT_EQ(make_cpu_backend(isa, threads, memory)->name(), "cpu/" + name);
  }
}

TEST(Isa, AnUnknownNameIsAnErrorThatListsTheKnownOnes) {
  const ChosenIsa chosen("avx1024");
  expect_error(ErrorCode::invalid, {"\"avx1024\"", "baseline, avx2, avxvnni, avx512, avx512vnni"},
               [] { choose_isa(); });
}

TEST(Roofline, MeasuresAllThree) {
  Memory memory;
  ThreadPool threads(2);
  const Roofline roofline = measure_roofline(available_isas().back(), threads, memory, 0.001);
  EXPECT_GT(roofline.read_bytes_per_s, 1e8);
  EXPECT_GT(roofline.bf16_flops_per_s, 1e8);
  EXPECT_GT(roofline.f32_flops_per_s, 1e8);
  EXPECT_EQ(memory.stats().active_bytes, 0u);
}

}  // namespace
}  // namespace paceline
