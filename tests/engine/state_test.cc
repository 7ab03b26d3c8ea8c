// Layers with states: where the engine saves them, and what few of them cost.
#include <gtest/gtest.h>

#include "tests/engine/engine_fixture.h"

namespace paceline::testing {
namespace {

using Ids = std::vector<TokenId>;

class EngineStates : public EngineTest {
 protected:
  void with_states(int64_t num_states, int64_t block_size = 16) {
    engine({.block_size = block_size,
            .limits = {.max_model_len = 4096, .max_batched_tokens = 512},
            .groups = {{.num_blocks = 8192 / block_size},
                       {.num_blocks = num_states, .is_recurrent = true}}});
  }

  static Ids text(int64_t length, int64_t first_other = 0) {
    Ids ids;
    for (int64_t i = 0; i < length; ++i) {
      const int64_t shift = first_other > 0 && i >= first_other ? 5 : 0;
      ids.push_back(static_cast<TokenId>((3 + i * i + shift) % 29));
    }
    return ids;
  }

  // Of a prompt that has its first `shared` tokens with text() in common.
  int64_t cached(int64_t length, int64_t shared) {
    return run(greedy(text(length, shared), 1)).ending->stats.cached_tokens;
  }
};

TEST_F(EngineStates, AnotherBeginningOfTheAnswerFindsThePrompt) {
  with_states(16);
  run(greedy(text(66), 1));
  EXPECT_EQ(cached(90, 63), 48) << "only a state at 64 was saved";
  EXPECT_EQ(cached(90, 66), 64) << "where the first one ended";
}

TEST_F(EngineStates, KnownBeginningsAreSaved) {
  with_states(16);
  GenerateRequest first = greedy(text(90), 1);
  first.prefix.shared_lengths = {40, 71};
  run(first);
  EXPECT_EQ(cached(60, 40), 32);
  EXPECT_EQ(cached(100, 71), 64);
}

// Whatever remains of a block; a prompt of the same tokens computes its last one.
TEST_F(EngineStates, AHeldPrefixIsFoundWhateverTheBlockSize) {
  for (const auto& [block_size, unit] :
       {std::pair{8, 16}, {16, 16}, {24, 48}, {32, 32}, {64, 64}}) {
    for (const int64_t length : {95, 96, 97, 120}) {
      SCOPED_TRACE(::testing::Message() << length << " tokens, blocks of " << block_size);
      with_states(4, block_size);
      GenerateRequest hold = greedy(text(length), 0);
      hold.prefix = {.write = PrefixUse::Write::while_held, .hold = true};
      const RequestId id = submit(hold);
      run_all();
      EXPECT_EQ(cached(length + 1, length), length / unit * unit);
      engine_->release(id);
      run_all();
    }
  }
}

// 53 tokens, of which 52 are computed: the last chunk that they fill ends at 48. Else the state a
// little before the prompt's end is the last one at a boundary.
TEST_F(EngineStates, TheEndOfAnAnswerIsFoundWhereABlockEndsToo) {
  for (const auto& [block_size, found] :
       {std::pair{4, 48}, {8, 48}, {16, 48}, {24, 48}, {32, 32}, {48, 48}, {64, 0}}) {
    SCOPED_TRACE(block_size);
    with_states(4, block_size);
    Ids turns = text(40);
    const Ids answer = run(greedy(turns, 13)).tokens;
    turns.insert(turns.end(), answer.begin(), answer.end());
    turns.insert(turns.end(), {1, 2, 3});
    EXPECT_EQ(run(greedy(turns, 1)).ending->stats.cached_tokens, found);
  }
}

TEST_F(EngineStates, AnotherEndingComputesAtMost512TokensMoreWhateverTheBlockSize) {
  for (const int64_t block_size : {16, 24, 48}) {
    SCOPED_TRACE(block_size);
    with_states(4, block_size);
    run(greedy(text(700), 1));
    EXPECT_GE(cached(620, 600), 480);
  }
}

TEST_F(EngineStates, ARequestThatFailsLeavesNoState) {
  with_states(4);
  const Ids bad = text(60);
  runner_.is_bad = [&](int32_t, int32_t position) { return position == 59; };
  EXPECT_EQ(run(greedy(bad, 4)).ending->error->code, ErrorCode::numerical);
  EXPECT_EQ(cache_->pool(1).num_cached(), 0);
  runner_.is_bad = nullptr;
  EXPECT_EQ(run(greedy(bad, 4)).ending->stats.cached_tokens, 0);
}

TEST_F(EngineStates, TheStateOfAHeldPrefixStays) {
  with_states(3);
  GenerateRequest hold = greedy(text(64), 0);
  hold.prefix.hold = true;
  submit(hold);
  run_all();
  for (TokenId first = 0; first < 4; ++first) run(greedy(Ids(80, first), 2));
  EXPECT_EQ(cached(90, 64), 64);
}

// Its client may go on from what it has read.
TEST_F(EngineStates, ACancelledRequestLeavesItsState) {
  with_states(4);
  GenerateRequest request = greedy(text(40), 60);
  request.eos_tokens.clear();
  const RequestId id = submit(request);
  for (int i = 0; i < 30; ++i) step();
  Ids seen = text(40);
  const Ids answered = answer(id).tokens;
  seen.insert(seen.end(), answered.begin(), answered.end());
  engine_->cancel(id);
  run_all();
  seen.insert(seen.end(), 20, 7);
  EXPECT_EQ(run(greedy(seen, 1)).ending->stats.cached_tokens, 64);
}

// The first choice to write copies the state; the last one has it to itself.
TEST_F(EngineStates, ChoicesNeedAStateEach) {
  with_states(4);
  GenerateRequest request = greedy(text(40), 6);
  request.n = 4;
  run(request);
  EXPECT_EQ(engine_->counters().preemptions, 0);
}

TEST_F(EngineStates, OneStateServesEverybodyInTurn) {
  with_states(1);
  GenerateRequest request = greedy(text(40), 6);
  request.n = 3;
  const RequestId many = submit(request);
  const RequestId other = submit(greedy(text(50, 30), 6));
  run_all();
  for (int32_t choice = 0; choice < 3; ++choice) {
    EXPECT_EQ(answer(many, choice).tokens.size(), 6u);
  }
  EXPECT_EQ(answer(other).tokens.size(), 6u);
}

}  // namespace
}  // namespace paceline::testing
