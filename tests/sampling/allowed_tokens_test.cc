#include "sampling/allowed_tokens.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "sampling/sampler.h"
#include "sampling/token_mask.h"
#include "tensor/memory.h"

namespace paceline {
namespace {

// Bits draw what a list of allowed tokens draws, with the same log-probabilities.
TEST(AllowedTokens, DrawLikeAListOfIds) {
  std::mt19937 random(1);
  Memory memory;
  for (const int64_t vocab : {1, 63, 64, 65, 500}) {
    Sampler sampler(memory, vocab);
    std::vector<float> logits(static_cast<size_t>(vocab));
    for (int round = 0; round < 200; ++round) {
      for (float& logit : logits) logit = static_cast<float>(random() % 1000) / 100.0f;
      // Words that are empty, full and mixed; fewer words than the vocabulary has.
      std::vector<uint64_t> bits(static_cast<size_t>(1 + random() % 9));
      for (uint64_t& word : bits) {
        const uint64_t kinds[] = {0, ~uint64_t{0}, (uint64_t{random()} << 32) | random()};
        word = kinds[random() % 3];
      }
      std::vector<int32_t> ids;
      for (int64_t id = 0; id < vocab; ++id) {
        const auto word = static_cast<size_t>(id / 64);
        if (word < bits.size() && (bits[word] >> (id % 64) & 1) != 0) {
          ids.push_back(static_cast<int32_t>(id));
        }
      }
      SamplingOptions options{{.temperature = random() % 3 == 0 ? 0.0f : 0.9f, .seed = random()}};
      if (random() % 2 == 0) options.top_k = 7;
      if (random() % 2 == 0) options.logit_bias = {{0, 2.0f}};
      const LogitsRow row{.logits = logits, .log_sum_exp = 12.0f, .allowed = bits};
      const Sample found = sampler.draw(row, options, {}, round);
      if (ids.empty()) {
        EXPECT_EQ(found.status, SampleStatus::all_forbidden);
        continue;
      }
      options.mask = std::make_shared<const TokenMask>(ids, std::vector<std::vector<int32_t>>{});
      const LogitsRow plain{.logits = logits, .log_sum_exp = 12.0f};
      const Sample expected = sampler.draw(plain, options, {}, round);
      ASSERT_EQ(found.status, SampleStatus::ok);
      EXPECT_EQ(found.id, expected.id);
      EXPECT_EQ(found.logprob, expected.logprob);
    }
  }
}

}  // namespace
}  // namespace paceline
