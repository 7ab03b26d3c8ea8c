#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "paceline/tokenizer.h"
#include "tests/expect_error.h"
#include "tests/test_scale.h"
#include "tests/tokenizer/golden_file.h"
#include "tests/tokenizer/random_text.h"

namespace paceline {
namespace {

void expect_streams(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                    DecodeOptions options) {
  IncrementalDetokenizer detokenizer(tokenizer, options);
  IncrementalDetokenizer so_far(tokenizer, options);  // used again for every prefix
  std::string streamed;
  for (size_t i = 0; i < ids.size(); ++i) {
    streamed += detokenizer.push(ids[i]);
    ASSERT_TRUE(is_valid_utf8(streamed));
    const std::string full = tokenizer.decode({ids.data(), i + 1}, options);
    ASSERT_TRUE(full.starts_with(streamed)) << full;
    std::string whole;
    for (size_t j = 0; j <= i; ++j) whole += so_far.push(ids[j]);
    ASSERT_EQ(whole + so_far.finish(), full);
  }
}

class DetokenizerOf : public testing::TestWithParam<const char*> {};

// Random tokens contain many bytes that begin, continue and break characters.
TEST_P(DetokenizerOf, EqualsTheFullDecodeOnEveryPrefix) {
  const Tokenizer tokenizer = Tokenizer::load(golden_tokenizers() / GetParam());
  RandomText random(11);
  const auto bound = static_cast<size_t>(tokenizer.vocab_size());
  const int num_rounds = scaled(200, 20'000);
  for (int i = 0; i < num_rounds; ++i) {
    std::vector<TokenId> ids(random.below(40));
    for (TokenId& id : ids) {
      id = static_cast<TokenId>(
          random.below(random.below(2) == 0 ? bound : std::min<size_t>(bound, 256)));
    }
    expect_streams(tokenizer, ids, {});
    expect_streams(tokenizer, ids, {.skip_special = true});
  }
  for (const auto& text : hard_texts()) {
    expect_streams(tokenizer, tokenizer.encode(text, {.add_special = true}),
                   {.skip_special = true});
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, DetokenizerOf, testing::ValuesIn(kGoldenTokenizers));

TEST(IncrementalDetokenizer, HoldsBackOnlyAnUnfinishedCharacter) {
  const Tokenizer tokenizer = Tokenizer::load(golden_tokenizers() / "unknown_pattern");
  const auto id_of = [&](std::string_view character) { return *tokenizer.token_id(character); };
  IncrementalDetokenizer detokenizer(tokenizer, {});
  EXPECT_EQ(detokenizer.push(id_of("Ã")), "");
  EXPECT_EQ(detokenizer.push(id_of("©")), "é");
  EXPECT_EQ(detokenizer.push(id_of("ð")), "");
  EXPECT_EQ(detokenizer.push(id_of("a")), "\uFFFDa");
  EXPECT_EQ(detokenizer.push(id_of("ð")), "");
  expect_error(ErrorCode::invalid, {"the token id -1"}, [&] { detokenizer.push(-1); });
  EXPECT_EQ(detokenizer.finish(), "\uFFFD");
  EXPECT_EQ(detokenizer.finish(), "");
}

// Adjacent bytes are text together, or U+FFFD each; only the end of the run decides.
TEST(IncrementalDetokenizer, HoldsBackARunOfBytes) {
  const Tokenizer tokenizer = Tokenizer::load(golden_tokenizers() / "prepended");
  const auto id_of = [&](std::string_view text) { return *tokenizer.token_id(text); };
  IncrementalDetokenizer detokenizer(tokenizer, {});
  EXPECT_EQ(detokenizer.push(id_of("▁")), "");  // the tokenizer added the space before a text
  EXPECT_EQ(detokenizer.push(id_of("<0xC3>")), "");
  EXPECT_EQ(detokenizer.push(id_of("<0xA9>")), "");
  EXPECT_EQ(detokenizer.push(id_of("a")), "éa");
  EXPECT_EQ(detokenizer.push(id_of("<0xC3>")), "");
  EXPECT_EQ(detokenizer.push(id_of("<0xA9>")), "");
  EXPECT_EQ(detokenizer.push(id_of("<0xFF>")), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(detokenizer.push(id_of("<0x41>")), "\uFFFD");
  EXPECT_EQ(detokenizer.push(id_of("▁")), " ");
  EXPECT_EQ(detokenizer.push(id_of("<0x41>")), "");
  EXPECT_EQ(detokenizer.finish(), "A");
  EXPECT_EQ(tokenizer.token_bytes(id_of("<0xFF>")), "\xFF");
  EXPECT_EQ(tokenizer.token_bytes(id_of("▁")), " ");
}

}  // namespace
}  // namespace paceline
