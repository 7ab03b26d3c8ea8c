// Full fine-tuning: its pass has the bits of serving the trained weights, its gradients are those
// of the loss.
#include "train/weight_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/random.h"
#include "tests/kernels/chosen_isa.h"
#include "tests/models/test_model.h"
#include "tests/test_scale.h"
#include "train/decoder_pass.h"

namespace paceline::testing {
namespace {

TrainBatch weighted_batch(const std::vector<std::vector<int32_t>>& sequences, float weight) {
  TrainBatch batch;
  for (const auto& tokens : sequences) {
    batch.add(tokens, std::vector<float>(tokens.size() - 1, weight));
  }
  return batch;
}

std::span<float> floats(const Tensor& tensor) {
  return {tensor.elements<float>(), static_cast<size_t>(tensor.num_elements())};
}

// A test's model whose weights are trained.
class FullModel {
 public:
  FullModel(const std::string& name, const RunOptions& run)
      : golden(find_golden(name)),
        model(golden.directory, run),
        weights(model.backend(), model.decoder()) {}

  // Another value for every element.
  void change_values(float size) {
    uint64_t seed = 1;
    for (const TrainedParameter* const one : weights.parameters()) {
      uint64_t i = 0;
      for (float& value : floats(one->value())) {
        value += size * static_cast<float>(2 * uniform_draw(seed, i++) - 1);
      }
      ++seed;
    }
    weights.pack(model.backend());
  }

  DecoderPass pass(const PassOptions& options) {
    return {model.backend(), model.threads(), model.decoder(), weights.training(), options};
  }

  std::vector<float> logits_of_pass(DType kv_dtype) {
    const autodiff::Array states =
        pass({.kv_dtype = kv_dtype}).states(weighted_batch({golden.prompt_ids}, 1.0f));
    const Tensor& x = states.tensor();
    const int64_t vocab = model.decoder().head().n;
    OwnedTensor normed = allocate_tensor(model.backend().memory(), DType::f32, x.shape());
    OwnedTensor out = allocate_tensor(model.backend().memory(), DType::f32, {x.size(0), vocab});
    model.decoder().final_norm().forward(model.backend(), x, normed.view);
    model.decoder().logits(model.backend(), normed.view, out.view);
    const auto all = floats(out.view);
    return {all.begin(), all.end()};
  }

  std::vector<float> logits_of_serving() {
    return model.logits(std::span(golden.prompt_ids).first(golden.prompt_ids.size() - 1));
  }

  double loss(const TrainBatch& batch) {
    std::vector<float> losses;
    pass({.kv_dtype = DType::f32}).evaluate(batch, losses);
    double total = 0;
    size_t next = 0;
    for (const float weight : batch.weights) {
      if (weight != 0) total += double{weight} * double{losses[next++]};
    }
    return total;
  }

  Golden golden;
  TestModel model;
  WeightSet weights;
};

// Of models whose weights can all be trained: the biases of gpt-oss's experts, sinks, and those
// that experts are chosen by, have no gradients.
std::vector<std::string> full_golden_names(const std::string& kind = "models") {
  std::vector<std::string> names = golden_names(kind);
  std::erase_if(names, [](const std::string& name) {
    constexpr auto kBiased = std::to_array<std::string_view>(
        {"gpt_oss", "glm4_moe", "sarvam_moe", "exaone_moe", "granite_swa", "granitemoe_swa",
         "solar_open", "dots1", "minimax_m2", "lfm2_moe_tied", "nemotron_h_moe",
         "nemotron_h_latent", "kimi_linear", "ernie4_5_moe"});
    return has_untrained_weights(name) ||
           std::ranges::any_of(kBiased, [&](auto family) { return name.starts_with(family); });
  });
  return names;
}

class FullForward : public ::testing::TestWithParam<std::string> {};

TEST_P(FullForward, HasTheBitsOfServingTheTrainedWeights) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const Isa isa : isas_to_run()) {
      FullModel full(GetParam(),
                     {.isa = isa, .num_threads = 2, .weight_dtype = dtype, .kv_dtype = dtype});
      SCOPED_TRACE(std::string(full.model.backend().name()));
      const std::vector<float> loaded = full.logits_of_serving();
      full.weights.pack(full.model.backend());
      const bool is_same = same_bits(full.logits_of_serving(), loaded);
      EXPECT_TRUE(dtype == DType::bf16 || is_same) << "float32 values are what was loaded";
      full.change_values(0.02f);
      const std::vector<float> trained = full.logits_of_serving();
      EXPECT_GT(max_difference(trained, loaded), 1e-3f);
      EXPECT_TRUE(same_bits(full.logits_of_pass(dtype), trained));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, FullForward,
                         ::testing::ValuesIn(cases_to_run(full_golden_names(), 2, 8, 2)),
                         [](const auto& test) { return test.param; });

INSTANTIATE_TEST_SUITE_P(Hybrids, FullForward,
                         ::testing::ValuesIn(cases_to_run(full_golden_names("hybrids"), 1, 6, 3)),
                         [](const auto& test) { return test.param; });

class FullGradient : public ::testing::TestWithParam<std::string> {};

// Against central differences of the loss, in the direction of the gradient of each parameter: its
// slope there is the gradient's length.
TEST_P(FullGradient, IsTheSlopeOfTheLoss) {
  FullModel full(GetParam(), {.backend = BackendKind::reference});
  full.change_values(0.02f);  // biases and norms are other than what models begin with
  TrainBatch batch = weighted_batch({full.golden.prompt_ids, {5, 9, 2, 7, 11, 3}}, 0.25f);
  for (size_t i = 1; i < batch.weights.size(); i += 3) batch.weights[i] = 0.0f;
  full.weights.clear_gradients();
  std::vector<float> losses;
  full.pass({.kv_dtype = DType::f32}).run(batch, {}, losses);
  full.weights.complete_gradients();
  int64_t num_experts = 0;  // some of the many are tested
  for (const TrainedParameter* const one : cases_to_run(full.weights.parameters(), 0, 5)) {
    SCOPED_TRACE(one->path());
    const auto values = floats(one->value());
    const std::vector<float> before(values.begin(), values.end());
    const auto gradient = floats(one->gradient());
    double square = 0;
    for (const float each : gradient) square += double{each} * double{each};
    const double length = std::sqrt(square);
    if (square == 0 && one->path().find(".experts.") != std::string::npos) continue;  // no rows
    if (one->path().find(".experts.") != std::string::npos && num_experts++ % 7 != 0) continue;
    // Attention isn't changed by adding to all keys what doesn't depend on the position, or little.
    if (one->path().ends_with("k_proj.bias") && length < 1e-5) continue;
    ASSERT_GT(length, 1e-5);
    const double step = std::min(2e-3, 0.1 / length);  // where it is steep, the loss curves
    const auto loss_at = [&](double distance) {
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = before[i] + static_cast<float>(distance * double{gradient[i]} / length);
      }
      full.weights.pack(full.model.backend());
      return full.loss(batch);
    };
    const double slope = (loss_at(step) - loss_at(-step)) / (2 * step);
    loss_at(0);
    EXPECT_NEAR(slope, length, 2e-3 + 0.01 * length);
  }
}

TEST_P(FullGradient, ThreadsCheckpointsAndMicroBatchesChangeNoBit) {
  const auto gradients = [&](int threads, int64_t kept_bytes, bool together) {
    FullModel full(
        GetParam(),
        {.isa = isas_to_run().back(), .num_threads = threads, .weight_dtype = DType::bf16});
    DecoderPass pass = full.pass({.kv_dtype = DType::bf16, .kept_bytes = kept_bytes});
    full.weights.clear_gradients();
    TrainBatch batch;
    std::vector<float> all;
    for (int32_t i = 0; i < 3; ++i) {
      std::vector<int32_t> tokens = full.golden.prompt_ids;
      tokens.back() = i;
      std::vector<float> weights(tokens.size() - 1, 0.125f);
      weights[0] = weights[static_cast<size_t>(i) + 1] = 0.0f;
      batch.add(tokens, weights);
      batch.pad_to_multiple(kGradientRows);
      if (together && i < 2) continue;
      pass.run(batch, {}, all);
      batch = {};
    }
    full.weights.complete_gradients();
    for (const TrainedParameter* const one : full.weights.parameters()) {
      const auto gradient = floats(one->gradient());
      all.insert(all.end(), gradient.begin(), gradient.end());
    }
    return all;
  };
  const std::vector<float> one = gradients(1, 0, true);
  EXPECT_EQ(gradients(2, 0, true), one) << "threads";
  EXPECT_EQ(gradients(2, kAllActivations, true), one) << "checkpoints";
  EXPECT_EQ(gradients(1, 0, false), one) << "micro-batches";
}

INSTANTIATE_TEST_SUITE_P(Models, FullGradient,
                         ::testing::Values("llama_bias", "gemma2_odd", "gemma3_text_pattern2",
                                           "qwen3_tied", "mistral_window", "olmoe_plain",
                                           "qwen2_moe_sparse_step", "qwen3_5_text", "lfm3_bias",
                                           "falcon_h1_multipliers", "granitemoehybrid_mamba_dense"),
                         [](const auto& test) { return test.param; });

TEST(WeightSet, HasEveryParameterOfTheModelOnce) {
  std::vector<std::string> names = full_golden_names();
  for (const std::string& name : full_golden_names("hybrids")) names.push_back(name);
  for (const std::string& name : names) {
    FullModel full(name, {});
    EXPECT_EQ(full.weights.num_parameters(), full.model.decoder().num_parameters()) << name;
    const auto& all = full.weights.parameters();
    for (size_t i = 1; i < all.size(); ++i) EXPECT_LT(all[i - 1]->path(), all[i]->path());
  }
}

TEST(WeightSet, DrawsAreAFunctionOfTheSeed) {
  FullModel full("qwen3_tied", {});
  const auto draw = [&](uint64_t seed) {
    full.weights.draw(full.model.backend(), seed);
    return full.logits_of_serving();
  };
  const auto values_of = [&](std::string_view path) {
    for (const TrainedParameter* const one : full.weights.parameters()) {
      if (one->path() == path) return floats(one->value());
    }
    return std::span<float>();
  };
  const std::vector<float> first = draw(7);
  EXPECT_FALSE(same_bits(draw(8), first));
  EXPECT_TRUE(same_bits(draw(7), first));
  const auto deviation = [](std::span<const float> values) {
    double square = 0;
    for (const float one : values) square += double{one} * double{one};
    return std::sqrt(square / static_cast<double>(values.size()));
  };
  const double hidden = static_cast<double>(full.model.config().hidden_size);
  const double expected = 0.5 / std::sqrt(hidden);
  EXPECT_NEAR(deviation(values_of("layers.0.mlp.up_proj.weight")), expected, 0.1 * expected);
  EXPECT_NEAR(deviation(values_of("embed_tokens.weight")), 0.02, 0.002);
  EXPECT_EQ(deviation(values_of("layers.1.mlp.down_proj.weight")), 0.0);
  EXPECT_EQ(deviation(values_of("layers.0.self_attn.o_proj.weight")), 0.0);
  EXPECT_EQ(values_of("norm.weight")[0], 1.0f);
}

}  // namespace
}  // namespace paceline::testing
