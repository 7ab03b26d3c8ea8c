// The forward of training has the bits of serving with every format of stored weights and every
// type of activations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/option_names.h"
#include "kernels/backend.h"
#include "load/loaded_model.h"
#include "models/decoder.h"
#include "runner/model_runner.h"
#include "tests/kernels/chosen_isa.h"
#include "tests/llm/stored_formats.h"
#include "train/decoder_pass.h"

namespace paceline::testing {
namespace {

// The last is only a target. More rows than some kernels compute together.
std::vector<int32_t> training_ids() {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 36; ++i) ids.push_back(i * 53 % 256);
  return ids;
}

// Logits of every row, as the engine's runner computes them.
std::vector<float> served_logits(LoadedModel& model, const std::vector<int32_t>& tokens) {
  constexpr int64_t kBlockSize = 16;
  const auto rows = static_cast<int64_t>(tokens.size());
  std::vector<int32_t> blocks(static_cast<size_t>(rows / kBlockSize + 1));
  std::iota(blocks.begin(), blocks.end(), 0);
  const std::vector<int64_t> num_blocks = {std::ssize(blocks)};
  ModelRunner runner(
      *model.decoder, *model.backend,
      KvStorage(model.decoder->kv_layers(num_blocks), kBlockSize, model.kv_dtype, model.memory),
      {.max_rows = rows, .max_logits_rows = rows});
  Batch batch;
  batch.tokens = tokens;
  batch.positions.resize(tokens.size());
  std::iota(batch.positions.begin(), batch.positions.end(), 0);
  batch.output_rows = batch.positions;
  GroupBatch& group = batch.groups.emplace_back();
  group.slots.resize(tokens.size());
  std::iota(group.slots.begin(), group.slots.end(), 0);
  group.slices.push_back(
      {.first_row = 0, .num_rows = rows, .first_position = 0, .block_table = blocks});
  runner.run(batch, {});
  const std::span<const float> logits = runner.logits(0, rows);
  return {logits.begin(), logits.end()};
}

// The log-sum-exp of a row less the target's logit.
double loss_of(std::span<const float> logits, int32_t target) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - largest);
  return std::log(sum) + largest - double{logits[static_cast<size_t>(target)]};
}

class TrainingFormats : public ::testing::TestWithParam<StoredFormat> {
 protected:
  static void expect_served_bits(Activations activations) {
    SCOPED_TRACE(option_name(activations));
    const auto model = load_model({.model = stored_model(GetParam()),
                                   .activations = activations,
                                   .max_model_len = 160,
                                   .num_threads = 2});
    Backend& backend = *model->backend;
    const Decoder& decoder = *model->decoder;
    EXPECT_EQ(model->is_quantised, GetParam().has_codes() && activations != Activations::plain);
    const std::vector<int32_t> ids = training_ids();
    const std::vector<float> expected = served_logits(*model, {ids.begin(), ids.end() - 1});

    const DecoderTraining training{.blocks = std::vector<BlockTraining>(decoder.blocks().size())};
    DecoderPass pass(backend, *model->threads, decoder, training, {.kv_dtype = model->kv_dtype});
    TrainBatch batch;
    batch.add(ids, std::vector<float>(ids.size() - 1, 1.0f));
    const autodiff::Array states = pass.states(batch);
    const Tensor& x = states.tensor();
    const int64_t vocab = decoder.head().n;
    OwnedTensor normed = allocate_tensor(backend.memory(), DType::f32, x.shape());
    OwnedTensor logits = allocate_tensor(backend.memory(), DType::f32, {x.shape()[0], vocab});
    decoder.final_norm().forward(backend, x, normed.view);
    decoder.logits(backend, normed.view, logits.view);
    const auto* const found = logits.view.elements<float>();
    ASSERT_EQ(static_cast<size_t>(logits.view.num_elements()), expected.size());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), found));

    std::vector<float> losses;
    pass.evaluate(batch, losses);
    ASSERT_EQ(losses.size(), ids.size() - 1);
    for (size_t row = 0; row < losses.size(); ++row) {
      const auto width = static_cast<size_t>(vocab);
      const auto row_logits = std::span(expected).subspan(row * width, width);
      EXPECT_NEAR(losses[row], loss_of(row_logits, ids[row + 1]), 2e-5) << "row " << row;
    }
  }
};

TEST_P(TrainingFormats, HaveTheBitsOfServing) {
  for (const Isa isa : isas_to_run()) {
    SCOPED_TRACE(std::string(isa_name(isa)));
    const ChosenIsa chosen(isa);
    expect_served_bits(Activations::automatic);
  }
  if (!GetParam().has_codes()) return;
  for (const auto activations : {Activations::int8, Activations::bfloat16, Activations::plain}) {
    expect_served_bits(activations);
  }
}

INSTANTIATE_TEST_SUITE_P(all, TrainingFormats, ::testing::ValuesIn(formats_to_run()),
                         [](const auto& format) { return format.param.name; });

}  // namespace
}  // namespace paceline::testing
