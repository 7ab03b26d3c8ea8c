// Texts of one long piece: merging is O(n log n) for any content.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <string>
#include <vector>

#include "paceline/tokenizer.h"
#include "tests/build_kind.h"
#include "tests/tokenizer/golden_file.h"
#include "tests/tokenizer/random_text.h"

namespace paceline {
namespace {

// Without optimisation or under a sanitizer everything takes about 15 times as long: a 16th of the
// text, the same limits.
size_t text_size() { return size_t{4} << (is_sanitized() || !is_optimised() ? 16 : 20); }

// Processor time of this thread, so that a busy machine doesn't fail the test.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::string repeated(std::string_view unit) {
  std::string text;
  while (text.size() < text_size()) text += unit;
  return text;
}

std::string random_letters(size_t num_letters) {
  RandomText random(6);
  std::string text;
  while (text.size() < text_size()) text += static_cast<char>('a' + random.below(num_letters));
  return text;
}

// The least of up to three runs: a neighbour on the same core slows a thread down without using its
// time.
void expect_seconds(const Tokenizer& tokenizer, const std::string& text, double limit) {
  SCOPED_TRACE(text.substr(0, 16));
  double least = std::numeric_limits<double>::infinity();
  for (int run = 0; run < 3 && least >= limit; ++run) {
    const double begin = thread_seconds();
    const std::vector<TokenId> ids = tokenizer.encode(text);
    least = std::min(least, thread_seconds() - begin);
    EXPECT_GT(ids.size(), 1000u);
  }
  EXPECT_LT(least, limit);
}

void expect_long_texts_are_fast(const std::filesystem::path& folder) {
  const Tokenizer tokenizer = Tokenizer::load(folder);
  for (const char* unit : {"a", " ", "\n", "▁", "😀", "-", "ab", "\u0301", "你", "it was the "}) {
    expect_seconds(tokenizer, repeated(unit), 1.0);
  }
  // Many different merges depend on memory more than on the processor; memory may be shared.
  for (const size_t num_letters : {size_t{2}, size_t{26}}) {
    expect_seconds(tokenizer, random_letters(num_letters), 4.0);
  }
}

class LongTexts : public testing::TestWithParam<const char*> {};

TEST_P(LongTexts, AreFast) { expect_long_texts_are_fast(golden_tokenizers() / GetParam()); }

// Byte-level, and as SentencePiece makes it.
INSTANTIATE_TEST_SUITE_P(Small, LongTexts, testing::Values("odd_flags", "replaced"));

class SharedLongTexts : public testing::TestWithParam<const char*> {};

TEST_P(SharedLongTexts, AreFast) {
  const auto folder =
      std::filesystem::path(PACELINE_SOURCE_DIR) / "../shared/tokenizers" / GetParam();
  if (!std::filesystem::exists(folder)) {
    GTEST_SKIP() << "../shared/tokenizers/" << GetParam() << " isn't there";
  }
  expect_long_texts_are_fast(folder);
}

INSTANTIATE_TEST_SUITE_P(Large, SharedLongTexts, testing::Values("qwen3", "gemma3"));

}  // namespace
}  // namespace paceline
