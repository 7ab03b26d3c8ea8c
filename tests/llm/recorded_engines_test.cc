// Answers of 300 random engines have the bits that were recorded (recorded_engines.txt), so that a
// change of what computes them shows itself. They are those of the baseline instruction set, which
// every machine runs. PACELINE_RECORD=FILE writes what is found.
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>

#include "tests/llm/random_case.h"
#include "tests/llm/random_run.h"
#include "tests/test_scale.h"

namespace paceline::testing {
namespace {

constexpr uint64_t kFirstSeed = 5'000'000;
constexpr int kNumRecorded = 300;

// FNV-1a (Fowler, Noll, Vo), of 64-bit words.
class AnswerDigest {
 public:
  void add(uint64_t word) { hash_ = (hash_ ^ word) * 0x100000001B3u; }
  void add(float value) { add(uint64_t{std::bit_cast<uint32_t>(value)}); }
  void add(double value) { add(std::bit_cast<uint64_t>(value)); }
  void add(int32_t id) { add(static_cast<uint64_t>(int64_t{id})); }
  void add(const std::string& text) {
    add(uint64_t{text.size()});
    for (const char byte : text) add(uint64_t{static_cast<unsigned char>(byte)});
  }
  void add(const Logprob& logprob) {
    add(logprob.id);
    add(logprob.logprob.value_or(1.0f));
    for (const TopLogprob& top : logprob.top) {
      add(top.id);
      add(top.logprob);
    }
  }
  template <class T>
  void add(const std::vector<T>& values) {
    add(uint64_t{values.size()});
    for (const T& value : values) add(value);
  }
  void add(const Completion& completion) {
    add(completion.token_ids);
    add(completion.finish_reason);
    add(completion.logprobs);
    add(completion.prompt_logprobs);
  }
  void add(const Classification& classification) {
    add(classification.token_id.value_or(-1));
    add(classification.scores);
    add(classification.logits);
  }
  void add(const Embedding& embedding) { add(embedding.values); }
  void add(const PairScores& scores) { add(scores.values); }
  void add(const Decisions& decisions) {
    for (const auto& answer : decisions.answers) add(answer.logprobs);
  }
  void add(const ErrorInfo& error) { add(error.message); }

  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xCBF29CE484222325u;
};

// Every seed that was recorded, or every `step`th.
TEST(RecordedEngines, HaveTheirBits) {
  const int step = is_full_scale() ? 1 : is_sanitized() ? 50 : 5;
  const char* const record = std::getenv("PACELINE_RECORD");
  std::map<uint64_t, uint64_t> recorded;
  std::ifstream file("tests/llm/recorded_engines.txt");
  for (uint64_t seed = 0, digest = 0; file >> std::dec >> seed >> std::hex >> digest;) {
    recorded[seed] = digest;
  }
  std::ofstream found;
  if (record != nullptr) found.open(record);
  ASSERT_TRUE(record != nullptr || recorded.size() == kNumRecorded);
  std::map<std::string, std::unique_ptr<Alone>> loaded;
  for (int i = 0; i < kNumRecorded; i += record != nullptr ? 1 : step) {
    const uint64_t seed = kFirstSeed + static_cast<uint64_t>(i);
    const RandomCase drawn = draw_case(seed, {Isa::baseline});
    SCOPED_TRACE(drawn.text());
    constexpr size_t kMostLoaded = 24;
    if (loaded.size() >= kMostLoaded) loaded.clear();
    auto& alone = loaded[drawn.subject.name()];
    if (alone == nullptr) alone = std::make_unique<Alone>(drawn.subject);
    AnswerDigest digest;
    for (const RandomRequest& request : drawn.requests) {
      std::visit([&](const auto& answer) { digest.add(answer); }, alone->answer(request));
    }
    if (record != nullptr) {
      found << std::dec << seed << ' ' << std::hex << digest.value() << '\n';
    } else {
      EXPECT_EQ(digest.value(), recorded[seed]) << seed;
    }
  }
}

}  // namespace
}  // namespace paceline::testing
