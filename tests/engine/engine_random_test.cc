// Random requests on random engines: each gets the same bits as alone, and every block is released.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>
#include <set>

#include "tests/engine/constraints.h"
#include "tests/engine/engine_fixture.h"
#include "tests/engine/script_drafter.h"
#include "tests/test_scale.h"

namespace paceline::testing {
namespace {

// Logits that depend on token and position in every column, so that a wrong row shows.
void scatter(int32_t token, int32_t position, std::span<float> logits) {
  for (size_t i = 0; i < logits.size(); ++i) {
    const auto mixed = (static_cast<uint32_t>(token) * 2654435761u) ^
                       (static_cast<uint32_t>(position) * 40503u) ^
                       (static_cast<uint32_t>(i) * 97u);
    logits[i] = static_cast<float>((mixed * 2246822519u) >> 20) / 600.0f;
  }
}

class RandomEngine : public EngineTest {
 protected:
  RandomEngine() : EngineTest(scatter) {}

  int64_t below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound));
  }

  Shape random_shape() {
    const int64_t pools[] = {6, 9, 20, 60};
    Shape shape{.block_size = 1 + below(4)};
    runner_.loop.most = 1 + below(6);
    shape.limits = {.max_model_len = 48,
                    .max_batched_tokens = 2 + below(30),
                    .max_chunk = below(3) == 0 ? 1 + below(7) : 0,
                    .max_num_seqs = 1 + below(6),
                    .max_adapters = 1 + below(3),
                    .max_queued_tokens = 1 << 20,  // no request is refused
                    .prefix_cache = below(4) != 0,
                    .max_run_steps = 2 + below(12)};
    if (drafts_) {
      shape.limits.speculation = {.num_tokens = 1 + below(8), .adapts = below(4) == 0};
      drafter_ = std::make_unique<ScriptDrafter>(
          kVocab, scatter, [this, rate = below(11)](int64_t) { return below(10) < rate; });
      if (below(6) == 0) {
        drafter_->fails = [at = 1 + below(9)](int64_t proposal) { return proposal == at; };
      }
      shape.drafter = drafter_.get();
    }
    if (both_ways_) {
      shape.limits.bidirectional = true;
      shape.groups.push_back({.num_blocks = pools[below(4)]});
      if (below(2) == 0) shape.groups.push_back({.window = 1 + below(9), .num_blocks = 60});
      return shape;
    }
    if (has_states_) {
      shape.groups.push_back({.num_blocks = pools[1 + below(3)]});
      shape.groups.push_back({.num_blocks = 1 + below(7), .is_recurrent = true});
      if (below(2) == 0) {  // fewer than sequences that run
        shape.groups.push_back(
            {.num_blocks = 1 + below(4), .is_recurrent = true, .holds_open_rows = true});
      }
      return shape;
    }
    if (below(4) != 0) shape.groups.push_back({.num_blocks = pools[below(4)]});
    if (shape.groups.empty() || below(3) == 0) {
      shape.groups.push_back({.window = 1 + below(9), .num_blocks = 14 + pools[below(4)]});
    }
    return shape;
  }

  GenerateRequest random_request() {
    // Few beginnings, so that prefixes are shared.
    std::vector<TokenId> prompt;
    const auto first = static_cast<TokenId>(below(2));
    const int64_t shared = below(has_states_ ? 37 : 18), own = 1 + below(8);
    for (int64_t i = 0; i < shared; ++i) {
      prompt.push_back(static_cast<TokenId>((first * 7 + i * 3) % kVocab));
    }
    for (int64_t i = 0; i < own; ++i) prompt.push_back(static_cast<TokenId>(below(kVocab)));
    GenerateRequest request{.prompt = prompt, .max_tokens = below(12)};
    request.sampling.temperature = below(2) == 0 ? 0.0f : 0.8f;
    request.sampling.seed = static_cast<uint64_t>(below(1000));
    if (below(3) == 0) request.sampling.repetition_penalty = 1.2f;
    if (below(4) == 0) request.sampling.presence_penalty = 0.5f;
    if (below(4) == 0) request.sampling.top_k = 5;
    if (below(4) == 0) request.sampling.num_top_logprobs = 2;
    if (loops_ && below(2) == 0) request.sampling = {{.temperature = 0}};
    if (below(3) == 0) request.eos_tokens = {static_cast<TokenId>(below(kVocab))};
    if (below(4) == 0) request.stop_strings = {"a", "bc"};
    if (loops_ && request.max_tokens > 0 && below(3) == 0) {
      request.min_tokens = 1 + below(request.max_tokens);
      if (below(2) == 0) request.stop_token_ids = {static_cast<TokenId>(below(kVocab)), 4};
      if (below(3) == 0) request.sampling.logit_bias = {{4, 0.5f}, {9, 1.0f}};
    }
    request.want_logprobs = below(2) == 0;
    if (below(4) == 0) request.score_from = below(static_cast<int64_t>(prompt.size()));
    if (below(5) == 0) request.columns = {3, 5, 30};
    if (below(8) == 0) request.want_row = true;
    if (request.max_tokens > 0 && below(4) == 0) request.n = 1 + static_cast<int32_t>(below(4));
    request.priority = static_cast<int32_t>(below(3) == 0 ? below(3) - 1 : 0);
    if (below(3) != 0) request.adapter = adapters_[static_cast<size_t>(below(5))];
    const PrefixUse::Write writes[] = {PrefixUse::Write::keep, PrefixUse::Write::keep,
                                       PrefixUse::Write::while_held, PrefixUse::Write::none};
    request.prefix.write = writes[below(4)];
    request.prefix.read = below(6) != 0;
    if (below(5) == 0) request.prefix.scope.salt.low = 1;
    request.prefix.hold = below(12) == 0;
    if (has_states_ && below(3) == 0) request.prefix.shared_lengths = {shared};
    if (both_ways_ || below(6) == 0) pool(request);
    if (constrains_ && request.max_tokens > 0 && below(4) != 0) {
      static const auto constraints = random_constraints();
      request.constraint = constraints[static_cast<size_t>(below(std::ssize(constraints)))];
      if (below(4) == 0) request.stop_token_ids = {static_cast<TokenId>(below(kVocab))};
      if (below(5) == 0) request.min_tokens = 1 + below(request.max_tokens);
      if (below(6) == 0) request.banned_sequences = {{static_cast<TokenId>(below(26))}, {3, 4}};
    }
    return request;
  }

  // The request asks for pooled states instead.
  void pool(GenerateRequest& request) {
    request.pooling = static_cast<Pooling>(below(6));
    request.max_tokens = request.min_tokens = 0;
    request.n = 1;
    request.score_from.reset();
    request.columns.clear();
    request.want_row = false;
    request.prefix.hold = false;
  }

  // With forced tokens and without, finite languages and infinite ones, one that is ambiguous.
  static std::vector<std::shared_ptr<Constraint>> random_constraints() {
    std::vector<std::shared_ptr<Constraint>> all;
    for (const char* const pattern :
         {"[a-z]{2,9}", "(abc|xyz|[k-p]qr)*", "abcdefgh[a-m]xyz", "([a-h][i-z])+", "(a|ab|b)*c",
          "[a-c]{3}", "hello(world)?[x-z]*", "[a-z]*"}) {
      all.push_back(regex_constraint(pattern));
    }
    all.push_back(regex_constraint("abc[d-h]{2}klm", false));
    all.push_back(constraint_of({.kind = ConstraintSpec::Kind::choice,
                                 .choices = {"yes", "no", "never", "nothing", "yesterday"}}));
    all.push_back(constraint_of({.kind = ConstraintSpec::Kind::grammar,
                                 .text = "root ::= \"x\" root \"y\" | [a-f]+ | \"go\" root"}));
    return all;
  }

  static void expect_same(const Answer& found, const Answer& alone) {
    ASSERT_NE(found.ending, nullptr);
    EXPECT_EQ(found.tokens, alone.tokens);
    EXPECT_EQ(found.logprobs, alone.logprobs);
    EXPECT_EQ(found.releasable, alone.releasable);
    EXPECT_EQ(found.ending->finish.reason, alone.ending->finish.reason)
        << found.ending->error.value_or(ErrorInfo{}).message;
    EXPECT_EQ(found.ending->finish.stop_string, alone.ending->finish.stop_string);
    EXPECT_EQ(found.ending->stats.output_tokens, alone.ending->stats.output_tokens);
    ASSERT_EQ(found.prompt == nullptr, alone.prompt == nullptr);
    if (found.prompt == nullptr) return;
    EXPECT_EQ(found.prompt->column_logits, alone.prompt->column_logits);
    EXPECT_EQ(found.prompt->row, alone.prompt->row);
    EXPECT_EQ(found.prompt->pooled, alone.prompt->pooled);
    ASSERT_EQ(found.prompt->scored.size(), alone.prompt->scored.size());
    for (size_t i = 0; i < found.prompt->scored.size(); ++i) {
      EXPECT_EQ(found.prompt->scored[i].id, alone.prompt->scored[i].id);
      EXPECT_EQ(found.prompt->scored[i].logprob, alone.prompt->scored[i].logprob);
    }
  }

  void run_random_engines(int count);
  void play(uint32_t seed);
  void compare_with_alone();

  std::mt19937 random_;
  bool drafts_ = false;
  bool constrains_ = false;
  bool both_ways_ = false;
  bool draws_ = false;  // the runner draws; alone the engine does
  bool loops_ = false;
  bool has_states_ = false;
  // The last two are equal, so they share prefixes.
  const std::vector<std::shared_ptr<const LoadedAdapter>> adapters_ = {
      nullptr, numbered_adapter(1), numbered_adapter(2), numbered_adapter(3), numbered_adapter(3)};
  std::unique_ptr<ScriptDrafter> drafter_;
  std::map<RequestId, GenerateRequest> requests_;
  std::set<RequestId> cancelled_;
};

void RandomEngine::play(uint32_t seed) {
  random_.seed(seed);
  requests_.clear();
  cancelled_.clear();
  answers_.clear();
  runner_.most_adapters = 0;
  runner_.draws = draws_;
  runner_.has_loop = loops_;
  engine(random_shape());
  int64_t to_come = 1 + below(9);
  bool more = true;
  int64_t num_steps = 0;
  while (more || to_come > 0) {
    while (to_come > 0 && below(3) != 0) {
      --to_come;
      GenerateRequest request = random_request();
      try {
        const auto id = engine_->submit(request, channel_);
        requests_.emplace(id.value(), std::move(request));
      } catch (const Error& error) {
        const bool is_too_long = both_ways_ && error.code() == ErrorCode::invalid;
        EXPECT_TRUE(is_too_long || error.code() == ErrorCode::exhausted) << error.what();
      }
    }
    if (!requests_.empty() && below(25) == 0) {
      const RequestId id = requests_.begin()->first;
      engine_->cancel(id);
      cancelled_.insert(id);
    }
    if (!requests_.empty() && below(6) == 0) {
      const RequestId id = std::next(requests_.begin(), below(std::ssize(requests_)))->first;
      below(2) == 0 ? engine_->defer(id) : engine_->resume(id);
    }
    more = step();
    ASSERT_LE(runner_.most_adapters, engine_->limits().max_adapters) << "seed " << seed;
    ASSERT_LT(++num_steps, 4000) << "seed " << seed;
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

void RandomEngine::compare_with_alone() {
  runner_.has_loop = false;
  const auto together = std::move(answers_);
  runner_.draws = false;
  for (const auto& [id, request] : requests_) {
    if (cancelled_.contains(id)) continue;
    for (int32_t k = 0; k < request.n; ++k) {
      ASSERT_TRUE(together.contains({id, k})) << "an answer is missing";
      engine({.num_blocks = 200,
              .limits = {.max_model_len = 48, .max_batched_tokens = 200, .max_adapters = 1}});

      GenerateRequest alone = request;
      alone.n = 1;
      alone.sampling.seed += static_cast<uint64_t>(k);
      alone.prefix = {};
      if (k > 0) {
        alone.score_from.reset();
        alone.columns.clear();
        alone.want_row = false;
      }
      SCOPED_TRACE(::testing::Message() << "request " << id << " choice " << k);
      expect_same(together.at({id, k}), run(alone));
    }
  }
}

void RandomEngine::run_random_engines(int count) {
  for (int seed = 0; seed < count; ++seed) {
    SCOPED_TRACE(seed);
    play(static_cast<uint32_t>(seed));
    if (HasFailure()) return;
    engine_->check_integrity();
    EXPECT_EQ(engine_->num_running() + engine_->num_waiting(), 0);
    compare_with_alone();
    if (HasFailure()) return;
  }
}

TEST_F(RandomEngine, EverybodyGetsWhatTheyGetAlone) { run_random_engines(scaled(400, 20000)); }

TEST_F(RandomEngine, BothWaysEverybodyGetsWhatTheyGetAlone) {
  both_ways_ = true;
  run_random_engines(scaled(400, 20000));
}

TEST_F(RandomEngine, ConstraintsHoldWhateverTheSchedule) {
  constrains_ = true;
  run_random_engines(scaled(200, 20000));
  drafts_ = true;
  run_random_engines(scaled(200, 20000));
}

TEST_F(RandomEngine, ARunnerThatDrawsChangesNoBit) {
  draws_ = true;
  run_random_engines(scaled(200, 10000));
  constrains_ = true;
  run_random_engines(scaled(200, 10000));
  drafts_ = true;
  run_random_engines(scaled(200, 10000));
  EXPECT_GT(runner_.num_drawn, 1000);
}

TEST_F(RandomEngine, DraftsChangeNoBit) {
  drafts_ = true;
  run_random_engines(scaled(800, 40000));
}

TEST_F(RandomEngine, RunsOfTheDecodeLoopChangeNoBit) {
  loops_ = true;
  run_random_engines(scaled(800, 40000));
  EXPECT_GT(runner_.loop.num_starts, 100);
  EXPECT_GT(runner_.loop.num_steps, 3 * runner_.loop.num_starts);
  drafts_ = constrains_ = true;
  run_random_engines(scaled(200, 10000));
}

// From one state on.
TEST_F(RandomEngine, StatesAreThoseOfTheirSequences) {
  has_states_ = true;
  run_random_engines(scaled(400, 20000));
  loops_ = true;
  runner_.loop.num_starts = 0;
  run_random_engines(scaled(400, 20000));
  EXPECT_GT(runner_.loop.num_starts, 50);
  drafts_ = constrains_ = true;
  run_random_engines(scaled(400, 20000));
}

}  // namespace
}  // namespace paceline::testing
