// Tokenizers of encoders: WordPiece, vocab.txt, pairs of texts, lower case; and what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "base/model_files.h"
#include "paceline/tokenizer.h"
#include "tests/expect_error.h"
#include "tokenizer/prefix_table.h"

namespace paceline {
namespace {

using TokenIds = std::vector<TokenId>;

constexpr std::string_view kWordPieces = R"({"added_tokens": [],
  "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
  "pre_tokenizer": {"type": "BertPreTokenizer"},
  "post_processor": {"type": "BertProcessing", "sep": ["s", 3], "cls": ["c", 2]},
  "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
  "model": {"type": "WordPiece", "unk_token": "u", "continuing_subword_prefix": "##", "max_input_chars_per_word": 6,
    "vocab": {"p": 0, "u": 1, "c": 2, "s": 3, "a": 4, "ab": 5, "##b": 6, "##bc": 7, "##": 8, "#": 9}}})";

std::string with(std::string_view from, std::string_view to) {
  std::string json(kWordPieces);
  const size_t at = json.find(from);
  if (at == std::string::npos) throw std::logic_error("not in the file: " + std::string(from));
  return json.replace(at, from.size(), to);
}

TokenIds ids_of(std::string_view json, std::string_view text) {
  return Tokenizer::from_json(json, "t.json").encode(text);
}

std::string refused(std::string_view json) {
  return error_text([&] { Tokenizer::from_json(json, "t.json"); });
}

TEST(WordPiece, TakesTheLongestTokenFirst) {
  EXPECT_EQ(ids_of(kWordPieces, "AB a abb abbc \u00c1b"), (TokenIds{5, 4, 5, 6, 5, 7, 5}));
  EXPECT_EQ(ids_of(kWordPieces, "abcd b"), (TokenIds{1, 1}));  // no other way is tried
  EXPECT_EQ(ids_of(kWordPieces, "abbbbb abbbbbb"), (TokenIds{5, 6, 6, 6, 6, 1}));
  EXPECT_EQ(ids_of(with(R"("type": "WordPiece", "unk)", R"("unk)"), "abb"), (TokenIds{5, 6}));
  EXPECT_EQ(ids_of(with(R"(word": 6)", R"(word": 0)"), "a ab"), (TokenIds{1, 1}));
  EXPECT_EQ(ids_of(with(R"(prefix": "##", "max)", R"(prefix": "", "max)"), "aab#"),
            (TokenIds{4, 5, 9}));
}

TEST(WordPiece, RefusesWhatIsWrong) {
  EXPECT_NE(refused(with(R"("unk_token": "u")", R"("unk_token": "x")")).find("isn't in vocab"),
            std::string::npos);
  const std::string max = R"(, "max_input_chars_per_word": 6)";
  const std::pair<std::string, std::string> changes[] = {
      {max, ""},
      {max, R"(, "max_input_chars_per_word": -1)"},
      {max, R"(, "max_input_chars_per_word": "6")"},
      {max, R"(, "max_input_chars_per_word": 1e300)"},
      {R"("unk_token": "u", )", ""},
      {R"("continuing_subword_prefix": "##", )", ""},
      {R"("#": 9)", R"("#": 99999999)"},
      {R"("#": 9)", R"("#": 8)"},
      {R"(["c", 2])", R"(["c", 77])"},
      {R"("lowercase": true)", R"("lowercase": null)"},
      {R"("strip_accents": null)", R"("strip_accents": 1)"}};
  for (const auto& [from, to] : changes) {
    EXPECT_TRUE(refused(with(from, to)).starts_with("corrupt: t.json")) << to;
  }
}

TEST(Precompiled, RefusesWhatIsWrong) {
  for (const char* map : {"", "!", "AAAA", "/////w==", "AwAAAAAAAAAA"}) {
    const std::string part =
        std::string(R"({"type": "Precompiled", "precompiled_charsmap": ")") + map + R"(", "clean)";
    EXPECT_TRUE(refused(with(R"({"type": "BertNormalizer", "clean)", part)).starts_with("corrupt"))
        << map;
  }
}

// HF tokenizers reads numbers by a division that rounds twice, and so the two scores are equal for
// it: the path that was found first wins.
TEST(UnigramScores, AreReadAsSerdeReadsThem) {
  constexpr std::string_view kModel = R"({"added_tokens": [], "model": {"type": "Unigram",
    "unk_id": 0, "vocab": [["u", 0], ["a", 0], ["c", 0], ["ab", -7.3464223328362985],
                           ["bc", -7.346422332836299]]}})";
  EXPECT_EQ(ids_of(kModel, "abc"), (TokenIds{1, 4}));
}

// As tokenizers' longest_first: the shorter text keeps up to half.
TEST(EncodePair, IsCutAtTheLongerText) {
  const Tokenizer tokenizer = Tokenizer::from_json(kWordPieces, "t.json");
  const auto lengths = [&](std::string_view first, std::string_view second, PairLimit limit) {
    const auto types = tokenizer.encode_pair(first, second, {.add_special = true}, limit).type_ids;
    const auto of_second = std::ranges::count(types, 1);
    return std::pair(std::ssize(types) - of_second, static_cast<int64_t>(of_second));
  };
  const std::string_view one = "a", five = "a a a a a", eight = "a a a a a a a a";
  using Lengths = std::pair<int64_t, int64_t>;  // [CLS] first [SEP], second [SEP]
  EXPECT_EQ(lengths(five, eight, {.max_tokens = 16}), Lengths(7, 9));
  EXPECT_EQ(lengths(five, eight, {.max_tokens = 15}), Lengths(7, 8));
  EXPECT_EQ(lengths(eight, five, {.max_tokens = 12}), Lengths(7, 5));
  EXPECT_EQ(lengths(eight, eight, {.max_tokens = 12}), Lengths(6, 6));
  EXPECT_EQ(lengths(one, eight, {.max_tokens = 8}), Lengths(3, 5));
  EXPECT_EQ(lengths(one, eight, {.max_tokens = 2}), Lengths(2, 1));
  const auto ids = tokenizer.encode_pair("a ab", "ab a", {}, PairLimit{2, true}).ids;
  EXPECT_EQ(ids, (TokenIds{5, 4}));
}

TEST(EncodePair, NeedsATemplateForPairs) {
  const Tokenizer tokenizer = Tokenizer::from_json(kWordPieces, "t.json");
  const PairEncoding pair = tokenizer.encode_pair("a", "ab a", {.add_special = true});
  EXPECT_EQ(pair.ids, (TokenIds{2, 4, 3, 5, 4, 3}));
  EXPECT_EQ(pair.type_ids, (std::vector<int32_t>{0, 0, 0, 1, 1, 1}));
  constexpr std::string_view kBert =
      R"({"type": "BertProcessing", "sep": ["s", 3], "cls": ["c", 2]})";
  const Tokenizer single = Tokenizer::from_json(
      with(
          kBert,
          R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens": {}})"),
      "t.json");
  EXPECT_TRUE(error_text([&] { single.encode_pair("a", "b"); }).starts_with("unsupported: pairs"));
}

ModelFiles files_of_lines(const std::string& lines, const std::string& config) {
  return {"m", ModelFiles::Makers{{"vocab.txt", [lines] { return lines; }},
                                  {"tokenizer_config.json", [config] { return config; }}}};
}

constexpr const char* kLines = "[PAD]\n[UNK]\n[CLS]\r\n[SEP]\n[MASK]\nab\n##c\nab\n\nAb\n\u00e4b\n";

TEST(VocabTxt, IsReadAsBertTokenizerReadsIt) {
  const auto ids = [](const std::string& config, std::string_view text) {
    return Tokenizer::load(files_of_lines(kLines, config)).encode(text, {.add_special = true});
  };
  const std::string lower = R"({"tokenizer_class": "BertTokenizer"})";
  EXPECT_EQ(ids(lower, "Abc \u00e4b [MASK]"), (TokenIds{2, 7, 6, 7, 4, 3}));
  const std::string cased = R"({"do_lower_case": false, "never_split": ["x"]})";
  EXPECT_EQ(ids(cased, "Abc \u00e4b abc"), (TokenIds{2, 9, 6, 10, 7, 6, 3}));
  const std::string accents = R"({"strip_accents": false})";
  EXPECT_EQ(ids(accents, "\u00c4B"), (TokenIds{2, 10, 3}));
}

TEST(VocabTxt, IsRefusedWithoutItsTokensAndForOtherClasses) {
  const auto error = [](const std::string& lines, const std::string& config) {
    return error_text([&] { Tokenizer::load(files_of_lines(lines, config)); });
  };
  EXPECT_NE(error("[UNK]\nab\n", "{}").find("[CLS]"), std::string::npos);
  EXPECT_NE(error(kLines, R"({"tokenizer_class": "FunnelTokenizer"})").find("FunnelTokenizer"),
            std::string::npos);
  EXPECT_NE(error("\xFF\n", "{}").find("UTF-8"), std::string::npos);
}

TEST(SentenceTransformersCase, LowersTheTextBeforeTheNormalizer) {
  const auto load = [](const std::string& sentence) {
    const std::string json = with(R"("lowercase": true)", R"("lowercase": false)");
    return Tokenizer::load(ModelFiles(
        "m", ModelFiles::Makers{{"tokenizer.json", [json] { return json; }},
                                {"modules.json", [] { return std::string("[]"); }},
                                {"sentence_bert_config.json", [sentence] { return sentence; }}}));
  };
  EXPECT_EQ(load("{}").encode("AB"), (TokenIds{1}));
  EXPECT_EQ(load(R"({"do_lower_case": true})").encode("AB"), (TokenIds{5}));
}

TEST(PrefixTable, FindsWhatASearchThroughAllFinds) {
  std::mt19937 random(5);
  const auto draw = [&random](size_t longest) {
    std::string text(1 + random() % longest, ' ');
    for (char& c : text)
      c = "\x01"
          "ab\xE4\xFF"[random() % 5];
    return text;
  };
  std::vector<std::string> texts;
  for (int i = 0; i < 300; ++i) texts.push_back(draw(6));
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  PrefixTable table(2000);
  for (size_t i = 0; i < texts.size(); ++i) table.add(texts[i], static_cast<TokenId>(i), 0);
  table.finish();
  for (int i = 0; i < 1000; ++i) {
    const std::string text = draw(9);
    TokenIds expected;
    TokenIds found;
    for (size_t id = 0; id < texts.size(); ++id) {
      if (text.starts_with(texts[id])) expected.push_back(static_cast<TokenId>(id));
    }
    table.for_each_prefix(text, [&](const PrefixTable::Entry& one) { found.push_back(one.id); });
    ASSERT_EQ(found, expected);  // ascending texts: the shorter first
  }
}

}  // namespace
}  // namespace paceline
