#include "tokenizer/normalizer.h"

#include <gtest/gtest.h>

#include "tests/tokenizer/random_text.h"

namespace paceline {
namespace {

std::string nfc(std::string_view text) {
  std::string storage;
  return std::string(NfcNormalizer().normalize(text, storage));
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
  std::string storage;
  EXPECT_EQ(NfcNormalizer().normalize(text, storage).data(), text.data());
}

TEST(NfcNormalizer, IsIdempotentAndKeepsBoundaries) {
  RandomText random(4);
  for (int i = 0; i < 5000; ++i) {
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

TEST(NormalizerSequence, AppliesItsStepsInOrder) {
  std::string storage;
  EXPECT_EQ(NormalizerSequence({}).normalize("e\u0301", storage), "e\u0301");
  std::vector<std::unique_ptr<Normalizer>> steps;
  steps.push_back(std::make_unique<NfcNormalizer>());
  steps.push_back(std::make_unique<NfcNormalizer>());
  const NormalizerSequence twice(std::move(steps));
  EXPECT_EQ(twice.normalize("e\u0301", storage), "é");
  EXPECT_EQ(twice.normalize("plain", storage), "plain");
}

}  // namespace
}  // namespace paceline
