#include "tokenizer/token_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/test_scale.h"
#include "tests/tokenizer/golden_file.h"
#include "tests/tokenizer/random_text.h"

namespace paceline {
namespace {

class LongDecode : public testing::TestWithParam<const char*> {};

// Token by token, and many at a time.
TEST_P(LongDecode, EqualsTheDetokenizer) {
  const Tokenizer tokenizer = Tokenizer::load(golden_tokenizers() / GetParam());
  RandomText random(8);
  const int num_rounds = scaled(60, 6000);
  for (int round = 0; round < num_rounds; ++round) {
    std::vector<TokenId> ids(random.below(6000));
    for (TokenId& id : ids) {
      id = static_cast<TokenId>(random.below(static_cast<size_t>(tokenizer.vocab_size())));
    }
    const DecodeOptions options{.skip_special = round % 2 == 0};
    IncrementalDetokenizer detokenizer(tokenizer, options);
    std::string expected;
    for (const TokenId id : ids) expected += detokenizer.push(id);
    expected += detokenizer.finish();
    ASSERT_EQ(tokenizer.decode(ids, options), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Small, LongDecode, testing::ValuesIn(kGoldenTokenizers));

// Tokens at the end of the table, and longer than what is copied at once.
TEST(TokenTable, AppendsTextsOfAnySize) {
  Vocabulary vocabulary(42);
  std::vector<TokenId> ids;
  std::string expected = "before ";
  for (TokenId id = 0; id < 42; ++id) {
    const std::string text(static_cast<size_t>(41 - id), static_cast<char>('A' + id));
    ASSERT_EQ(vocabulary.insert(text, id), Vocabulary::Inserted::yes);
    for (int i = 0; i < 100; ++i) {
      ids.push_back(id);
      expected += text;
    }
  }
  const AddedTokens none({}, nullptr);
  const TokenDecoder decoder;
  const TokenTable table(vocabulary, none, decoder);
  std::string out = "before ";
  EXPECT_EQ(table.append_texts(ids, {}, out), ids.size());
  EXPECT_EQ(out, expected);
  // Up to an id without a token.
  EXPECT_EQ(table.append_texts(std::vector<TokenId>{40, 42, 0}, {}, out), 1u);
  EXPECT_EQ(table.append_texts(std::vector<TokenId>{-1}, {}, out), 0u);
  EXPECT_EQ(table.append_texts({}, {}, out), 0u);
  EXPECT_EQ(out, expected + std::string(1, 'A' + 40));
}

}  // namespace
}  // namespace paceline
