#include "tokenizer/pre_tokenizer.h"

#include <gtest/gtest.h>

#include "tokenizer/character_splits.h"
#include "tokenizer/unicode_class.h"

namespace paceline {
namespace {

std::string cut(const PreTokenizer& pre_tokenizer, std::string_view text) {
  TextStore store(text);
  Pieces pieces{{text}, store};
  pre_tokenizer.split(pieces);
  std::string result;
  for (const std::string_view piece : pieces.views) {
    EXPECT_FALSE(piece.empty());
    if (!result.empty()) result += '|';
    result += piece;
  }
  return result;
}

std::string cut_at(std::string_view text, SplitBehavior behavior,
                   PatternSplit::Matches matches = PatternSplit::Matches::as_found) {
  return cut(PatternSplit(make_string_pattern("-"), behavior, matches), text);
}

TEST(PatternSplit, Behaviors) {
  const std::string_view text = "the-final--countdown";
  EXPECT_EQ(cut_at(text, SplitBehavior::removed), "the|final|countdown");
  EXPECT_EQ(cut_at(text, SplitBehavior::isolated), "the|-|final|-|-|countdown");
  EXPECT_EQ(cut_at(text, SplitBehavior::merged_with_previous), "the-|final-|-|countdown");
  EXPECT_EQ(cut_at(text, SplitBehavior::merged_with_next), "the|-final|-|-countdown");
  EXPECT_EQ(cut_at(text, SplitBehavior::contiguous), "the|-|final|--|countdown");
  EXPECT_EQ(cut_at("--", SplitBehavior::removed), "");
  EXPECT_EQ(cut_at("-a-", SplitBehavior::merged_with_previous), "-|a-");
  EXPECT_EQ(cut_at("-a-", SplitBehavior::merged_with_next), "-a|-");
}

TEST(PatternSplit, InvertedTheRestMatches) {
  const auto inverted = PatternSplit::Matches::inverted;
  EXPECT_EQ(cut_at("the-final", SplitBehavior::removed, inverted), "-");
  EXPECT_EQ(cut_at("the-final", SplitBehavior::merged_with_previous, inverted), "the|-final");
}

TEST(ClassSplit, CutsAtCharacters) {
  EXPECT_EQ(cut(ClassSplit(kDigit, SplitBehavior::isolated), "a12\u0663b"), "a|1|2|\u0663|b");
  EXPECT_EQ(cut(ClassSplit(kDigit, SplitBehavior::contiguous), "a12\u0663b"), "a|12\u0663|b");
  EXPECT_EQ(cut(ClassSplit(kSpace, SplitBehavior::removed), " a\u3000 b"), "a|b");
  EXPECT_EQ(cut(ClassSplit(kPunctuationMark, SplitBehavior::isolated), "a$«"), "a|$|«");
  EXPECT_EQ(cut(WordSplit(), " it's\u00A03.14 !? "), "it|'|s|3|.|14|!?");
}

TEST(MetaspaceSplit, MarksSpacesAndTheBeginning) {
  using Prepend = MetaspaceSplit::Prepend;
  const auto metaspace = [](Prepend prepend, bool split) {
    return MetaspaceSplit({.replacement = "▁", .prepend = prepend, .split = split});
  };
  EXPECT_EQ(cut(metaspace(Prepend::always, true), "a b  c"), "▁a|▁b|▁|▁c");
  EXPECT_EQ(cut(metaspace(Prepend::always, true), " a▁"), "▁a|▁");
  EXPECT_EQ(cut(metaspace(Prepend::never, false), "a b"), "a▁b");
  EXPECT_EQ(cut(metaspace(Prepend::first, false), "a b"), "▁a▁b");
  const std::string_view text = "xa b";
  TextStore store(text);
  Pieces pieces{{text.substr(0, 1), text.substr(1)}, store};
  metaspace(Prepend::first, false).split(pieces);
  EXPECT_EQ(pieces.views, (std::vector<std::string_view>{"▁x", "a▁b"}));
}

}  // namespace
}  // namespace paceline
