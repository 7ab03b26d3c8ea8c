// ModelDrafter on a scripted runner, which checks every key that a row would read.
#include "spec/model_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "base/error.h"
#include "base/state_chunk.h"
#include "tensor/memory.h"
#include "tests/engine/scripted_runner.h"
#include "tests/test_scale.h"

namespace paceline::testing {
namespace {

constexpr int64_t kVocab = 40;

// Depends on token and position, so that a wrong row shows.
void hop(int32_t token, int32_t position, std::span<float> logits) {
  logits[static_cast<size_t>((token * 7 + position * 3 + 1) % kVocab)] = 9.0f;
}

int32_t next_of(int32_t token, int64_t position) {
  return static_cast<int32_t>((token * 7 + position * 3 + 1) % kVocab);
}

class ModelDrafterTest : public ::testing::Test {
 protected:
  struct Shape {
    std::vector<CacheGroup> groups = {{.num_blocks = 64}};
    ModelDrafterLimits limits = {.vocab_size = kVocab, .max_length = 200, .max_rows = 16};
    int64_t runner_vocab = kVocab;
  };

  void make(const Shape& shape) {
    drafter_.reset();
    runner_.emplace(shape.runner_vocab, hop);
    cache_.emplace(4, shape.groups);
    runner_->watch(&*cache_);
    drafter_.emplace(*runner_, *cache_, memory_, shape.limits);
    greedy_.temperature = 0;
  }

  std::vector<int32_t> propose(DraftState& state, std::span<const int32_t> tokens, int64_t most) {
    draft_.clear();
    const DraftRequest request{.state = &state,
                               .tokens = tokens,
                               .sampling = &greedy_,
                               .history = &history_,
                               .most = most,
                               .draft = &draft_};
    drafter_->propose(std::span(&request, 1));
    return draft_.tokens;
  }

  static std::vector<int32_t> expected(std::span<const int32_t> tokens, int64_t most) {
    std::vector<int32_t> found;
    int32_t last = tokens.back();
    for (int64_t i = 0; i < most; ++i) {
      last = next_of(last, std::ssize(tokens) - 1 + i);
      found.push_back(last);
    }
    return found;
  }

  Memory memory_;
  std::optional<ScriptedRunner> runner_;
  std::optional<StateCache> cache_;
  std::optional<ModelDrafter> drafter_;
  SamplingOptions greedy_;
  TokenHistory history_;
  Draft draft_;
};

const std::vector<CacheGroup> kWithStates = {
    {.num_blocks = 64},
    {.num_blocks = 2, .is_recurrent = true},
    {.num_blocks = 2, .is_recurrent = true, .holds_open_rows = true}};

// A call for the same tokens computes the last row anew, which may have ended a chunk.
TEST_F(ModelDrafterTest, StatesThatWentOnAreComputedAgain) {
  for (const int64_t length : {15, 16, 17, 32}) {
    SCOPED_TRACE(length);
    make({.groups = kWithStates,
          .limits = {.vocab_size = kVocab, .max_length = 200, .max_rows = 64}});
    const auto state = drafter_->begin({}, {});
    std::vector<int32_t> tokens;
    for (int64_t i = 0; i < length; ++i) tokens.push_back(static_cast<int32_t>(i % kVocab));
    const int64_t most = std::min<int64_t>(5, kStateChunk - length % kStateChunk);
    EXPECT_EQ(drafter_->prospects(*state, tokens, 5), most);
    for (int round = 0; round < 3; ++round) {
      EXPECT_EQ(propose(*state, tokens, 5), expected(tokens, most));
    }
  }
}

TEST_F(ModelDrafterTest, ProposesWhatItsModelWouldDraw) {
  make({});
  const auto state = drafter_->begin({}, {});
  const std::vector<int32_t> tokens = {5, 6, 7};
  EXPECT_EQ(propose(*state, tokens, 4), expected(tokens, 4));
  EXPECT_EQ(runner_->num_runs, 4);
  EXPECT_EQ(runner_->num_rows, 6);
}

// Tokens grow by some of the draft and by others, as after acceptance and rejection.
TEST_F(ModelDrafterTest, WhatWasNotDrawnIsForgotten) {
  const int count = scaled(300, 10000);
  for (int seed = 0; seed < count; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(static_cast<uint32_t>(seed));
    const auto below = [&](int64_t bound) {
      return static_cast<int64_t>(random() % static_cast<uint64_t>(bound));
    };
    Shape shape;
    shape.limits.max_rows = 200;
    const int64_t kind = below(3);
    if (kind == 1) shape.groups = {{.num_blocks = 64}, {.window = 5, .num_blocks = 64}};
    if (kind == 2) shape.groups = kWithStates;
    make(shape);
    auto state = drafter_->begin({}, {});
    std::vector<int32_t> tokens;
    for (int64_t i = below(10); i >= 0; --i) tokens.push_back(static_cast<int32_t>(below(kVocab)));
    for (int round = 0; round < 8; ++round) {
      const int64_t most = below(6);
      std::vector<int32_t> text = tokens;
      const int64_t room = kStateChunk - std::ssize(tokens) % kStateChunk;
      const std::vector<int32_t> drafted =
          expected(tokens, kind == 2 ? std::min(most, room) : most);
      text.insert(text.end(), drafted.begin(), drafted.end());
      runner_->on_row = [&text](int64_t position, uint64_t digest) {
        const auto seen = std::span(text).first(static_cast<size_t>(position) + 1);
        EXPECT_EQ(digest, ScriptedRunner::digest_of(seen)) << "a key of another text";
      };
      const std::vector<int32_t> draft = propose(*state, tokens, most);
      ASSERT_EQ(draft, drafted);
      ASSERT_FALSE(HasFailure());
      const int64_t taken = below(std::ssize(draft) + 1);
      tokens.insert(tokens.end(), draft.begin(), draft.begin() + taken);
      for (int64_t i = below(3); i >= 0; --i) tokens.push_back(static_cast<int32_t>(below(kVocab)));
      if (below(9) == 0) state = drafter_->begin({}, {});  // after a preemption
    }
    state.reset();
    cache_->check_integrity({});
    ASSERT_EQ(cache_->pool(0).num_free(), 64);
  }
}

TEST_F(ModelDrafterTest, AnUnreadPromptIsReadInChunksBeforeItDrafts) {
  make({});
  const auto state = drafter_->begin({}, {});
  const std::vector<int32_t> tokens(40, 3);
  EXPECT_THAT(propose(*state, tokens, 3), ::testing::IsEmpty());
  EXPECT_EQ(runner_->num_rows, 16);
  EXPECT_THAT(propose(*state, tokens, 3), ::testing::IsEmpty());
  EXPECT_EQ(propose(*state, tokens, 3), expected(tokens, 3));
  EXPECT_EQ(runner_->num_rows, 40 + 2);
}

TEST_F(ModelDrafterTest, SequencesDraftTogetherAndThoseWithoutRoomWait) {
  make({});
  std::vector<std::unique_ptr<DraftState>> states;
  std::vector<std::vector<int32_t>> tokens;
  std::vector<Draft> drafts(20);
  std::vector<DraftRequest> requests;
  for (int32_t i = 0; i < 20; ++i) {
    states.push_back(drafter_->begin({}, {}));
    tokens.push_back({i});
  }
  for (size_t i = 0; i < 20; ++i) {
    requests.push_back({.state = states[i].get(),
                        .tokens = tokens[i],
                        .sampling = &greedy_,
                        .history = &history_,
                        .most = 2,
                        .draft = &drafts[i]});
  }
  drafter_->propose(requests);
  EXPECT_EQ(runner_->num_runs, 2);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(drafts[i].tokens, i < 16 ? expected(tokens[i], 2) : std::vector<int32_t>()) << i;
  }
}

// Later forwards have fewer rows than the place where the short draft's prompt stood.
TEST_F(ModelDrafterTest, DraftsOfSeveralLengthsEndOneByOne) {
  make({.limits = {.vocab_size = kVocab, .max_length = 200, .max_rows = 64}});
  const std::vector<std::vector<int32_t>> tokens = {
      std::vector<int32_t>(20, 3), std::vector<int32_t>(10, 30), std::vector<int32_t>(5, 10)};
  const int64_t lengths[] = {4, 1, 2};
  std::vector<std::unique_ptr<DraftState>> states;
  std::vector<Draft> drafts(tokens.size());
  std::vector<DraftRequest> requests;
  for (size_t i = 0; i < tokens.size(); ++i) {
    states.push_back(drafter_->begin({}, {}));
    requests.push_back({.state = states[i].get(),
                        .tokens = tokens[i],
                        .sampling = &greedy_,
                        .history = &history_,
                        .most = lengths[i],
                        .draft = &drafts[i]});
  }
  drafter_->propose(requests);
  for (size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(drafts[i].tokens, expected(tokens[i], lengths[i])) << i;
  }
}

TEST_F(ModelDrafterTest, WithoutBlocksTheDraftIsShorter) {
  make({.groups = {{.num_blocks = 2}}});
  const auto state = drafter_->begin({}, {});
  const std::vector<int32_t> tokens(6, 3);
  EXPECT_EQ(propose(*state, tokens, 8), expected(tokens, 3));  // positions 6 and 7 are its last
  const auto other = drafter_->begin({}, {});
  EXPECT_THAT(propose(*other, tokens, 8), ::testing::IsEmpty());
  EXPECT_FALSE(draft_.failed);
}

TEST_F(ModelDrafterTest, ItsContextEndsTheDraft) {
  make({.limits = {.vocab_size = kVocab, .max_length = 8, .max_rows = 16}});
  const auto state = drafter_->begin({}, {});
  const std::vector<int32_t> tokens(6, 3);
  EXPECT_EQ(drafter_->prospects(*state, tokens, 8), 2);
  EXPECT_EQ(propose(*state, tokens, 2), expected(tokens, 2));
  EXPECT_THAT(propose(*state, std::vector<int32_t>(9, 3), 2), ::testing::IsEmpty());
}

TEST_F(ModelDrafterTest, ARowThatIsNotFiniteEndsDraftsForItsSequence) {
  make({});
  runner_->is_bad = [](int32_t /*token*/, int32_t position) { return position == 4; };
  const auto state = drafter_->begin({}, {});
  const std::vector<int32_t> tokens = {1, 2, 3};
  EXPECT_EQ(propose(*state, tokens, 8), expected(tokens, 2));
  EXPECT_TRUE(draft_.failed);
}

// Rows of padding behind the last token differ between models of one tokenizer.
TEST_F(ModelDrafterTest, VocabulariesMayDifferInPadding) {
  make({.limits = {.vocab_size = kVocab - 8, .max_length = 200, .max_rows = 16}});
  auto state = drafter_->begin({}, {});
  for (const int32_t id : propose(*state, std::vector<int32_t>{1, 2}, 6)) EXPECT_LT(id, kVocab - 8);
  state.reset();
  make({.limits = {.vocab_size = kVocab + 8, .max_length = 200, .max_rows = 16}});
  state = drafter_->begin({}, {});
  const std::vector<int32_t> tokens = {1, 2};
  EXPECT_EQ(propose(*state, tokens, 4), expected(tokens, 4));
  EXPECT_THAT(propose(*state, std::vector<int32_t>{1, 2, kVocab + 3}, 4), ::testing::IsEmpty());
}

TEST_F(ModelDrafterTest, PenaltiesSeeTheDraftAndTheHistoryIsLeftAsItWas) {
  make({});
  greedy_.presence_penalty = 2.0f;
  const auto state = drafter_->begin({}, {});
  const std::vector<int32_t> tokens = {1, 2};
  history_.add_prompt(tokens);
  propose(*state, tokens, 6);
  EXPECT_THAT(history_.output(), ::testing::IsEmpty());
  runner_->is_bad = [](int32_t, int32_t) -> bool { throw Error(ErrorCode::internal, "broken"); };
  EXPECT_THROW(propose(*state, tokens, 6), Error);
  EXPECT_THAT(history_.output(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace paceline::testing
