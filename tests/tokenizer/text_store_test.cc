#include "tokenizer/text_store.h"

#include <gtest/gtest.h>

#include "tokenizer/text_normalizers.h"
#include "tokenizer/unicode_normalizer.h"

namespace paceline {
namespace {

// Every byte of the text with its span of the input, e.g. "a:0-1".
std::string traced(const TextStore& store, std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const TextSpan span = store.span(text.substr(i, 1));
    result += text.substr(i, 1);
    result += std::to_string(span.begin) + std::to_string(span.end) + " ";
  }
  return result;
}

TEST(TextStore, TheInputStandsForItself) {
  const std::string text = "aé";
  const TextStore store(text, TextStore::Spans::tracked);
  const TextSpan character = store.span(std::string_view(text).substr(2, 1));  // its second byte
  EXPECT_EQ(character.begin, 1u);
  EXPECT_EQ(character.end, 3u);
  EXPECT_TRUE(store.at_start(text));
  EXPECT_FALSE(store.at_start(std::string_view(text).substr(1)));
}

TEST(TextStore, RewritesAddUp) {
  const std::string text = "a b";
  TextStore store(text, TextStore::Spans::tracked);
  const ReplaceNormalizer replace(make_string_pattern(" "), "__");
  const std::string_view once = replace.normalize(text, store);
  EXPECT_EQ(traced(store, once), "a01 _12 _12 b23 ");
  const std::string_view twice = PrependNormalizer("xy").normalize(once, store);
  EXPECT_EQ(traced(store, twice), "x01 y01 a01 _12 _12 b23 ");
  EXPECT_TRUE(store.at_start(twice));
  EXPECT_TRUE(store.at_start(once));
  EXPECT_FALSE(store.at_start(once.substr(1)));
}

TEST(TextStore, WhatIsCutOffInFrontIsNoStart) {
  const std::string text = " a ";
  TextStore store(text, TextStore::Spans::tracked);
  const std::string_view stripped = StripNormalizer({}).normalize(text, store);
  EXPECT_EQ(traced(store, stripped), "a12 ");
  EXPECT_FALSE(store.at_start(stripped));
}

// A composed character stands for its base alone, as in HF tokenizers.
TEST(TextStore, Composition) {
  const std::string text = "e\u0301x";
  TextStore store(text, TextStore::Spans::tracked);
  const std::string_view composed = UnicodeNormalizer(UnicodeForm::nfc).normalize(text, store);
  ASSERT_EQ(composed, "\u00E9x");
  EXPECT_EQ(store.span(composed.substr(0, 2)).end, 1u);
  EXPECT_EQ(store.span(composed.substr(2)).begin, 3u);
}

}  // namespace
}  // namespace paceline
