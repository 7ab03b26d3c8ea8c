// Draws on a GPU are the CPU sampler's on the same logits, bit for bit.
#include "kernels/row_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cuda/code/adjust_rows.h"
#include "kernels/cuda/launch.h"
#include "tests/cuda/every_order.h"
#include "tests/cuda_backend/drawn_rows.h"
#include "tests/cuda_backend/emulated_backend.h"
#include "tests/test_scale.h"

namespace paceline::cuda {
namespace {

using paceline::testing::DrawnRows;
using paceline::testing::has_same_bits;
using paceline::testing::RandomDraw;
using paceline::testing::RandomDraws;

void expect_same_draws(EmulatedBackend& cuda, const std::vector<RandomDraw>& rows, int64_t part) {
  DrawnRows draws(*cuda, rows);
  const std::vector<Sample> found = draws.on_device(part), expected = draws.on_cpu();
  for (size_t i = 0; i < rows.size(); ++i) {
    ASSERT_TRUE(has_same_bits(found[i], expected[i]))
        << "row " << i << " of width " << rows[i].logits.size() << ": token " << found[i].id
        << " instead of " << expected[i].id;
  }
}

TEST(CudaRowSampler, RandomRowsAreDrawnAsOnTheCpu) {
  EmulatedBackend cuda({.num_threads = 2});
  const int num_batches = scaled(60, 6000);
  for (int batch = 0; batch < num_batches; ++batch) {
    SCOPED_TRACE(::testing::Message() << "batch " << batch);
    RandomDraws random(static_cast<uint64_t>(batch));
    const size_t width = random.any_width();
    std::vector<RandomDraw> rows;
    for (int i = 0; i < 16; ++i) rows.push_back(random.next(width));
    ASSERT_NO_FATAL_FAILURE(expect_same_draws(cuda, rows, batch % 3 == 0 ? 5 : 16));
  }
}

TEST(CudaRowSampler, LargeVocabulariesToo) {
  EmulatedBackend cuda({.num_threads = 2});
  const int num_batches = scaled(4, 200);
  for (int batch = 0; batch < num_batches; ++batch) {
    SCOPED_TRACE(::testing::Message() << "batch " << batch);
    RandomDraws random(static_cast<uint64_t>(1000 + batch));
    std::vector<RandomDraw> rows;
    for (int i = 0; i < 4; ++i) rows.push_back(random.next(128'256));
    ASSERT_NO_FATAL_FAILURE(expect_same_draws(cuda, rows, 4));
  }
}

// Rows that take each way through the kernels: a list of few tokens and rounds over many, filters
// one after another in both orders, masks and penalties, the likeliest of few and of many.
std::vector<std::byte> draw_all_ways(CudaDevice& device) {
  constexpr int64_t kWidth = 1300;
  ThreadPool threads(1);
  const auto backend = make_cuda_backend(device, threads);
  RandomDraws random(1);
  std::vector<RandomDraw> rows;
  for (int i = 0; i < 8; ++i) {
    RandomDraw row;
    row.options.temperature = i == 7 ? 0.0f : 0.9f;
    row.options.seed = static_cast<uint64_t>(i);
    row.options.order = i % 2 == 0 ? SamplerOrder::standard : SamplerOrder::mlx;
    row.options.num_top_logprobs = 5;
    for (int64_t k = 0; k < kWidth; ++k) {
      row.logits.push_back(i < 3 ? 2.0f : 0.01f * static_cast<float>(k * 37 % 1301));
    }
    if (i < 6) row.options.top_p = 0.9f;
    if (i < 6) row.options.top_k = i < 3 ? 1200 : 30;
    if (i % 3 == 0) row.options.typical_p = 0.7f;
    if (i == 4) row.options.top_n_sigma = 1.5f;
    if (i == 5) row.options.min_p = 0.1f;
    if (i == 4 || i == 6) {
      row.options.repetition_penalty = 1.5f;
      row.options.presence_penalty = 0.5f;
      row.options.logit_bias = {{700, 0.25f}, {1299, 1.0f}, {5, -3.0f}};
      row.options.mask = std::make_shared<const TokenMask>(
          std::vector<int32_t>{}, std::vector<std::vector<int32_t>>{{700}, {701}, {40}});
      for (const int32_t id : {700, 701, 1299, 5, 700}) row.history.add_output(id);
    }
    if (i == 7) {  // the largest only when it is penalised first
      row.options.repetition_penalty = 1.5f;
      row.options.logit_bias = {{0, 0.5f}, {1299, 6.0f}};
      for (const int32_t id : {700, 701, 1299}) row.history.add_output(id);
    }
    rows.push_back(row);
  }
  const OwnedTensor logits = allocate_tensor(backend->memory(), DType::f32, {8, kWidth});
  RowDraws draws;
  for (int64_t i = 0; i < 8; ++i) {
    const RandomDraw& row = rows[static_cast<size_t>(i)];
    backend->write(row.logits, logits.view.slice(0, i, i + 1));
    draws.add({.options = row.options, .history = row.history, .wants_logprob = true}, kWidth);
  }
  std::vector<Sample> samples(rows.size());
  backend->row_sampler()->begin(draws.draws(), kWidth);
  backend->row_sampler()->draw(0, logits.view);
  backend->row_sampler()->finish(samples);
  std::vector<std::byte> bytes;
  const auto append = [&bytes](const auto& value) {
    const auto part = std::as_bytes(std::span(&value, 1));
    bytes.insert(bytes.end(), part.begin(), part.end());
  };
  for (const Sample& sample : samples) {
    append(sample.id);
    append(sample.status);
    append(sample.logprob);
    for (const TokenLogprob& one : sample.top_logprobs) append(one);
  }
  return bytes;
}

TEST(CudaRowSampler, DrawsAreTheSameInEveryOrderOfThreads) {
  EXPECT_FALSE(cuda::testing::same_in_every_order(draw_all_ways).empty());
  EXPECT_THAT(cuda::testing::needless_syncs(draw_all_ways), ::testing::IsEmpty());
}

// Histories on the device: a drawn token is counted, or added as a new one.
std::vector<std::byte> count_tokens(CudaDevice& device) {
  constexpr size_t kRoom = 700;
  std::vector<TokenCount> history(kRoom);
  for (size_t i = 0; i < kRoom; ++i) history[i] = {.id = static_cast<int32_t>(i)};
  std::vector<DrawRow> rows(4);
  std::vector<DrawnToken> drawn = {{.id = 299}, {.id = 400}, {.id = -1}, {.id = 3}};
  for (size_t i = 0; i < 3; ++i) {
    rows[i].history = cuda::testing::to_device(device, history);
    rows[i].num_history = 300;
  }
  DrawRow* const on_device = cuda::testing::to_device(device, rows);
  const DrawnToken* const tokens = cuda::testing::to_device(device, drawn);
  launch<CountTokens>(device, {4}, {on_device, tokens});
  launch<CountTokens>(device, {4}, {on_device, tokens});
  const std::vector<DrawRow> after = cuda::testing::from_device(device, on_device, 4);
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < 3; ++i) {
    const auto found = cuda::testing::from_device(device, after[i].history, kRoom);
    const bool is_new = i == 1;
    EXPECT_EQ(after[i].num_history, is_new ? 301u : 300u);
    EXPECT_EQ(found[299].in_output, i == 0 ? 2 : 0);
    EXPECT_EQ(found[300].id, is_new ? 400 : 300);
    EXPECT_EQ(found[300].in_output, is_new ? 2 : 0);
    const auto part = std::as_bytes(std::span(found));
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  return bytes;
}

TEST(CudaRowSampler, DrawnTokensAreCountedOnTheDevice) {
  EXPECT_FALSE(cuda::testing::same_in_every_order(count_tokens).empty());
}

}  // namespace
}  // namespace paceline::cuda
