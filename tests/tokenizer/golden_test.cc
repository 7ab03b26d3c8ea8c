// The tokenizer against encodings made by HF tokenizers.
#include "tests/tokenizer/golden_file.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

void expect_decodes(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                    const std::string& decoded) {
  EXPECT_EQ(tokenizer.decode(ids), decoded);
  IncrementalDetokenizer detokenizer(tokenizer);
  std::string streamed;
  for (const TokenId id : ids) streamed += detokenizer.push(id);
  EXPECT_EQ(streamed + detokenizer.finish(), decoded);
}

void expect_goldens(const std::filesystem::path& tokenizer_folder,
                    const std::filesystem::path& golden_folder) {
  const Tokenizer tokenizer = Tokenizer::load(tokenizer_folder);
  const Goldens goldens = read_goldens(golden_folder / "golden.jsonl");
  EXPECT_GE(goldens.encodings.size(), 45u);
  for (const GoldenEncoding& golden : goldens.encodings) {
    SCOPED_TRACE(golden.text);
    EXPECT_EQ(tokenizer.encode(golden.text), golden.ids);
    EXPECT_EQ(tokenizer.encode(golden.text, {.add_special = true}), golden.ids_with_special);
    EXPECT_EQ(tokenizer.encode(golden.text, {.specials_as_text = true}),
              golden.ids_special_as_text);
    EXPECT_EQ(tokenizer.decode(golden.ids_with_special, {.skip_special = true}),
              golden.decoded_skip_special);
    expect_decodes(tokenizer, golden.ids, golden.decoded);
    const Encoding encoding = tokenizer.encode_with_spans(golden.text);
    EXPECT_EQ(encoding.ids, golden.ids);
    if (!golden.spans) continue;
    std::vector<TokenId> spans;
    for (const TextSpan& span : encoding.spans) {
      spans.push_back(static_cast<TokenId>(span.begin));
      spans.push_back(static_cast<TokenId>(span.end));
    }
    EXPECT_EQ(spans, *golden.spans);
  }
  for (const GoldenPair& golden : goldens.pairs) {
    SCOPED_TRACE(golden.first + " | " + golden.second);
    const PairEncoding bare = tokenizer.encode_pair(golden.first, golden.second);
    EXPECT_EQ(bare.ids, golden.ids);
    EXPECT_EQ(bare.type_ids, golden.type_ids);
    const auto framed = tokenizer.encode_pair(golden.first, golden.second, {.add_special = true});
    EXPECT_EQ(framed.ids, golden.ids_with_special);
    EXPECT_EQ(framed.type_ids, golden.type_ids_with_special);
  }
  for (const GoldenDecoding& golden : goldens.decodings) {
    expect_decodes(tokenizer, golden.ids, golden.decoded);
  }
}

class TokenizerGolden : public testing::TestWithParam<const char*> {};

TEST_P(TokenizerGolden, EqualsHuggingFace) {
  const auto folder = golden_tokenizers() / GetParam();
  expect_goldens(folder, folder);
}

INSTANTIATE_TEST_SUITE_P(Small, TokenizerGolden, testing::ValuesIn(kGoldenTokenizers));

TEST(BundledTokenizerGolden, EqualsHuggingFace) {
  const auto folder = std::filesystem::path(PACELINE_SOURCE_DIR) / "models/paceline-10m";
  if (!std::filesystem::exists(folder / "tokenizer.json")) {
    GTEST_SKIP() << "the bundled model isn't in models/paceline-10m";
  }
  expect_goldens(folder, golden_tokenizers() / "bundled");
}

// The tokenizers of well-known models exist only on the developers' machines.
class SharedTokenizerGolden : public testing::TestWithParam<const char*> {};

TEST_P(SharedTokenizerGolden, EqualsHuggingFace) {
  const auto folder =
      std::filesystem::path(PACELINE_SOURCE_DIR) / "../shared/tokenizers" / GetParam();
  if (!std::filesystem::exists(folder)) {
    GTEST_SKIP() << "../shared/tokenizers/" << GetParam() << " isn't there: large goldens skipped";
  }
  expect_goldens(folder, folder);
}

INSTANTIATE_TEST_SUITE_P(Large, SharedTokenizerGolden,
                         testing::Values("qwen3", "llama3.2", "gpt2", "deepseek_v3", "gemma3",
                                         "mistral_v1"));

}  // namespace
}  // namespace paceline
