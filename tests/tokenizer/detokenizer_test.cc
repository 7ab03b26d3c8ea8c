#include "tokenizer/detokenizer.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/utf8.h"
#include "tests/tokenizer/golden_file.h"
#include "tests/tokenizer/random_text.h"

namespace paceline {
namespace {

void expect_streams(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                    DecodeOptions options) {
  IncrementalDetokenizer detokenizer(tokenizer, options);
  std::string streamed;
  for (size_t i = 0; i < ids.size(); ++i) {
    streamed += detokenizer.push(ids[i]);
    ASSERT_TRUE(is_valid_utf8(streamed));
    const std::string full = tokenizer.decode({ids.data(), i + 1}, options);
    ASSERT_TRUE(full.starts_with(streamed)) << full;
    IncrementalDetokenizer so_far = detokenizer;
    ASSERT_EQ(streamed + so_far.finish(), full);
  }
}

// Tokens at random are full of bytes that begin, continue and break characters.
TEST(IncrementalDetokenizer, EqualsTheFullDecodeOnEveryPrefix) {
  const auto tokenizer = Tokenizer::load(golden_tokenizers() / "odd_flags");
  RandomText random(11);
  const auto bound = static_cast<size_t>(tokenizer->vocab_size());
  for (int i = 0; i < 300; ++i) {
    std::vector<TokenId> ids(random.below(40));
    for (TokenId& id : ids) {
      id = static_cast<TokenId>(random.below(random.below(2) == 0 ? bound : 256));
    }
    expect_streams(*tokenizer, ids, {});
    expect_streams(*tokenizer, ids, {.skip_special = true});
  }
  for (const auto& text : hard_texts()) {
    expect_streams(*tokenizer, tokenizer->encode(text, {.add_special = true}),
                   {.skip_special = true});
  }
}

TEST(IncrementalDetokenizer, HoldsBackOnlyAnUnfinishedCharacter) {
  const auto tokenizer = Tokenizer::load(golden_tokenizers() / "unknown_pattern");
  const auto id_of = [&](std::string_view character) { return *tokenizer->token_id(character); };
  IncrementalDetokenizer detokenizer(*tokenizer, {});
  EXPECT_EQ(detokenizer.push(id_of("Ã")), "");
  EXPECT_EQ(detokenizer.push(id_of("©")), "é");
  EXPECT_EQ(detokenizer.push(id_of("ð")), "");
  EXPECT_EQ(detokenizer.push(id_of("a")), "\uFFFDa");
  EXPECT_EQ(detokenizer.push(id_of("ð")), "");
  EXPECT_THROW(detokenizer.push(-1), Error);
  EXPECT_EQ(detokenizer.finish(), "\uFFFD");
  EXPECT_EQ(detokenizer.finish(), "");
}

}  // namespace
}  // namespace paceline
