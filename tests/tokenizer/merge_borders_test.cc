#include "tokenizer/merge_borders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "paceline/tokenizer.h"
#include "tests/test_scale.h"
#include "tests/tokenizer/random_text.h"

namespace paceline {
namespace {

using Parts = std::vector<std::string_view>;

Parts parts_of(const MergeBorders& borders, std::string_view text) {
  Parts parts;
  borders.for_each_part(text, [&](std::string_view part) { parts.push_back(part); });
  return parts;
}

TEST(MergeBorders, CutsWhereNoMergeHasItsSeam) {
  MergeBorders borders(3);
  EXPECT_EQ(parts_of(borders, "ab▁"), (Parts{"a", "b", "▁"}));
  borders.add_seam("▁", "th");
  borders.add_seam("t", "h");
  borders.add_seam("▁th", "é");
  EXPECT_EQ(parts_of(borders, "▁thé▁t"), (Parts{"▁thé", "▁t"}));
  EXPECT_EQ(parts_of(borders, "t"), Parts{"t"});
  EXPECT_EQ(parts_of(borders, ""), Parts{});
}

TEST(MergeBorders, EverySeamIsKept) {
  RandomText random(3);
  std::vector<std::pair<char32_t, char32_t>> pairs;
  MergeBorders borders(20'000);
  for (int i = 0; i < 2000; ++i) {
    pairs.emplace_back(random.code_point(), random.code_point());
    std::string left = "x", right;
    append_utf8(left, pairs.back().first);
    append_utf8(right, pairs.back().second);
    borders.add_seam(left, right + "x");
  }
  for (const auto& [left, right] : pairs) EXPECT_TRUE(borders.may_join(left, right));
  int seeming = 0;
  for (int i = 0; i < 10'000; ++i) {
    if (borders.may_join(random.code_point(), random.code_point())) ++seeming;
  }
  EXPECT_LT(seeming, 1500);
}

// A tokenizer.json over a few characters, in which several pairs may make the same token, a later
// merge may have the lower rank, and bytes or the token for unknown characters may merge.
class RandomFile {
 public:
  explicit RandomFile(RandomText& random) : random_(random) {
    const size_t num_letters = 2 + random_.below(std::size(kLetters) - 2);
    for (size_t i = 0; i < num_letters; ++i) add(kLetters[i]);
    const bool all_bytes = random_.below(4) != 0;
    for (int byte = 0; byte < 256; ++byte) {
      char name[8];
      std::snprintf(name, sizeof(name), "<0x%02X>", static_cast<unsigned>(byte));
      if (all_bytes || random_.below(8) != 0) fallback_.emplace_back(name);
    }
    const bool odd_tokens_merge = random_.below(4) == 0;
    if (odd_tokens_merge) {
      for (const char* name : {"<0xC3>", "<0xA9>", "<0x7A>", "<unk>"}) add(name);
    }
    for (size_t i = 10 + random_.below(40); i > 0; --i) add_merge();
    has_unk_ = odd_tokens_merge || random_.below(2) == 0;
  }

  std::string json() const {
    std::string vocabulary;
    int id = 0;
    const auto put = [&](const std::string& token) {
      vocabulary += (id == 0 ? "\"" : ", \"") + token + "\": " + std::to_string(id);
      ++id;
    };
    for (const std::string& token : tokens_) put(token);
    for (const std::string& token : fallback_) {
      if (!has(token)) put(token);
    }
    if (has_unk_ && !has("<unk>")) put("<unk>");
    const auto flag = [&] { return random_.below(2) == 0 ? "true" : "false"; };
    return std::string(R"({"added_tokens": [], "normalizer": null, "pre_tokenizer": null,
        "decoder": {"type": "Fuse"}, "model": {"type": "BPE", "byte_fallback": )") +
           (random_.below(5) == 0 ? "false" : "true") + R"(, "fuse_unk": )" + flag() +
           R"(, "ignore_merges": )" + flag() + R"(, "unk_token": )" +
           (has_unk_ ? "\"<unk>\"" : "null") + R"(, "vocab": {)" + vocabulary +
           R"(}, "merges": [)" + merges_ + "]}}";
  }

  std::string text() const {
    std::string text;
    for (size_t i = random_.below(60); i > 0; --i) {
      if (random_.below(8) == 0) {
        text += random_.below(2) == 0 ? "z" : "<0x7A>";  // unknown, or a byte token written as text
      } else {
        text += kLetters[random_.below(std::size(kLetters))];
      }
    }
    return text;
  }

 private:
  static constexpr const char* kLetters[] = {"a", "b", "▁", "é", "你", "c", "😀"};

  bool has(const std::string& token) const {
    return std::find(tokens_.begin(), tokens_.end(), token) != tokens_.end();
  }
  void add(const std::string& token) {
    if (!has(token)) tokens_.push_back(token);
  }
  void add_merge() {
    const std::string left = tokens_[random_.below(tokens_.size())];
    const std::string right = tokens_[random_.below(tokens_.size())];
    if (left.size() + right.size() > 30) return;
    add(left + right);
    merges_ += (merges_.empty() ? "[\"" : ", [\"") + left + "\", \"" + right + "\"]";
  }

  RandomText& random_;
  std::vector<std::string> tokens_;
  std::vector<std::string> fallback_;
  std::string merges_;
  bool has_unk_ = false;
};

// With spans a piece is merged as a whole.
TEST(MergeBorders, CuttingChangesNoResult) {
  RandomText random(4);
  size_t merged = 0;
  const int num_rounds = scaled(400, 40'000);
  for (int round = 0; round < num_rounds; ++round) {
    const RandomFile file(random);
    const std::string json = file.json();
    const Tokenizer tokenizer = Tokenizer::from_json(json, "random.json");
    for (int i = 0; i < 25; ++i) {
      const std::string text = file.text();
      const Encoding whole = tokenizer.encode_with_spans(text);
      ASSERT_EQ(tokenizer.encode(text), whole.ids) << text << '\n' << json;
      merged += text.size() - std::min(text.size(), whole.ids.size());
    }
  }
  EXPECT_GT(merged, 50'000u);
}

// The texts of byte tokens, which name their merges, differ from the text that they stand for.
TEST(MergeBorders, BytesThatMergeAreNotCut) {
  std::string vocabulary = R"("<0x41><0x42>": 300)";
  for (int byte = 0; byte < 256; ++byte) {
    char entry[24];
    std::snprintf(entry, sizeof(entry), ", \"<0x%02X>\": %d", static_cast<unsigned>(byte), byte);
    vocabulary += entry;
  }
  const std::string json =
      R"({"added_tokens": [], "normalizer": null, "pre_tokenizer": null, "decoder": {"type": "Fuse"},
          "model": {"type": "BPE", "byte_fallback": true, "vocab": {)" +
      vocabulary + R"(}, "merges": ["<0x41> <0x42>"]}})";
  const Tokenizer tokenizer = Tokenizer::from_json(json, "bytes.json");
  EXPECT_EQ(tokenizer.encode("xABx"), (std::vector<TokenId>{'x', 300, 'x'}));
}

}  // namespace
}  // namespace paceline
