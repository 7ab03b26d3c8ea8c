// Continuous batching by the caller has the bits of the engine, however it cuts and mixes.
#include "paceline/batch_context.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "paceline/llm.h"
#include "tests/expect_error.h"
#include "tests/source_path.h"

namespace paceline {
namespace {

LoadOptions golden_options(const std::string& name) {
  return {.model = source_path("tests/goldens/" + name),
          .block_size = 4,
          .max_num_seqs = 8,
          .num_threads = 1};
}

// Global attention; windows beside it; layers with states.
const std::string kModels[] = {"models/qwen3_tied", "models/gemma3_text_pattern2",
                               "hybrids/qwen3_5_text", "hybrids/lfm2_tied"};

std::vector<int32_t> ids_of(int seed, size_t count) {
  std::vector<int32_t> ids(count);
  for (size_t i = 0; i < count; ++i) {
    ids[i] = static_cast<int32_t>((static_cast<size_t>(seed) * 57 + i * i * 3 + i * 41) % 256);
  }
  return ids;
}

std::vector<float> last_row(BatchContext& context, BatchContext::SequenceId sequence,
                            const std::vector<int32_t>& ids, int64_t chunk) {
  std::vector<float> logits(static_cast<size_t>(context.vocab_size()));
  const size_t last = ids.size() - 1;
  context.prefill(sequence, ids, chunk, {&last, 1}, logits);
  return logits;
}

int32_t best(std::span<const float> row) {
  return static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

TEST(BatchContext, AGreedyLoopOverABatchHasTheTokensOfTheEngine) {
  constexpr int kSequences = 5;
  constexpr int64_t kTokens = 20;
  for (const std::string& name : kModels) {
    LLM llm = LLM::load(golden_options(name));
    BatchContext context = BatchContext::load(golden_options(name), 400);
    const auto vocab = static_cast<size_t>(context.vocab_size());
    std::vector<BatchContext::Entry> entries;
    std::vector<std::vector<int32_t>> found(kSequences);
    for (int i = 0; i < kSequences; ++i) {
      const auto prompt = ids_of(i, static_cast<size_t>(3 + 4 * i));
      const auto sequence = context.create();
      entries.push_back({sequence, best(last_row(context, sequence, prompt, i))});
      found[static_cast<size_t>(i)].push_back(entries.back().token);
    }
    std::vector<float> logits(kSequences * vocab);
    for (int64_t step = 1; step < kTokens; ++step) {
      context.decode_batch(entries, logits);
      for (size_t i = 0; i < kSequences; ++i) {
        entries[i].token = best(std::span(logits).subspan(i * vocab, vocab));
        found[i].push_back(entries[i].token);
      }
    }
    for (int i = 0; i < kSequences; ++i) {
      const GenerateOptions greedy{.max_tokens = kTokens, .temperature = 0.0F, .ignore_eos = true};
      EXPECT_EQ(
          llm.generate(ids_of(i, static_cast<size_t>(3 + 4 * i)), greedy).completion().token_ids,
          found[static_cast<size_t>(i)])
          << name << " " << i;
    }
  }
}

TEST(BatchContext, CutsForksAndNeighboursChangeNoBit) {
  for (const std::string& name : kModels) {
    BatchContext context = BatchContext::load(golden_options(name), 600);
    const auto vocab = static_cast<size_t>(context.vocab_size());
    const auto ids = ids_of(7, 40);
    std::vector<size_t> rows(ids.size());
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = i;
    const auto whole = context.create();
    std::vector<float> expected(rows.size() * vocab);
    context.prefill(whole, ids, 0, rows, expected);
    for (const int64_t chunk : {1, 3, 16, 17}) {
      const auto cut = context.create();
      std::vector<float> logits(rows.size() * vocab);
      context.prefill(cut, ids, chunk, rows, logits);
      EXPECT_EQ(logits, expected) << name << " " << chunk;
      context.free(cut);
    }
    // A fork goes another way; then both go the same way, one as a decode and one as a prefill.
    const auto forked = context.fork(whole);
    const auto other = context.fork(whole);
    last_row(context, other, ids_of(9, 11), 4);
    std::vector<float> decoded(2 * vocab);
    const std::vector<BatchContext::Entry> entries = {{other, 3}, {whole, 5}};
    context.decode_batch(entries, decoded);
    EXPECT_EQ(last_row(context, forked, {5}, 0),
              std::vector<float>(decoded.begin() + static_cast<int64_t>(vocab), decoded.end()))
        << name;
    EXPECT_EQ(context.length(forked), 41);
    EXPECT_EQ(context.length(other), 52);
  }
}

TEST(BatchContext, SequencesShareTheTokensAndAFailedCallChangesNothing) {
  BatchContext context = BatchContext::load(golden_options("models/qwen3_tied"), 64);
  EXPECT_EQ(context.room(), 64);
  const auto first = context.create();
  const auto second = context.create();
  last_row(context, first, ids_of(1, 40), 0);
  EXPECT_EQ(context.room(), 24);
  expect_error(ErrorCode::exhausted, {"sequence 1", "25 more tokens", "free"},
               [&] { last_row(context, second, ids_of(2, 25), 0); });
  EXPECT_EQ(context.length(second), 0);
  EXPECT_EQ(context.room(), 24);
  const auto expected = last_row(context, second, ids_of(2, 24), 0);
  const std::vector<BatchContext::Entry> both = {{first, 1}, {second, 2}};
  expect_error(ErrorCode::exhausted, {"2 blocks"}, [&] { context.decode_batch(both, {}); });
  EXPECT_EQ(context.length(first), 40);
  context.free(first);
  EXPECT_EQ(context.room(), 40);
  const auto third = context.create();
  EXPECT_EQ(last_row(context, third, ids_of(2, 24), 5), expected);
}

TEST(BatchContext, ErrorsNameWhatIsWrong) {
  BatchContext context = BatchContext::load(golden_options("models/qwen3_tied"), 64);
  const auto sequence = context.create();
  expect_error(ErrorCode::invalid, {"sequence 9"}, [&] { context.length(9); });
  expect_error(ErrorCode::invalid, {"token 256", "255"}, [&] {
    last_row(context, sequence, {1, 256}, 0);
  });
  expect_error(ErrorCode::invalid, {"token -1"}, [&] { last_row(context, sequence, {-1}, 0); });
  expect_error(ErrorCode::invalid, {"rows"}, [&] {
    std::vector<float> logits(256);
    const size_t row = 2;
    const std::vector<int32_t> ids = {1, 2};
    context.prefill(sequence, ids, 0, {&row, 1}, logits);
  });
  expect_error(ErrorCode::invalid, {"twice"}, [&] {
    const std::vector<BatchContext::Entry> twice = {{sequence, 1}, {sequence, 2}};
    context.decode_batch(twice, {});
  });
  expect_error(ErrorCode::invalid, {"logits"}, [&] {
    const std::vector<BatchContext::Entry> one = {{sequence, 1}};
    std::vector<float> logits(7);
    context.decode_batch(one, logits);
  });
  expect_error(ErrorCode::not_found, {"adapter none"}, [&] { context.create(0, "none"); });
  expect_error(ErrorCode::invalid, {"context of 0"},
               [&] { BatchContext::load(golden_options("models/qwen3_tied"), 0); });
  expect_error(ErrorCode::exhausted, {"--max-num-seqs"}, [&] {
    for (int i = 0; i < 9; ++i) context.create();
  });
  EXPECT_EQ(context.length(sequence), 0);
}

}  // namespace
}  // namespace paceline
