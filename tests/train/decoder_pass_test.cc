// The training pass: its forward has the bits of serving, its gradients are those of its loss.
#include "train/decoder_pass.h"
#include "train/weight_set.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "adapters/adapter.h"
#include "base/mapped_file.h"
#include "base/random.h"
#include "models/block_projections.h"
#include "models/pack_adapter.h"
#include "tests/expect_error.h"
#include "tests/kernels/chosen_isa.h"
#include "tests/kernels/op_inputs.h"
#include "tests/models/random_adapter.h"
#include "tests/models/test_model.h"
#include "tests/test_scale.h"
#include "train/lora_set.h"

namespace paceline::testing {
namespace {

DecoderTraining nothing_of(const Decoder& decoder) {
  return {.blocks = std::vector<BlockTraining>(decoder.blocks().size())};
}

// Positions without a loss are the last of each sequence.
TrainBatch batch_of(const std::vector<std::vector<int32_t>>& sequences) {
  TrainBatch batch;
  for (const auto& tokens : sequences) {
    batch.add(tokens, std::vector<float>(tokens.size() - 1, 1.0f));
  }
  return batch;
}

std::vector<RunOptions> all_runs() {
  std::vector<RunOptions> runs;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    runs.push_back({.backend = BackendKind::reference, .weight_dtype = dtype, .kv_dtype = dtype});
    for (const Isa isa : isas_to_run()) {
      runs.push_back({.isa = isa, .num_threads = 2, .weight_dtype = dtype, .kv_dtype = dtype});
    }
  }
  return runs;
}

class TrainForward : public ::testing::TestWithParam<std::string> {};

TEST_P(TrainForward, HasTheBitsOfServing) {
  const Golden golden = find_golden(GetParam());
  const auto& ids = golden.prompt_ids;
  for (const RunOptions& run : all_runs()) {
    TestModel model(golden.directory, run);
    SCOPED_TRACE(std::string(model.backend().name()));
    const DecoderTraining training = nothing_of(model.decoder());
    DecoderPass pass(model.backend(), model.threads(), model.decoder(), training,
                     {.kv_dtype = run.kv_dtype});
    // The same sequence twice, another between them: they see nothing of each other.
    const std::vector<int32_t> shifted(ids.begin() + 1, ids.end());
    const autodiff::Array states = pass.states(batch_of({ids, shifted, ids}));
    const auto rows = static_cast<int64_t>(ids.size()) - 1;
    const int64_t vocab = model.decoder().head().n;
    std::vector<float> expected = model.logits(std::span(ids).first(static_cast<size_t>(rows)));
    for (const int64_t first : {int64_t{0}, 2 * rows - 1}) {
      const Tensor x = states.tensor().slice(0, first, first + rows);
      OwnedTensor normed = allocate_tensor(model.backend().memory(), DType::f32, x.shape());
      OwnedTensor logits = allocate_tensor(model.backend().memory(), DType::f32, {rows, vocab});
      model.decoder().final_norm().forward(model.backend(), x, normed.view);
      model.decoder().logits(model.backend(), normed.view, logits.view);
      const std::span<const float> found(logits.view.elements<float>(), expected.size());
      EXPECT_TRUE(std::equal(found.begin(), found.end(), expected.begin()))
          << "from row " << first << " off by " << max_difference(found, expected);
    }
  }
}

TEST(TrainRefusals, AreByName) {
  TestModel mixture(read_golden("glm4_moe_groups").directory, {});
  expect_error(ErrorCode::unsupported, {"e_score_correction_bias", "LoRA"},
               [&] { WeightSet(mixture.backend(), mixture.decoder()); });
  TestModel sinks(read_golden("gpt_oss_plain").directory, {});
  expect_error(ErrorCode::unsupported, {"attention sinks", "LoRA"},
               [&] { WeightSet(sinks.backend(), sinks.decoder()); });
  TestModel hybrid(find_golden("nemotron_h_moe").directory, {});
  expect_error(ErrorCode::unsupported, {"e_score_correction_bias", "LoRA"},
               [&] { WeightSet(hybrid.backend(), hybrid.decoder()); });
  TestModel compressed(find_golden("youtu_plain").directory, {});
  expect_error(ErrorCode::unsupported, {"multi-head latent attention"},
               [&] { expect_trainable(compressed.decoder(), compressed.backend()); });
}

INSTANTIATE_TEST_SUITE_P(Models, TrainForward,
                         ::testing::ValuesIn(cases_to_run(golden_names(), 0, 8, 4)),
                         [](const auto& test) { return test.param; });

// One of each kind of layer with states that is trained, or all.
std::vector<std::string> hybrid_names() {
  if (is_full_scale()) return simple_hybrid_names();
  return {"qwen3_5_text",
          "qwen3_next_sparse_step",
          "olmo_hybrid_joined",
          "lfm2_moe_tied",
          "lfm3_tied",
          "bamba_groups",
          "nemotron_h_pattern",
          "granitemoehybrid_mamba_dense",
          "falcon_h1_multipliers",
          "nemotron_h_moe",
          "falcon_h1_norm_first",
          "mamba2_alone",
          "jamba_moe",
          "falcon_mamba_norms",
          "nemotron_h_latent"};
}

INSTANTIATE_TEST_SUITE_P(Hybrids, TrainForward,
                         ::testing::ValuesIn(cases_to_run(hybrid_names(), 0, 2)),
                         [](const auto& test) { return test.param; });

// LoRA of rank 3 on every projection of a model and its experts, with values of about `size`.
class LoraModel {
 public:
  LoraModel(const std::string& name, const RunOptions& run, float size)
      : golden(find_golden(name)), model(golden.directory, run) {
    for (size_t i = 0; i < model.decoder().blocks().size(); ++i) {
      BlockTraining& block = training.blocks.emplace_back();
      const FeedForward* const mlp = std::as_const(model.decoder()).blocks()[i].mlp();
      const Mixture* const mixture = mlp != nullptr ? mlp->mixture() : nullptr;
      if (mixture != nullptr) block.mixture.experts.resize(mixture->experts().size());
      const bool has_latent = mixture != nullptr && mixture->latent() != nullptr;
      LatentTraining& latent = block.mixture.latent;
      const std::map<BlockProduct, std::vector<LoraProjection>*> products = {
          {BlockProduct::qkv, &block.qkv.loras},
          {BlockProduct::output, &block.output.loras},
          {BlockProduct::scan_parts, &block.scan_parts.loras},
          {BlockProduct::scan_steps, &block.scan_steps.loras},
          {BlockProduct::to_latent, &latent.to.loras},
          {BlockProduct::from_latent, &latent.from.loras},
          {BlockProduct::gate_up, has_latent ? &latent.shared.gate_up.loras : &block.gate_up.loras},
          {BlockProduct::down, has_latent ? &latent.shared.down.loras : &block.down.loras}};
      for (const BlockProjection& part :
           distinct_projections(model.config(), static_cast<int64_t>(i))) {
        std::vector<LoraProjection>* projections = products.at(part.product);
        if (part.expert != kNoExpert) {
          ExpertTraining& expert = block.mixture.experts[static_cast<size_t>(part.expert)];
          const bool is_down = part.product == BlockProduct::down;
          projections = is_down ? &expert.down.loras : &expert.gate_up.loras;
        }
        projections->push_back(lora(part, run.weight_dtype, size));
        const int64_t layer = model.config().stored_layer(static_cast<int64_t>(i));
        modules.push_back(fmt::format("layers.{}.{}", layer, part.part));
      }
    }
  }

  LoraProjection lora(const BlockProjection& part, DType dtype, float size) {
    constexpr int64_t kRank = 3;
    matrices.push_back(std::make_unique<TrainedMatrix>("a", Extents{kRank, part.in_features}, dtype,
                                                       1.0f, model.backend()));
    matrices.push_back(std::make_unique<TrainedMatrix>("b", Extents{part.out_features, kRank},
                                                       dtype, 2.0f, model.backend(),
                                                       PackedOrder(part.order)));
    for (size_t k = matrices.size() - 2; k < matrices.size(); ++k) {
      auto* const values = matrices[k]->value().elements<float>();
      for (int64_t i = 0; i < matrices[k]->value().num_elements(); ++i) {
        const double draw = uniform_draw(k + 1, static_cast<uint64_t>(i));
        values[i] = size * static_cast<float>(2 * draw - 1);
      }
      matrices[k]->pack();
    }
    return {.first_column = part.first_column,
            .a = matrices[matrices.size() - 2].get(),
            .b = matrices.back().get()};
  }

  DecoderPass pass(const PassOptions& options) {
    return {model.backend(), model.threads(), model.decoder(), training, options};
  }

  double loss(const PassOptions& options, const TrainBatch& batch, const Dropout& dropout) {
    std::vector<float> losses;
    pass(options).run(batch, dropout, losses);
    double total = 0;
    size_t next = 0;
    for (const float weight : batch.weights) {
      if (weight != 0) total += double{weight} * double{losses[next++]};
    }
    return total;
  }

  Golden golden;
  TestModel model;
  std::vector<std::string> modules;
  std::vector<std::unique_ptr<TrainedMatrix>> matrices;  // two of each module
  DecoderTraining training;
};

// The trained matrices as an adapter's file would hold them.
Adapter adapter_of(const LoraModel& lora, DType dtype, Memory& memory) {
  const auto copy = [&](const TrainedMatrix& matrix) {
    OwnedTensor tensor = allocate_tensor(memory, dtype, matrix.value().shape());
    copy_elements(matrix.value(), tensor.view);
    return tensor;
  };
  std::vector<LoraPair> pairs;
  size_t next = 0;
  for (const std::string& module : lora.modules) {
    LoraPair& pair = pairs.emplace_back(LoraPair{.module = module});
    pair.a = copy(*lora.matrices[next++]);
    pair.scale = lora.matrices[next]->scale();
    pair.b = copy(*lora.matrices[next++]);
  }
  return Adapter("", std::move(pairs));
}

TEST_P(TrainForward, WithLoraHasTheBitsOfServingTheAdapter) {
  for (const RunOptions& run : all_runs()) {
    LoraModel lora(GetParam(), run, 0.1f);
    TestModel& model = lora.model;
    SCOPED_TRACE(std::string(model.backend().name()));
    Memory memory;
    const AdapterWeights weights =
        pack_adapter(adapter_of(lora, run.weight_dtype, memory), model.config(), model.backend());
    const auto& ids = lora.golden.prompt_ids;
    const auto rows = static_cast<int64_t>(ids.size()) - 1;
    const auto prompt = std::span(ids).first(static_cast<size_t>(rows));
    const std::vector<float> expected = model.logits(prompt, 17, &weights);
    EXPECT_GT(max_difference(expected, model.logits(prompt)), 1e-3f);
    const autodiff::Array states =
        lora.pass({.kv_dtype = run.kv_dtype}).states(batch_of({lora.golden.prompt_ids}));
    const Tensor x = states.tensor().slice(0, 0, rows);
    OwnedTensor normed = allocate_tensor(model.backend().memory(), DType::f32, x.shape());
    OwnedTensor logits =
        allocate_tensor(model.backend().memory(), DType::f32, {rows, model.decoder().head().n});
    model.decoder().final_norm().forward(model.backend(), x, normed.view);
    model.decoder().logits(model.backend(), normed.view, logits.view);
    const std::span<const float> found(logits.view.elements<float>(), expected.size());
    EXPECT_TRUE(std::equal(found.begin(), found.end(), expected.begin()))
        << "off by " << max_difference(found, expected);
  }
}

TEST(TrainCheckpoints, AreMadeOfTheFirstBlocksWhereActivationsTakeMoreThanAllowed) {
  LoraModel lora("llama_bias", {.backend = BackendKind::reference}, 0.05f);
  const DecoderConfig& config = lora.model.decoder().config();
  const size_t before_last = lora.model.decoder().blocks().size() - 1;
  const int64_t least = 4 * 6 * config.hidden_size;  // bytes of a row
  ASSERT_GE(before_last, 1u);
  const auto checkpoints = [&](int64_t kept_bytes, int64_t rows) {
    return lora.pass({.kept_bytes = kept_bytes}).num_checkpoints(rows);
  };
  EXPECT_EQ(checkpoints(0, 1), before_last);
  EXPECT_EQ(checkpoints(100 * least, 100), before_last);
  EXPECT_EQ(checkpoints(100 * least, 1), 0u);
  EXPECT_EQ(checkpoints(kKeptActivationBytes, 1000), 0u);
  EXPECT_EQ(checkpoints(kKeptActivationBytes, kKeptActivationBytes / least), before_last);
  EXPECT_EQ(checkpoints(kAllActivations, int64_t{1} << 40), 0u);
}

class TrainGradient : public ::testing::TestWithParam<std::string> {};

// Against central differences of the loss, in the direction of the gradient of each matrix: its
// slope there is the gradient's length.
TEST_P(TrainGradient, IsTheSlopeOfTheLoss) {
  LoraModel lora(GetParam(), {.backend = BackendKind::reference}, 0.05f);
  const PassOptions options{.kv_dtype = DType::f32};
  const bool has_dropout = GetParam() == "llama_bias" || GetParam() == "olmoe_plain";
  const Dropout dropout{.rate = has_dropout ? 0.3 : 0.0, .seed = 4, .step = 2};
  TrainBatch batch = batch_of({lora.golden.prompt_ids, {5, 9, 2, 7, 11, 3}});
  for (size_t i = 0; i < batch.weights.size(); ++i) {
    batch.weights[i] = i % 3 == 1 ? 0.0f : 0.25f;
  }
  std::vector<float> losses;
  lora.pass(options).run(batch, dropout, losses);
  for (const auto& matrix : lora.matrices) matrix->complete_gradient();
  // A loss with dropout adds to the gradients.
  std::vector<std::vector<float>> gradients;
  for (const auto& matrix : lora.matrices) {
    const auto* const begin = matrix->gradient().elements<float>();
    gradients.emplace_back(begin, begin + matrix->gradient().num_elements());
  }
  // A sanitizer sees the same code in every matrix.
  const size_t step_of_matrices = is_full_scale() ? 1 : runs_fewer_cases() ? 9 : 5;
  for (size_t k = 0; k < lora.matrices.size(); ++k) {
    const bool is_experts = lora.modules[k / 2].find(".experts.") != std::string::npos;
    if (is_experts && k / 2 % 7 != 0) continue;              // there are many
    if (!is_experts && k % step_of_matrices != 0) continue;  // goldens hold every gradient
    TrainedMatrix& matrix = *lora.matrices[k];
    auto* const values = matrix.value().elements<float>();
    const std::vector<float>& gradient = gradients[k];
    const auto count = static_cast<size_t>(matrix.value().num_elements());
    double square = 0;
    for (size_t i = 0; i < count; ++i) square += double{gradient[i]} * double{gradient[i]};
    const double length = std::sqrt(square) * double{matrix.scale()};  // by the value
    if (is_experts && square == 0) continue;                           // it has no rows
    ASSERT_GT(length, 1e-5) << k;
    const std::vector<float> before(values, values + count);
    const double step = 3e-3;
    const auto loss_at = [&](double distance) {
      for (size_t i = 0; i < count; ++i) {
        values[i] =
            before[i] + static_cast<float>(distance * double{gradient[i]} / std::sqrt(square));
      }
      matrix.pack();
      return lora.loss(options, batch, dropout);
    };
    const double slope = (loss_at(step) - loss_at(-step)) / (2 * step);
    loss_at(0);
    EXPECT_NEAR(slope, length, 2e-3 + 0.01 * length) << "matrix " << k;
  }
}

TEST_P(TrainGradient, ThreadsCheckpointsAndMicroBatchesChangeNoBit) {
  std::vector<std::vector<int32_t>> sequences;
  const auto gradients = [&](int threads, int64_t kept_bytes, bool together) {
    LoraModel lora(
        GetParam(),
        {.isa = isas_to_run().back(), .num_threads = threads, .weight_dtype = DType::bf16}, 0.05f);
    DecoderPass pass = lora.pass({.kv_dtype = DType::bf16, .kept_bytes = kept_bytes});
    TrainBatch batch;
    std::vector<float> losses;
    int64_t first_row = 0;
    for (int32_t i = 0; i < 3; ++i) {
      std::vector<int32_t> tokens = lora.golden.prompt_ids;
      tokens.back() = i;
      batch.add(tokens, std::vector<float>(tokens.size() - 1, 0.125f));
      batch.pad_to_multiple(kGradientRows);
      if (together && i < 2) continue;
      const Dropout dropout{.rate = 0.1, .seed = 1, .step = 3, .first_row = first_row};
      pass.run(batch, dropout, losses);
      first_row += batch.num_rows();
      batch = {};
    }
    std::vector<float> all = losses;
    for (const auto& matrix : lora.matrices) {
      matrix->complete_gradient();
      const auto* const begin = matrix->gradient().elements<float>();
      all.insert(all.end(), begin, begin + matrix->gradient().num_elements());
    }
    return all;
  };
  const std::vector<float> one = gradients(1, 0, true);
  EXPECT_EQ(gradients(2, 0, true), one) << "threads";
  EXPECT_EQ(gradients(2, kAllActivations, true), one) << "checkpoints";
  EXPECT_EQ(gradients(1, 0, false), one) << "micro-batches";
}

// More sequences than have states at a time.
TEST(TrainStates, OfManySequencesAreTheirOwn) {
  constexpr size_t kCopies = 37;
  const auto run = [](size_t copies) {
    LoraModel lora("qwen3_5_text", {.isa = isas_to_run().back(), .num_threads = 2}, 0.05f);
    const std::vector<int32_t> tokens(lora.golden.prompt_ids.begin(),
                                      lora.golden.prompt_ids.begin() + 20);
    std::vector<float> losses;
    lora.pass({.kv_dtype = DType::f32})
        .run(batch_of(std::vector<std::vector<int32_t>>(copies, tokens)), {}, losses);
    return std::pair(losses, to_vector(lora.matrices.front()->gradient()));
  };
  const auto [one, gradient] = run(1);
  const auto [all, sum] = run(kCopies);
  ASSERT_EQ(all.size(), kCopies * one.size());
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], one[i % one.size()]) << i;
  const float largest = *std::ranges::max_element(gradient);
  for (size_t i = 0; i < sum.size(); ++i) {
    EXPECT_NEAR(sum[i], kCopies * gradient[i], 1e-4f * kCopies * largest) << i;
  }
}

TEST(Dropout, DropsTheRateAndKeepsTheMean) {
  Memory memory;
  const auto backend = make_reference_backend();
  OwnedTensor x = allocate_tensor(memory, DType::f32, {100, 101});
  OwnedTensor out = allocate_tensor(memory, DType::f32, {100, 101});
  for (int64_t i = 0; i < 10100; ++i) x.view.elements<float>()[i] = 1.0f;
  const Dropout dropout{.rate = 0.25, .seed = 1, .step = 1};
  drop_elements(backend->gradients(), dropout, 7, {}, x.view, out.view);
  const std::span<const float> values(out.view.elements<float>(), 10100);
  const auto dropped = std::count(values.begin(), values.end(), 0.0f);
  EXPECT_NEAR(static_cast<double>(dropped) / 10100, 0.25, 0.02);
  EXPECT_EQ(*std::max_element(values.begin(), values.end()), 1.0f / 0.75f);
  // Another step, another module, other rows: other elements.
  const std::vector<float> before(values.begin(), values.end());
  const auto is_same = [&](const Dropout& other, uint64_t module) {
    drop_elements(backend->gradients(), other, module, {}, x.view, out.view);
    return std::equal(before.begin(), before.end(), values.begin());
  };
  EXPECT_TRUE(is_same(dropout, 7));
  EXPECT_FALSE(is_same(dropout, 8));
  EXPECT_FALSE(is_same({.rate = 0.25, .seed = 2, .step = 1}, 7));
  EXPECT_FALSE(is_same({.rate = 0.25, .seed = 1, .step = 2}, 7));
  EXPECT_FALSE(is_same({.rate = 0.25, .seed = 1, .step = 1, .first_row = 1}, 7));
}

INSTANTIATE_TEST_SUITE_P(
    Models, TrainGradient,
    ::testing::ValuesIn(cases_to_run<std::string>({"llama_bias",
                                                   "gemma2_odd",
                                                   "gemma3_text_pattern2",
                                                   "qwen3_tied",
                                                   "mistral_window",
                                                   "olmo2_bias",
                                                   "granite_bias",
                                                   "phi3_partial_tied",
                                                   "glm4_bias",
                                                   "cohere2_bias",
                                                   "stablelm_parallel",
                                                   "starcoder2_window_tied",
                                                   "ministral3_growth",
                                                   "qwen3_moe_tied",
                                                   "qwen2_moe_sparse_step",
                                                   "olmoe_plain",
                                                   "mixtral_plain",
                                                   "glm4_moe_groups",
                                                   "qwen3_5_text",
                                                   "qwen3_5_tied_pattern",
                                                   "lfm2_bias",
                                                   "lfm2_moe_tied",
                                                   "bamba_groups",
                                                   "granitemoehybrid_mamba_dense",
                                                   "lfm3_tied",
                                                   "falcon_h1_plain",
                                                   "falcon_h1_multipliers",
                                                   "falcon_h1_norm_first",
                                                   "nemotron_h_pattern",
                                                   "nemotron_h_moe",
                                                   "mamba2_alone",
                                                   "jamba_dense",
                                                   "mamba_plain",
                                                   "nemotron_h_latent"},
                                                  0, 6, 2)),
    [](const auto& test) { return test.param; });

}  // namespace
}  // namespace paceline::testing
