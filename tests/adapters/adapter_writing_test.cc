// Adapters written in one format and read again, in another order and format: equal digests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "adapters/mlx_directory.h"
#include "adapters/peft_directory.h"
#include "base/mapped_file.h"
#include "base/model_files.h"
#include "base/random.h"
#include "tests/adapters/written_adapters.h"

namespace paceline {
namespace {

LoraPair random_pair(Memory& memory, const std::string& module, MatrixSize size, int64_t rank,
                     DType dtype) {
  LoraPair pair;
  pair.module = module;
  pair.a = allocate_tensor(memory, dtype, {rank, size.in});
  pair.b = allocate_tensor(memory, dtype, {size.out, rank});
  uint64_t seed = 0;
  for (const char c : module) seed = seed * 31 + static_cast<unsigned char>(c);
  for (const Tensor* matrix : {&pair.a.view, &pair.b.view}) {
    with_float_dtype(dtype, [&]<class T>() {
      for (int64_t i = 0; i < matrix->num_elements(); ++i) {
        const auto draw = philox4x32(seed, static_cast<uint64_t>(i));
        matrix->elements<T>()[i] = from_float<T>(static_cast<float>(draw[0] % 2001) / 1000 - 1);
      }
    });
    ++seed;
  }
  pair.alpha = 5;
  pair.scale = static_cast<float>(pair.alpha / static_cast<double>(rank));
  return pair;
}

class AdapterWriting : public testing::Test {
 protected:
  // A pair of every module for which `wanted` is true.
  template <class Wanted>
  Adapter make(DType dtype, const Wanted& wanted) {
    std::vector<LoraPair> pairs;
    for (const std::string& module : base_.modules) {
      if (!wanted(module)) continue;
      pairs.push_back(random_pair(memory_, module, *base_.size_of(module), 3, dtype));
    }
    return Adapter("some/model", std::move(pairs));
  }
  std::filesystem::path new_path() {
    return directory_.path() / ("out" + std::to_string(num_paths_++));
  }
  Adapter through_peft(const Adapter& adapter) {
    const auto path = new_path();
    write_peft_adapter(adapter, base_, path);
    EXPECT_EQ(find_adapter_format(path), AdapterFormat::peft);
    return read_adapter(path, base_, memory_);
  }
  Adapter through_mlx(const Adapter& adapter) {
    const auto path = new_path();
    write_mlx_adapter(adapter, base_, path);
    EXPECT_EQ(find_adapter_format(path), AdapterFormat::mlx);
    return read_adapter(path, base_, memory_);
  }
  Json config_of_last() {
    const auto path =
        directory_.path() / ("out" + std::to_string(num_paths_ - 1)) / "adapter_config.json";
    return parse_json(read_text_file(path, kMaxConfigBytes), "config");
  }

  TestDirectory directory_;
  Memory memory_;
  AdapterBase base_ = small_base(3);
  int num_paths_ = 0;
};

TEST_F(AdapterWriting, FormatsKeepTheDigest) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const Adapter adapter = make(dtype, [](const std::string&) { return true; });
    ASSERT_EQ(adapter.pairs().size(), 22u);
    const Adapter mlx = through_mlx(adapter);
    EXPECT_EQ(mlx.digest(), adapter.digest());
    const Adapter peft = through_peft(mlx);
    EXPECT_EQ(peft.digest(), adapter.digest());
    EXPECT_EQ(peft.base_name(), "some/model");
    EXPECT_EQ(peft.size_bytes(), adapter.size_bytes());
    EXPECT_EQ(peft.pairs()[5].alpha, 5);
  }
}

TEST_F(AdapterWriting, MultimodalBasesHaveOtherPrefixes) {
  base_.peft_prefixes = {.layers = "model.language_model."};
  base_.mlx_prefixes = {.layers = "language_model.model.", .head = "language_model."};
  const Adapter adapter = make(DType::f32, [](const std::string&) { return true; });
  EXPECT_EQ(through_peft(through_mlx(adapter)).digest(), adapter.digest());
  const Json config = config_of_last();
  const Json::Array& targets = *config.find("target_modules")->array();
  EXPECT_EQ(*targets.front().string(), "model.language_model.layers.0.mlp.down_proj");
  EXPECT_EQ(*targets.back().string(), "lm_head");
}

TEST_F(AdapterWriting, MlxKeysAreInsideTheLastLayersWherePossible) {
  const auto keys_of = [&](const auto& wanted) {
    const Adapter adapter = make(DType::f32, wanted);
    EXPECT_EQ(through_mlx(adapter).digest(), adapter.digest());
    std::vector<std::string> keys;
    const Json config = config_of_last();
    for (const Json& key : *config.find("lora_parameters")->find("keys")->array()) {
      keys.push_back(*key.string());
    }
    keys.push_back(std::to_string(*config.find("num_layers")->integer()));
    return keys;
  };
  const auto in_last_two = [](const std::string& module) {
    return module.ends_with(".v_proj") && !module.starts_with("layers.0");
  };
  EXPECT_THAT(keys_of(in_last_two), testing::ElementsAre("self_attn.v_proj", "2"));
  const auto in_first = [](const std::string& module) {
    return module == "layers.0.self_attn.v_proj" || module == "layers.0.mlp.up_proj";
  };
  EXPECT_THAT(keys_of(in_first), testing::ElementsAre("model.layers.0.mlp.up_proj",
                                                      "model.layers.0.self_attn.v_proj", "-1"));
  EXPECT_THAT(keys_of([](const std::string& module) { return module == "lm_head"; }),
              testing::ElementsAre("lm_head", "-1"));
}

TEST_F(AdapterWriting, PeftKeepsRanksAndScalesOfEachPair) {
  std::vector<LoraPair> pairs;
  const std::vector<double> scales = {0.1, 1.0 / 3, 2, -0.7, 1e-30, 3e38, 0};
  for (size_t i = 0; i < scales.size(); ++i) {
    const std::string& module = base_.modules[i];
    pairs.push_back(random_pair(memory_, module, *base_.size_of(module), 1 + (i % 4), DType::f32));
    pairs.back().alpha = 7;
    pairs.back().scale = static_cast<float>(scales[i]);
  }
  pairs[1].alpha = pairs[1].scale * std::sqrt(2.0);  // as of a rank-stabilised adapter
  const Adapter adapter("", std::move(pairs));
  const Adapter again = through_peft(adapter);
  EXPECT_EQ(again.digest(), adapter.digest());
  EXPECT_EQ(again.base_name(), "");
  expect_error(ErrorCode::unsupported, {"one rank and one scale"}, [&] { through_mlx(adapter); });
}

TEST_F(AdapterWriting, DigestsDifferInAnyPart) {
  const auto one = [](const std::string& module) { return module == "layers.1.mlp.up_proj"; };
  const Adapter adapter = make(DType::f32, one);
  const auto changed_digest = [&](const auto& change) {
    LoraPair pair = random_pair(memory_, "layers.1.mlp.up_proj",
                                *base_.size_of("layers.1.mlp.up_proj"), 3, DType::f32);
    change(pair);
    std::vector<LoraPair> pairs;
    pairs.push_back(std::move(pair));
    return Adapter("another name", std::move(pairs)).digest();
  };
  EXPECT_EQ(changed_digest([](LoraPair&) {}), adapter.digest());
  EXPECT_NE(changed_digest([](LoraPair& pair) { pair.module = "layers.2.mlp.up_proj"; }),
            adapter.digest());
  EXPECT_NE(changed_digest([](LoraPair& pair) { pair.scale = 2; }), adapter.digest());
  EXPECT_NE(changed_digest([](LoraPair& pair) { *pair.a.view.elements<float>() += 1; }),
            adapter.digest());
  EXPECT_NE(changed_digest([](LoraPair& pair) { *pair.b.view.elements<float>() += 1; }),
            adapter.digest());
  EXPECT_NE(changed_digest([](LoraPair& pair) {
              pair.a.view = pair.a.view.reshape({4, 3});
            }),
            adapter.digest());
}

TEST_F(AdapterWriting, NothingIsOverwrittenOrLeftBehind) {
  const Adapter adapter = make(DType::f32, [](const std::string&) { return true; });
  const auto path = new_path();
  write_peft_adapter(adapter, base_, path);
  expect_error(ErrorCode::invalid, {"exists already"},
               [&] { write_mlx_adapter(adapter, base_, path); });
  expect_error(ErrorCode::invalid, {},
               [&] { write_peft_adapter(adapter, base_, directory_.path() / "no" / "parent"); });
  const auto num_entries =
      std::distance(std::filesystem::directory_iterator(directory_.path()), {});
  EXPECT_EQ(num_entries, 1);
}

}  // namespace
}  // namespace paceline
