#include "tokenizer/byte_level.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/test_scale.h"
#include "tests/tokenizer/random_text.h"
#include "tokenizer/unicode_class.h"
#include "tokenizer/vocabulary.h"

namespace paceline {
namespace {

TEST(ByteLevel, TheAlphabetOfGpt2) {
  std::set<std::string_view> characters;
  for (int byte = 0; byte < 256; ++byte) {
    const auto character = byte_level_character(static_cast<uint8_t>(byte));
    EXPECT_TRUE(characters.insert(character).second);
    EXPECT_EQ(from_byte_level(character), std::string(1, static_cast<char>(byte)));
  }
  EXPECT_EQ(to_byte_level(" a\n\x7F\xC3\xA9\xAD"), "ĠaĊġÃ©Ń");
  EXPECT_EQ(byte_level_character(0), "Ā");
  EXPECT_EQ(from_byte_level("Ġhello"), " hello");
}

TEST(ByteLevel, OtherCharactersStandForThemselves) {
  EXPECT_EQ(from_byte_level("<｜begin▁of▁sentence｜>"), "<｜begin▁of▁sentence｜>");
  EXPECT_EQ(from_byte_level("Ġ b"), "Ġ b");  // a space isn't in the alphabet
  EXPECT_EQ(from_byte_level(""), "");
}

TEST(ByteLevel, RoundTrip) {
  RandomText random(12);
  const int num_rounds = scaled(1000, 100'000);
  for (int i = 0; i < num_rounds; ++i) {
    const std::string bytes = random.bytes(50);
    const std::string text = to_byte_level(bytes);
    ASSERT_TRUE(is_valid_utf8(text));
    ASSERT_EQ(from_byte_level(text), bytes);
  }
}

TEST(UnicodeClassTable, KnowsItsClasses) {
  const auto& table = UnicodeClassTable::shared();
  EXPECT_EQ(table.of('a'), kLetter | kWord);
  EXPECT_EQ(table.of('7'), kNumber | kWord | kDigit);
  EXPECT_EQ(table.of('_'), kPunctuation | kWord | kPunctuationMark);
  EXPECT_EQ(table.of('$'), kSymbol | kPunctuationMark);
  EXPECT_EQ(table.of('\n'), kSpace);
  EXPECT_EQ(table.of(0x85), kSpace);
  EXPECT_EQ(table.of(0x180E), 0);  // no space since Unicode 6.3
  EXPECT_EQ(table.of(0x301), kMark | kWord | kNfcActive | kAccent);
  EXPECT_EQ(table.of(0x898), kMark | kWord | kNfcBarrier);
  EXPECT_EQ(table.of(0x2EBF0), kLetter | kWord);  // Unicode 15.1
  EXPECT_EQ(table.of(0x1161), kLetter | kWord | kNfcActive);
  EXPECT_EQ(table.of(0x200D), kWord);  // a joiner
  EXPECT_EQ(table.of(0x10FFFF), 0);
}

TEST(Vocabulary, FindsWhatWasInserted) {
  RandomText random(13);
  Vocabulary vocabulary(3000);
  std::vector<std::string> texts;
  std::set<std::string> known;
  for (TokenId id = 0; id < 3000; ++id) {
    std::string text = random.bytes(20) + std::to_string(id);
    ASSERT_EQ(vocabulary.insert(text, 2 * id), Vocabulary::Inserted::yes);
    texts.push_back(std::move(text));
  }
  EXPECT_EQ(vocabulary.num_tokens(), 3000u);
  EXPECT_EQ(vocabulary.id_limit(), 5999u);
  for (TokenId id = 0; id < 3000; ++id) {
    const std::string& text = texts[static_cast<size_t>(id)];
    EXPECT_EQ(vocabulary.find(text), 2 * id);
    EXPECT_EQ(vocabulary.text(2 * id), text);
    EXPECT_FALSE(vocabulary.contains(2 * id + 1));
    EXPECT_EQ(vocabulary.find(text + "x"), std::nullopt);
  }
  EXPECT_EQ(vocabulary.text(-1), "");
  EXPECT_EQ(vocabulary.text(6000), "");
}

TEST(Vocabulary, TakesNeitherATextNorAnIdTwice) {
  Vocabulary vocabulary(3);
  EXPECT_EQ(vocabulary.insert("", 5), Vocabulary::Inserted::yes);
  EXPECT_EQ(vocabulary.insert("", 6), Vocabulary::Inserted::text_is_taken);
  EXPECT_EQ(vocabulary.insert("a", 5), Vocabulary::Inserted::id_is_taken);
  EXPECT_TRUE(vocabulary.contains(5));
  EXPECT_EQ(vocabulary.find(""), 5);
}

}  // namespace
}  // namespace paceline
