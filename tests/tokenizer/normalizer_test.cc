#include "tokenizer/unicode_normalizer.h"

#include <gtest/gtest.h>

#include "tests/test_scale.h"
#include "tests/tokenizer/random_text.h"
#include "tokenizer/text_normalizers.h"

namespace paceline {
namespace {

std::string nfc(std::string_view text) {
  TextStore store(text);
  return std::string(UnicodeNormalizer(UnicodeForm::nfc).normalize(text, store));
}

TEST(NfcNormalizer, Composes) {
  EXPECT_EQ(nfc("cafe\u0301"), "café");
  EXPECT_EQ(nfc("A\u030A \u212B"), "Å Å");
  EXPECT_EQ(nfc("q\u0307\u0323"), "q\u0323\u0307");
  EXPECT_EQ(nfc("\u1112\u1161\u11AB"), "한");
  EXPECT_EQ(nfc("\uAC00\u11A8"), "\uAC01");
  EXPECT_EQ(nfc("\u0958"), "\u0915\u093C");  // a composition exclusion
  EXPECT_EQ(nfc("\uF900"), "\u8C48");
  EXPECT_EQ(nfc("\u0301x"), "\u0301x");
  EXPECT_EQ(nfc(""), "");
}

// HF tokenizers has the NFC of Unicode 9.
TEST(NfcNormalizer, LeavesNewerCharactersAlone) {
  EXPECT_EQ(nfc("a\u0301\u0898\u0323"), "\u00E1\u0898\u0323");  // U+0898 came with Unicode 14
  EXPECT_EQ(nfc("\U00011935\U00011930"), "\U00011935\U00011930");
  EXPECT_EQ(nfc("\U00011938"), "\U00011938");
}

TEST(NfcNormalizer, ReturnsTheTextItselfWhenNothingChanges) {
  const std::string text = "nothing to do, déjà vu, 你好 한국어";
  TextStore store(text);
  EXPECT_EQ(UnicodeNormalizer(UnicodeForm::nfc).normalize(text, store).data(), text.data());
}

TEST(NfcNormalizer, IsIdempotentAndKeepsBoundaries) {
  RandomText random(4);
  const int num_rounds = scaled(5000, 500'000);
  for (int i = 0; i < num_rounds; ++i) {
    const std::string text = random.text(20);
    const std::string once = nfc(text);
    ASSERT_TRUE(is_valid_utf8(once));
    ASSERT_EQ(nfc(once), once) << text;
    ASSERT_EQ(nfc(text + " " + text), once + " " + once) << text;
  }
}

// utf8proc's own reordering would need hours for this.
TEST(NfcNormalizer, ALongRunOfMarksIsNotQuadratic) {
  std::string text = "a", expected = "\u1EA1";
  const size_t count = 500'000;
  for (size_t i = 0; i < count; ++i) text += "\u0307";
  for (size_t i = 0; i < count; ++i) text += "\u0323";
  for (size_t i = 1; i < count; ++i) expected += "\u0323";
  for (size_t i = 0; i < count; ++i) expected += "\u0307";
  EXPECT_EQ(nfc(text), expected);
}

std::string normalized(const Normalizer& normalizer, std::string_view text) {
  TextStore store(text);
  return std::string(normalizer.normalize(text, store));
}

TEST(UnicodeNormalizer, OtherForms) {
  const UnicodeNormalizer nfd(UnicodeForm::nfd), nfkc(UnicodeForm::nfkc), nfkd(UnicodeForm::nfkd);
  EXPECT_EQ(normalized(nfd, "caf\u00E9 \uAC01"), "cafe\u0301 \u1100\u1161\u11A8");
  EXPECT_EQ(normalized(nfkc, "\uFB01 \u2460 \uFF21 e\u0301"), "fi 1 A \u00E9");
  EXPECT_EQ(normalized(nfkd, "\u1E9B\u0323"), "s\u0323\u0307");
  EXPECT_EQ(normalized(nfkc, "\u32FF"), "\u32FF");  // Unicode 12's
  EXPECT_EQ(normalized(nfd, "\U00011938"), "\U00011938");
  EXPECT_EQ(normalized(nfkc, "ASCII"), "ASCII");
}

TEST(UnicodeNormalizer, ComposingWhatIsDecomposedIsNfc) {
  const UnicodeNormalizer composed(UnicodeForm::nfc), decomposed(UnicodeForm::nfd);
  RandomText random(14);
  const int num_rounds = scaled(3000, 300'000);
  for (int i = 0; i < num_rounds; ++i) {
    const std::string text = random.text(12);
    ASSERT_EQ(nfc(normalized(decomposed, text)), nfc(text)) << text;
  }
}

TEST(TextNormalizers, Characters) {
  EXPECT_EQ(normalized(LowercaseNormalizer(), "\u00C9\u0130\u03A3\u1E9E \U00016EA0Z"),
            "\u00E9i\u0307\u03C3\u00DF \U00016EBBz");
  EXPECT_EQ(normalized(StripAccentsNormalizer(), "e\u0301\u0E33"), "e\u0E33");
  EXPECT_EQ(normalized(NmtNormalizer(), "a\tb\u200B\u0001c"), "a b c");
  EXPECT_EQ(normalized(ByteLevelNormalizer(), " \u00E9"), "\u0120\u00C3\u00A9");
  EXPECT_EQ(normalized(StripNormalizer({.left = false}), " a\u3000"), " a");
  EXPECT_EQ(normalized(StripNormalizer({}), "  "), "");
  EXPECT_EQ(normalized(PrependNormalizer("x"), ""), "");
  EXPECT_EQ(normalized(ReplaceNormalizer(make_regex_pattern("a+", "t"), "-"), "aaba"), "-b-");
}

TEST(NormalizerSequence, AppliesItsStepsInOrder) {
  const std::string_view accent = "e\u0301";
  TextStore store(accent);
  EXPECT_EQ(NormalizerSequence({}).normalize(accent, store), accent);
  std::vector<std::unique_ptr<Normalizer>> steps;
  steps.push_back(std::make_unique<UnicodeNormalizer>(UnicodeForm::nfc));
  steps.push_back(std::make_unique<UnicodeNormalizer>(UnicodeForm::nfc));
  const NormalizerSequence twice(std::move(steps));
  EXPECT_EQ(twice.normalize(accent, store), "é");
  EXPECT_EQ(twice.normalize("plain", store), "plain");
}

}  // namespace
}  // namespace paceline
