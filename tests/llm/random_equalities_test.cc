// Random models, engines and requests: run together, with a cold and a warm cache, each request
// gets the same bits as alone. `make equalities` runs 10,000 cases from a new seed.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <thread>

#include "tests/kernels/chosen_isa.h"
#include "tests/llm/equalities.h"
#include "tests/llm/random_case.h"
#include "tests/llm/random_run.h"
#include "tests/test_scale.h"

namespace paceline::testing {
namespace {

using Kind = RandomRequest::Kind;
using Answer = RandomAnswer;

// Ends the program with a message when a case takes too long.
class Watchdog {
 public:
  explicit Watchdog(std::string last_words)
      : last_words_(std::move(last_words)), thread_([this] { watch(); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    ended_.notify_all();
    thread_.join();
  }

 private:
  void watch() {
    constexpr std::chrono::minutes kPatience(5);
    std::unique_lock lock(mutex_);
    if (ended_.wait_for(lock, kPatience, [this] { return over_; })) return;
    std::fprintf(stderr, "hangs: %s\n", last_words_.c_str());
    std::abort();
  }

  std::string last_words_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;
};

// A cancelled choice has a prefix of its completion.
void expect_beginning(const Completion& found, const Completion& whole) {
  ASSERT_LE(found.token_ids.size(), whole.token_ids.size());
  Completion expected = whole;
  expected.token_ids.resize(found.token_ids.size());
  EXPECT_EQ(found.token_ids, expected.token_ids);
  for (size_t i = 0; i < found.logprobs.size(); ++i) {
    EXPECT_EQ(found.logprobs[i].logprob, whole.logprobs[i].logprob);
  }
}

void expect_same(const std::vector<Completion>& found, const std::vector<Completion>& expected,
                 bool may_be_cancelled) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t k = 0; k < found.size(); ++k) {
    SCOPED_TRACE(::testing::Message() << "choice " << k);
    if (may_be_cancelled && found[k].finish_reason == "cancelled") {
      expect_beginning(found[k], expected[k]);
    } else {
      expect_same_completion(found[k], expected[k]);
    }
  }
}

void expect_same(const Classification& found, const Classification& expected) {
  EXPECT_EQ(found.token_id, expected.token_id);
  EXPECT_EQ(found.token, expected.token);
  EXPECT_EQ(found.label, expected.label);
  EXPECT_EQ(found.scores, expected.scores);
  EXPECT_EQ(found.logits, expected.logits);
}

void expect_same(const Decisions& found, const Decisions& expected) {
  ASSERT_EQ(found.answers.size(), expected.answers.size());
  for (size_t i = 0; i < found.answers.size(); ++i) {
    EXPECT_EQ(found.answers[i].logprobs, expected.answers[i].logprobs);
    EXPECT_EQ(found.answers[i].probabilities, expected.answers[i].probabilities);
    EXPECT_EQ(found.answers[i].argmax_is_label, expected.answers[i].argmax_is_label);
  }
}

void expect_same(const std::vector<Logprob>& found, const std::vector<Logprob>& expected) {
  Completion left, right;
  left.prompt_logprobs = found;
  right.prompt_logprobs = expected;
  expect_same_completion(left, right);
}

void expect_same_answer(const Answer& found, const Answer& expected, bool may_be_cancelled) {
  const auto* const error = std::get_if<ErrorInfo>(&found);
  if (error != nullptr && may_be_cancelled && error->code == ErrorCode::cancelled) return;
  ASSERT_EQ(found.index(), expected.index()) << (error == nullptr ? "" : error->message);
  if (error != nullptr) {
    EXPECT_EQ(error->message, std::get<ErrorInfo>(expected).message);
  } else if (const auto* const choices = std::get_if<std::vector<Completion>>(&found)) {
    expect_same(*choices, std::get<std::vector<Completion>>(expected), may_be_cancelled);
  } else if (const auto* const classification = std::get_if<Classification>(&found)) {
    expect_same(*classification, std::get<Classification>(expected));
  } else if (const auto* const embedding = std::get_if<Embedding>(&found)) {
    EXPECT_EQ(embedding->values, std::get<Embedding>(expected).values);
  } else if (const auto* const pairs = std::get_if<PairScores>(&found)) {
    EXPECT_EQ(pairs->values, std::get<PairScores>(expected).values);
  } else if (const auto* const decisions = std::get_if<Decisions>(&found)) {
    expect_same(*decisions, std::get<Decisions>(expected));
  } else {
    expect_same(std::get<std::vector<Logprob>>(found), std::get<std::vector<Logprob>>(expected));
  }
}

// Counts the features of the cases, to check that they cover enough.
struct Coverage {
  int64_t answers = 0;
  int64_t choices = 0;
  int64_t preemptions = 0;
  int64_t draft_failures = 0;
  int64_t drafted = 0;
  int64_t accepted = 0;  // of these
  int64_t cached_tokens = 0;
  int64_t cancelled = 0;
  int64_t errors = 0;
  int64_t embeddings = 0;
  int64_t pair_scores = 0;

  void count(const Answer& answer) {
    ++answers;
    embeddings += std::holds_alternative<Embedding>(answer) ? 1 : 0;
    pair_scores += std::holds_alternative<PairScores>(answer) ? 1 : 0;
    if (const auto* const error = std::get_if<ErrorInfo>(&answer)) {
      ++(error->code == ErrorCode::cancelled ? cancelled : errors);
    }
    if (!std::holds_alternative<std::vector<Completion>>(answer)) return;
    for (const Completion& choice : std::get<std::vector<Completion>>(answer)) {
      ++choices;
      cached_tokens += choice.usage.cached_tokens;
      cancelled += choice.finish_reason == "cancelled" ? 1 : 0;
    }
  }
};

class RandomEqualities : public ::testing::Test {
 protected:
  Alone& alone(const Subject& subject) {
    constexpr size_t kMostLoaded = 24;
    if (alone_.size() >= kMostLoaded) alone_.clear();
    auto& found = alone_[subject.name()];
    if (found == nullptr) found = std::make_unique<Alone>(subject);
    return *found;
  }

  void play(uint64_t seed, const RandomCase& drawn) {
    Alone& by_itself = alone(drawn.subject);
    std::vector<Answer> expected;
    for (const RandomRequest& request : drawn.requests) {
      expected.push_back(by_itself.answer(request));
    }
    Together together(drawn, by_itself, seed);
    for (const char* const cache : {"cold", "warm"}) {
      SCOPED_TRACE(cache);
      const std::vector<Answer> found = together.run();
      for (size_t i = 0; i < found.size(); ++i) {
        SCOPED_TRACE(drawn.requests[i].text());
        expect_same_answer(found[i], expected[i], drawn.requests[i].is_cancelled);
        coverage_.count(found[i]);
      }
    }
    const EngineCounters counters = together.finish();
    coverage_.preemptions += counters.preemptions;
    coverage_.draft_failures += counters.speculation.failures;
    coverage_.drafted += counters.speculation.drafted_tokens;
    coverage_.accepted += counters.speculation.accepted_tokens;
  }

  std::map<std::string, std::unique_ptr<Alone>> alone_;
  Coverage coverage_;
};

// A short run always has the same seeds, a long run new ones.
uint64_t first_seed(bool is_long) {
  const char* const asked = std::getenv("PACELINE_SEED");
  if (asked != nullptr && *asked != '\0') return std::strtoull(asked, nullptr, 10);
  constexpr uint64_t kMillion = 1'000'000;
  const auto now = std::chrono::system_clock::now().time_since_epoch() / std::chrono::seconds(1);
  return is_long ? static_cast<uint64_t>(now) * kMillion : kMillion;
}

TEST_F(RandomEqualities, TogetherAsAlone) {
  constexpr int kProgress = 500;
  const bool is_long = is_full_scale();
  const int count = scaled(is_sanitized() ? 200 : 120, 10000);
  const uint64_t first = first_seed(is_long);
  const std::vector<Isa> isas = isas_to_run();
  std::cout << count << " random combinations from PACELINE_SEED=" << first << std::endl;
  for (int i = 0; i < count; ++i) {
    const uint64_t seed = first + static_cast<uint64_t>(i);
    const RandomCase drawn = draw_case(seed, isas);
    const std::string name =
        "PACELINE_SEED=" + std::to_string(seed) + " begins with it: " + drawn.text();
    SCOPED_TRACE(name);
    const Watchdog watchdog(name);
    play(seed, drawn);
    if (HasFailure()) return;
    if (is_long && (i + 1) % kProgress == 0) std::cout << i + 1 << " done" << std::endl;
  }
  std::cout << coverage_.answers << " answers, " << coverage_.choices << " completions, "
            << coverage_.cancelled << " cancelled, " << coverage_.errors << " errors, "
            << coverage_.preemptions << " preemptions, " << coverage_.cached_tokens
            << " cached tokens, " << coverage_.draft_failures << " failures of drafters, "
            << coverage_.drafted << " drafted, " << coverage_.accepted << " of them accepted, "
            << coverage_.embeddings << " embeddings, " << coverage_.pair_scores
            << " scores of pairs" << std::endl;
  EXPECT_GT(coverage_.choices, 5 * count);
  EXPECT_GT(coverage_.preemptions, count / 10);
  EXPECT_GT(coverage_.cached_tokens, 10 * count);
  EXPECT_GT(coverage_.drafted, 5 * count);
  EXPECT_GT(coverage_.accepted, 2 * count);
  EXPECT_GT(coverage_.cancelled, count / 10);
  EXPECT_GT(coverage_.embeddings, count / 10);
  EXPECT_GT(coverage_.pair_scores, count / 20);
  EXPECT_EQ(coverage_.errors, 0);
}

TEST_F(RandomEqualities, HybridsTogetherAsAlone) {
  const int count = scaled(60, 3000);
  const uint64_t first = first_seed(is_full_scale());
  for (int i = 0; i < count; ++i) {
    const uint64_t seed = first + static_cast<uint64_t>(i);
    const RandomCase drawn = draw_case_of("hybrids", seed, isas_to_run());
    const std::string name = "PACELINE_SEED=" + std::to_string(seed) + ": " + drawn.text();
    SCOPED_TRACE(name);
    const Watchdog watchdog(name);
    play(seed, drawn);
    if (HasFailure()) return;
  }
  EXPECT_GT(coverage_.choices, 5 * count);
  EXPECT_GT(coverage_.preemptions, count / 10);
  EXPECT_GT(coverage_.cached_tokens, 5 * count);
  EXPECT_GT(coverage_.drafted, count);
  EXPECT_EQ(coverage_.errors, 0);
}

// Latent attention, and layers that differ in one of four.
TEST_F(RandomEqualities, LatentsTogetherAsAlone) {
  const int count = scaled(20, 1000);
  const uint64_t first = first_seed(is_full_scale());
  for (int i = 0; i < count; ++i) {
    const uint64_t seed = first + static_cast<uint64_t>(i);
    const char* const folder = i % 4 == 3 ? "mixed" : "latents";
    const RandomCase drawn = draw_case_of(folder, seed, isas_to_run());
    const std::string name = "PACELINE_SEED=" + std::to_string(seed) + ": " + drawn.text();
    SCOPED_TRACE(name);
    const Watchdog watchdog(name);
    play(seed, drawn);
    if (HasFailure()) return;
  }
  EXPECT_GT(coverage_.choices, 5 * count);
  EXPECT_GT(coverage_.cached_tokens, 5 * count);
  EXPECT_EQ(coverage_.errors, 0);
}

// The emulation of a GPU, while it lives.
class EmulatedGpu {
 public:
  EmulatedGpu() { ::setenv("PACELINE_CUDA_EMULATION", "1", 1); }
  ~EmulatedGpu() { ::unsetenv("PACELINE_CUDA_EMULATION"); }
};

TEST_F(RandomEqualities, TogetherAsAloneOnAnEmulatedGpu) {
  if (runs_fewer_cases()) GTEST_SKIP() << "minutes";
  const EmulatedGpu emulated;
  const int count = scaled(2, 400);
  const uint64_t first = first_seed(is_full_scale());
  int num_played = 0;
  for (uint64_t seed = first; num_played < count; ++seed) {
    const std::vector<Isa> isas = {available_isas().front()};
    // At full scale one model of eight has states.
    const bool is_hybrid = is_full_scale() && seed % 8 == 0;
    RandomCase drawn = is_hybrid ? draw_case_of("hybrids", seed, isas) : draw_case(seed, isas);
    if (drawn.subject.has_text) continue;  // a model of 10 million parameters
    // GPUs have no kernels of Kimi delta attention.
    if (drawn.subject.load.model.find("kimi_linear") != std::string::npos) continue;
    drawn.subject.load.device = drawn.engine.device = "cuda";
    // GPUs refuse smaller blocks, and others than powers of two (docs/gpu.md).
    const auto size = static_cast<uint64_t>(drawn.engine.block_size);
    const uint64_t least = drawn.engine.kv_cache_dtype == DataType::int8 ? 16 : 8;
    drawn.engine.block_size = static_cast<int64_t>(std::max(std::bit_floor(size), least));
    const std::string name = "PACELINE_SEED=" + std::to_string(seed) + ": " + drawn.text();
    SCOPED_TRACE(name);
    const Watchdog watchdog(name);
    play(seed, drawn);
    if (HasFailure()) return;
    ++num_played;
  }
  EXPECT_GT(coverage_.choices, 5 * count);
  EXPECT_GE(coverage_.preemptions, count / 40);
  EXPECT_GT(coverage_.cached_tokens, 10 * count);
  EXPECT_EQ(coverage_.errors, 0);
}

// The comparison detects a different seed.
TEST_F(RandomEqualities, AnotherSeedShows) {
  int64_t num_different = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    RandomCase drawn = draw_case(seed, {available_isas().front()});
    RandomRequest& request = drawn.requests.front();
    request.options.temperature = 1.5f;
    request.options.max_tokens = 20;
    if (drawn.subject.has_text || request.kind != Kind::generate) continue;
    const Answer answer = alone(drawn.subject).answer(request);
    request.options.seed = *request.options.seed + 100;
    const Answer other = alone(drawn.subject).answer(request);
    ::testing::TestPartResultArray failures;
    {
      const ::testing::ScopedFakeTestPartResultReporter reporter(
          ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
      expect_same_answer(other, answer, false);
    }
    num_different += failures.size() > 1 ? 1 : 0;
  }
  EXPECT_GT(num_different, 10);
}

}  // namespace
}  // namespace paceline::testing
