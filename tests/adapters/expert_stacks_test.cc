// Stacks of experts in PEFT's format: what is refused, and pairs that can't be stacked.
#include "adapters/expert_stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "adapters/expert_names.h"
#include "adapters/mlx_directory.h"
#include "adapters/peft_directory.h"
#include "base/mapped_file.h"
#include "tests/adapters/written_adapters.h"
#include "weights/safetensors.h"

namespace paceline {
namespace {

using testing::ElementsAre;

// Two layers of three experts with hidden size 4 and 6 inner columns.
AdapterBase mixture_base() {
  AdapterBase base = small_base();
  base.size_of = [](std::string_view module) -> std::optional<MatrixSize> {
    const auto layer = split_layer_module(module);
    if (!layer || layer->layer > 1) return std::nullopt;
    const auto expert = split_expert_part(layer->part);
    if (!expert || expert->expert > 2) return std::nullopt;
    if (expert->projection == "gate_up_proj") return MatrixSize{12, 4};
    if (expert->projection == "down_proj") return MatrixSize{4, 6};
    return MatrixSize{6, 4};
  };
  return base;
}

const std::string kExperts = "model.layers.0.mlp.experts";
const std::string kBothTargets =
    R"("target_parameters": ["experts.gate_up_proj", "mlp.experts.down_proj"],)";

// A of `experts` experts and rank 2, and B.
std::vector<FileTensor> stack(const std::string& module, MatrixSize size, uint64_t experts = 3) {
  return peft_pair(module, size, 2 * experts);
}

class ExpertStacks : public testing::Test {
 protected:
  Adapter read(std::string_view config, const std::vector<FileTensor>& tensors) {
    write_peft(directory_, config, tensors);
    return read_adapter(directory_.path(), base_, memory_);
  }
  void expect_refused(ErrorCode code, const std::vector<std::string>& parts,
                      const std::string& fields, const std::vector<FileTensor>& tensors) {
    SCOPED_TRACE(parts.back());
    expect_error(code, parts, [&] { read(peft_config(fields), tensors); });
  }

  TestDirectory directory_;
  Memory memory_;
  AdapterBase base_ = mixture_base();
};

TEST_F(ExpertStacks, RowsOfAAreByExpertAndColumnsOfBByRank) {
  const Adapter adapter = read(
      peft_config(R"("target_parameters": ["down_proj"], "alpha_pattern": {"down_proj": 10},)"),
      stack(kExperts, {4, 6}));
  ASSERT_EQ(adapter.pairs().size(), 3u);
  const LoraPair& last = adapter.pairs()[2];
  EXPECT_EQ(last.module, "layers.0.mlp.experts.2.down_proj");
  EXPECT_EQ(last.scale, 5);
  EXPECT_THAT(floats_of(last.a.view), ElementsAre(25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36));
  EXPECT_THAT(floats_of(last.b.view), ElementsAre(102, 105, 108, 111, 114, 117, 120, 123));
}

TEST_F(ExpertStacks, TheFirstParameterIsTheInnermost) {
  const Adapter adapter =
      read(peft_config(kBothTargets),
           joined(stack(kExperts + ".base_layer", {12, 4}), stack(kExperts, {4, 6})));
  ASSERT_EQ(adapter.pairs().size(), 6u);
  EXPECT_EQ(adapter.find("layers.0.mlp.experts.1.gate_up_proj")->out(), 12);
  EXPECT_EQ(adapter.find("layers.0.mlp.experts.1.down_proj")->in(), 6);
}

TEST_F(ExpertStacks, WhatDoesntFitIsRefused) {
  expect_refused(ErrorCode::corrupt, {"mlp.experts.lora_A", "target_parameters"}, "",
                 stack(kExperts, {4, 6}));
  expect_refused(ErrorCode::corrupt, {"matrices of 1 parameters", "chooses 2"}, kBothTargets,
                 stack(kExperts, {4, 6}));
  expect_refused(ErrorCode::corrupt, {"matrices of 1 parameters"},
                 R"("target_parameters": ["down_proj"],)", stack(kExperts + ".base_layer", {4, 6}));
  const std::string down = R"("target_parameters": ["down_proj"],)";
  expect_refused(ErrorCode::corrupt, {"lora_A", "[7, 6]", "each expert, 2 rows"}, down,
                 peft_pair(kExperts, {4, 6}, 7));
  expect_refused(ErrorCode::corrupt, {"lora_B", "[0, 6]"}, down, peft_pair(kExperts, {0, 6}, 6));
  expect_refused(ErrorCode::invalid, {"2 experts of rank 2", "has more", "another model?"}, down,
                 stack(kExperts, {4, 6}, 2));
  expect_refused(ErrorCode::not_found, {"experts.3.down_proj", "lacks"}, down,
                 stack(kExperts, {4, 6}, 4));
  expect_refused(ErrorCode::invalid, {"[2, 5]", "expected [2, 6]"}, down, stack(kExperts, {4, 5}));
  expect_refused(ErrorCode::not_found, {"mlp.gate", "lacks"},
                 R"("target_parameters": ["gate.weight"],)",
                 peft_pair("model.layers.0.mlp.gate", {3, 4}));
}

TEST_F(ExpertStacks, SingleExpertsOfMixtralHaveItsNames) {
  base_.expert_names = {
      .single = "block_sparse_moe.experts", .gate = "w1", .up = "w3", .down = "w2"};
  const std::string module = "model.layers.1.block_sparse_moe.experts.2.w3";
  const Adapter adapter =
      read(peft_config(R"("target_modules": ["w3"],)"), peft_pair(module, {6, 4}));
  EXPECT_EQ(adapter.pairs()[0].module, "layers.1.mlp.experts.2.up_proj");
  const auto out = directory_.path() / "out";
  write_peft_adapter(adapter, base_, out);
  EXPECT_EQ(read_adapter(out, base_, memory_).digest(), adapter.digest());
  const MappedFile file(out / kPeftWeightsFile);
  EXPECT_EQ(parse_safetensors_header(file.bytes(), "out")[0].name,
            "base_model.model." + module + ".lora_A.weight");
}

// mlx-lm has gate and up apart.
TEST_F(ExpertStacks, AreWrittenForMlxAndReadAgain) {
  const Adapter both =
      read(peft_config(kBothTargets),
           joined(stack(kExperts + ".base_layer", {12, 4}), stack(kExperts, {4, 6})));
  const auto out = directory_.path() / "mlx";
  write_mlx_adapter(both, base_, out);
  const MappedFile file(out / kMlxWeightsFile);
  std::map<std::string, Extents> shapes;
  for (const auto& tensor : parse_safetensors_header(file.bytes(), "mlx")) {
    shapes[tensor.name] = tensor.shape;
  }
  const std::string block = "model.layers.0.mlp.switch_mlp.";
  EXPECT_EQ(shapes.size(), 6u);
  EXPECT_EQ(shapes.at(block + "gate_proj.lora_a"), (Extents{3, 2, 4}));
  EXPECT_EQ(shapes.at(block + "up_proj.lora_b"), (Extents{3, 6, 2}));
  EXPECT_EQ(shapes.at(block + "down_proj.lora_b"), (Extents{3, 4, 2}));
  const Adapter again = read_adapter(out, base_, memory_);
  ASSERT_EQ(again.pairs().size(), 9u);
  const LoraPair& whole = *both.find("layers.0.mlp.experts.1.gate_up_proj");
  const LoraPair& up = *again.find("layers.0.mlp.experts.1.up_proj");
  EXPECT_EQ(up.scale, whole.scale);
  EXPECT_EQ(floats_of(up.a.view), floats_of(whole.a.view));
  EXPECT_EQ(floats_of(up.b.view), floats_of(whole.b.view.slice(0, 6, 12)));
  EXPECT_EQ(floats_of(again.find("layers.0.mlp.experts.2.down_proj")->b.view),
            floats_of(both.find("layers.0.mlp.experts.2.down_proj")->b.view));
}

// gpt-oss's: inside, gate's rows come before those of up.
TEST_F(ExpertStacks, AlternatingRowsOfGateAndUpAreSeparated) {
  const std::string config = peft_config(R"("target_parameters": ["gate_up_proj"],)");
  const std::string module = "layers.0.mlp.experts.1.gate_up_proj";
  const Adapter stored = read(config, stack(kExperts, {12, 4}));
  base_.expert_names.alternates = true;
  base_.expert_names.stacked_in_mlx = "mlp.experts";
  const Adapter adapter = read(config, stack(kExperts, {12, 4}));
  const std::vector<float> by_file = floats_of(stored.find(module)->b.view);
  const std::vector<float> separated = floats_of(adapter.find(module)->b.view);
  constexpr size_t kRank = 2;
  for (size_t row = 0; row < 12; ++row) {
    const size_t to = row % 2 == 0 ? row / 2 : 6 + row / 2;
    for (size_t k = 0; k < kRank; ++k) {
      EXPECT_EQ(separated[to * kRank + k], by_file[row * kRank + k]) << row;
    }
  }
  EXPECT_EQ(floats_of(adapter.find(module)->a.view), floats_of(stored.find(module)->a.view));

  const auto peft = directory_.path() / "peft", mlx = directory_.path() / "mlx";
  write_peft_adapter(adapter, base_, peft);
  EXPECT_EQ(read_adapter(peft, base_, memory_).digest(), adapter.digest());
  write_mlx_adapter(adapter, base_, mlx);
  const MappedFile file(mlx / kMlxWeightsFile);
  EXPECT_EQ(parse_safetensors_header(file.bytes(), "mlx")[0].name,
            "model.layers.0.mlp.experts.gate_proj.lora_a");
  const Adapter again = read_adapter(mlx, base_, memory_);
  const Tensor& b = adapter.find(module)->b.view;
  EXPECT_EQ(floats_of(again.find("layers.0.mlp.experts.1.gate_proj")->b.view),
            floats_of(b.slice(0, 0, 6)));
  EXPECT_EQ(floats_of(again.find("layers.0.mlp.experts.1.up_proj")->b.view),
            floats_of(b.slice(0, 6, 12)));
}

// Which rows are gate's isn't known without a base.
TEST_F(ExpertStacks, GateAndUpTogetherNeedABaseForMlx) {
  base_ = {};
  const Adapter adapter =
      read(peft_config(R"("target_parameters": ["gate_up_proj"],)"), stack(kExperts, {12, 4}));
  expect_error(ErrorCode::unsupported, {"experts.0.gate_up_proj", "--model"},
               [&] { write_mlx_adapter(adapter, base_, directory_.path() / "mlx"); });
}

TEST_F(ExpertStacks, PartsOfStacksAreRefused) {
  Adapter whole =
      read(peft_config(R"("target_parameters": ["gate_up_proj"],)"), stack(kExperts, {12, 4}));
  const auto out = directory_.path() / "out";
  std::vector<LoraPair> some;
  for (const LoraPair& pair : whole.pairs().subspan(1)) {
    LoraPair& copy = some.emplace_back(LoraPair{.module = pair.module});
    copy.a = allocate_tensor(memory_, DType::f32, pair.a.view.shape());
    copy.b = allocate_tensor(memory_, DType::f32, pair.b.view.shape());
    copy.alpha = pair.alpha;
    copy.scale = pair.scale;
  }
  const Adapter part("", std::move(some));
  expect_error(ErrorCode::unsupported, {"gate_up_proj", "all experts"},
               [&] { write_peft_adapter(part, base_, out); });
  expect_error(ErrorCode::unsupported, {"experts.1.gate_up_proj", "all experts", "--to peft"},
               [&] { write_mlx_adapter(part, base_, out); });
}

}  // namespace
}  // namespace paceline
