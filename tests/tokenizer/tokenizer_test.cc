#include "paceline/tokenizer.h"

#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/expect_error.h"
#include "tests/test_directory.h"
#include "tests/test_scale.h"
#include "tests/tokenizer/golden_file.h"
#include "tests/tokenizer/random_text.h"
#include "tests/tokenizer/small_tokenizer.h"
#include "tokenizer/tokenizer_config.h"
#include "tokenizer/unicode_normalizer.h"

namespace paceline {
namespace {

using Ids = std::vector<TokenId>;

Tokenizer small() { return Tokenizer::from_json(kSmallTokenizer, "t.json"); }

TEST(Tokenizer, Small) {
  const auto tokenizer = small();
  EXPECT_EQ(tokenizer.vocab_size(), 10);
  EXPECT_EQ(tokenizer.encode("abc a<x>b"), (Ids{5, 6, 9, 1}));
  EXPECT_EQ(tokenizer.encode("ab", {.add_special = true}), (Ids{8, 4}));
  EXPECT_EQ(tokenizer.encode("", {.add_special = true}), (Ids{8}));
  EXPECT_EQ(tokenizer.encode("a<s>b<x>", {.specials_as_text = true}), (Ids{0, 1, 9}));
  EXPECT_EQ(tokenizer.encode("aéb"), (Ids{0, 7, 1}));  // a byte without a token is dropped
  EXPECT_EQ(tokenizer.decode(Ids{8, 6, 9}), "<s> a<x>");
  EXPECT_EQ(tokenizer.decode(Ids{8, 6, 9}, {.skip_special = true}), " a<x>");
  EXPECT_EQ(tokenizer.decode(Ids{7}), "\uFFFD");
}

TEST(Tokenizer, Ids) {
  const auto tokenizer = small();
  EXPECT_EQ(tokenizer.token_text(6), "Ġa");
  EXPECT_EQ(tokenizer.token_bytes(6), " a");
  EXPECT_EQ(tokenizer.token_bytes(7), "\xC3");
  EXPECT_EQ(tokenizer.token_text(9), "<x>");
  EXPECT_EQ(tokenizer.token_id("Ġa"), 6);
  EXPECT_EQ(tokenizer.token_id("<s>"), 8);
  EXPECT_EQ(tokenizer.token_id("no"), std::nullopt);
  EXPECT_TRUE(tokenizer.is_special(8));
  EXPECT_FALSE(tokenizer.is_special(9));
  EXPECT_FALSE(tokenizer.is_special(-1));
  for (const TokenId id : {-1, 10, 1 << 30}) {
    EXPECT_EQ(tokenizer.token_bytes(id), "");
    EXPECT_EQ(tokenizer.token_text(id), "");
    EXPECT_EQ(error_message(ErrorCode::invalid,
                            [&] {
                              tokenizer.decode(Ids{0, id});
                            }),
              "the token id " + std::to_string(id) + " is outside the vocabulary (0..9)");
  }
}

TEST(Tokenizer, AHoleAmongTheIdsIsNoToken) {
  const auto tokenizer = Tokenizer::from_json(changed(R"("id": 9)", R"("id": 30)"), "t.json");
  EXPECT_EQ(tokenizer.vocab_size(), 31);
  EXPECT_EQ(tokenizer.token_text(20), "");
  EXPECT_EQ(tokenizer.decode(Ids{0, 20, 30}), "a<x>");
}

TEST(Tokenizer, IllFormedTextIsRepairedFirst) {
  const auto tokenizer = Tokenizer::load(golden_tokenizers() / "unknown_pattern");
  RandomText random(7);
  const int num_rounds = scaled(2000, 200'000);
  for (int i = 0; i < num_rounds; ++i) {
    const std::string bytes = random.bytes(40);
    const std::string repaired = replace_invalid_utf8(bytes);
    const Ids ids = tokenizer.encode(bytes);
    ASSERT_EQ(ids, tokenizer.encode(repaired));
    ASSERT_EQ(tokenizer.decode(ids), repaired);
  }
}

// Every byte is in these vocabularies, and nothing is stripped: decoding gives back the normalised
// text.
TEST(Tokenizer, DecodeInvertsEncode) {
  const auto plain = Tokenizer::load(golden_tokenizers() / "unknown_pattern");
  std::string json =
      read_text_file(golden_tokenizers() / "unknown_pattern/tokenizer.json", 1 << 20);
  const std::string none = R"("normalizer":{"type":"Sequence","normalizers":[]})";
  ASSERT_NE(json.find(none), std::string::npos);
  json.replace(json.find(none), none.size(), R"("normalizer":{"type":"NFC"})");
  const auto normalizing = Tokenizer::from_json(json, "t.json");
  RandomText random(8);
  const int num_rounds = scaled(3000, 300'000);
  for (int i = 0; i < num_rounds; ++i) {
    const std::string text = random.text(20);
    TextStore store(text);
    ASSERT_EQ(plain.decode(plain.encode(text)), text);
    ASSERT_EQ(normalizing.decode(normalizing.encode(text)),
              UnicodeNormalizer(UnicodeForm::nfc).normalize(text, store));
  }
}

TEST(Tokenizer, TokenBytesAddUpToTheDecodedText) {
  const auto tokenizer = Tokenizer::load(golden_tokenizers() / "odd_flags");
  RandomText random(9);
  const int num_rounds = scaled(1000, 100'000);
  for (int i = 0; i < num_rounds; ++i) {
    Ids ids(random.below(30));
    for (TokenId& id : ids)
      id = static_cast<TokenId>(random.below(static_cast<size_t>(tokenizer.vocab_size())));
    std::string bytes;
    for (const TokenId id : ids) bytes += tokenizer.token_bytes(id);
    ASSERT_EQ(tokenizer.decode(ids), replace_invalid_utf8(bytes));
  }
}

// The second time words come from the cache; colliding words replace each other.
TEST(Tokenizer, TheCacheChangesNothing) {
  const auto tokenizer = Tokenizer::load(golden_tokenizers() / "odd_flags");
  RandomText random(10);
  std::string text;
  Ids expected;
  const int num_words = scaled(4000, 400'000);
  for (int i = 0; i < num_words; ++i) {
    const std::string word =
        random.text(3) + "<longer>";  // an added token: what follows is on its own
    text += word;
    const Ids ids = tokenizer.encode(word);
    expected.insert(expected.end(), ids.begin(), ids.end());
  }
  EXPECT_EQ(tokenizer.encode(text), expected);
}

TEST(Tokenizer, ThreadsShareIt) {
  const auto tokenizer = Tokenizer::load(golden_tokenizers() / "unknown_pattern");
  const auto texts = hard_texts();
  std::vector<Ids> expected;
  for (const auto& text : texts) expected.push_back(tokenizer.encode(text));
  std::vector<std::jthread> threads;
  std::vector<int> differences(4);
  for (int& count : differences) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        for (size_t i = 0; i < texts.size(); ++i) {
          if (tokenizer.encode(texts[i]) != expected[i]) ++count;
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(differences, std::vector<int>(4));
}

class TokenizerDirectory : public testing::Test {
 protected:
  void write(const char* name, std::string_view text) { std::ofstream(path_ / name) << text; }
  std::string load_error() {
    return error_text([&] { Tokenizer::load(path_); });
  }

  TestDirectory temporary_;
  const std::filesystem::path path_ = temporary_.path();
};

TEST_F(TokenizerDirectory, NamedTokensComeFromTheFilesBeside) {
  EXPECT_TRUE(load_error().starts_with("not_found: "));
  write("tokenizer.json", kSmallTokenizer);
  EXPECT_EQ(Tokenizer::load(path_).stop_tokens(), Ids{});
  write("tokenizer_config.json",
        R"({"eos_token": {"content": "<x>", "lstrip": false}, "bos_token": "<s>"})");
  EXPECT_EQ(Tokenizer::load(path_).bos_token(), 8);
  EXPECT_EQ(Tokenizer::load(path_).pad_token(), std::nullopt);
  EXPECT_EQ(Tokenizer::load(path_).stop_tokens(), Ids{9});
  const std::vector<std::pair<std::string, std::string>> names = {{"bos_token", "<s>"},
                                                                  {"eos_token", "<x>"}};
  EXPECT_EQ(Tokenizer::load(path_).special_tokens(), names);
  write("generation_config.json", R"({"eos_token_id": [9, 4, 4, 70]})");
  EXPECT_EQ(Tokenizer::load(path_).stop_tokens(), (Ids{4, 9}));
  write("tokenizer_config.json", R"({"eos_token": 3})");
  const std::string file = (path_ / "tokenizer_config.json").string();
  EXPECT_EQ(load_error(), "corrupt: " + file + ": eos_token: found 3, expected an object");
  write("tokenizer_config.json", R"({"eos_token)");
  EXPECT_TRUE(load_error().starts_with("corrupt: " + file)) << load_error();
}

// Special tokens in some parts of a text are text; others, and tokens that aren't special, stay.
TEST(Tokenizer, SpecialTokensInPlainPartsAreText) {
  const Tokenizer tokenizer = Tokenizer::from_json(kSmallTokenizer, "t.json");
  const std::string text = "a<s>b<s><x>ab<s>";
  EXPECT_EQ(tokenizer.special_offsets(text), (std::vector<size_t>{1, 5, 13}));
  const std::vector<TextSpan> second = {{5, 6}}, ends = {{2, 3}, {13, 16}};
  EXPECT_EQ(tokenizer.encode(text), (Ids{0, 8, 1, 8, 9, 4, 8}));
  EXPECT_EQ(tokenizer.encode(text, {.plain = second}), (Ids{0, 8, 1, 9, 4, 8}));
  EXPECT_EQ(tokenizer.encode(text, {.plain = ends}), (Ids{0, 1, 8, 9, 4}));
  EXPECT_EQ(tokenizer.encode_with_spans(text, {.plain = ends}).ids, (Ids{0, 1, 8, 9, 4}));
  // U+FFFD, which replaces what is ill-formed, is longer.
  const std::vector<TextSpan> behind = {{6, 7}};
  EXPECT_EQ(tokenizer.encode("\xff<s>b\xff<s>", {.plain = behind}), (Ids{8, 1}));
  // Found in normalised text.
  const Tokenizer normalised = Tokenizer::from_json(
      changed(R"("normalized": false, "special": true)", R"("normalized": true, "special": true)"),
      "t.json");
  EXPECT_EQ(normalised.encode("e\u0301<s>b<s>"), (Ids{7, 8, 1, 8}));
  const std::vector<TextSpan> last = {{7, 8}};
  EXPECT_EQ(normalised.encode("e\u0301<s>b<s>", {.plain = last}), (Ids{7, 8, 1}));
}

// The files of a repository from before added_tokens_decoder.
TEST_F(TokenizerDirectory, OlderFilesAddTokens) {
  write("tokenizer.json", kSmallTokenizer);
  write("tokenizer_config.json", R"({"bos_token": "<s>"})");
  write("special_tokens_map.json",
        R"({"eos_token": {"content": "<|im_end|>"}, "pad_token": "<x>"})");
  write("added_tokens.json", R"({"<|im_end|>": 10, "<tool>": 11, "ab": 4, "<x>": 9})");
  const Tokenizer tokenizer = Tokenizer::load(path_);
  EXPECT_EQ(tokenizer.vocab_size(), 12);
  EXPECT_EQ(tokenizer.encode("<tool><|im_end|>ab"), (Ids{11, 10, 4}));
  EXPECT_TRUE(tokenizer.is_special(10));
  EXPECT_FALSE(tokenizer.is_special(11));
  EXPECT_EQ(tokenizer.pad_token(), 9);
  EXPECT_EQ(tokenizer.stop_tokens(), Ids{10});
  write("added_tokens.json", R"({"<tool>": "11"})");
  EXPECT_EQ(load_error(),
            "corrupt: " + (path_ / "added_tokens.json").string() +
                ": [\"<tool>\"]: found \"11\", expected an integer from 0 to 16777215");
}

TEST_F(TokenizerDirectory, TheConfigsAddedTokensCountInTheirPlace) {
  write("tokenizer.json", kSmallTokenizer);
  write("special_tokens_map.json", R"({"eos_token": "<x>"})");
  write(
      "tokenizer_config.json",
      R"({"eos_token": "<end>", "image_token": "<x>", "extra_special_tokens": {"tool_token": "<t>"},
            "add_bos_token": true, "chat_template": "x",
            "added_tokens_decoder": {"9": {"content": "<x>", "special": true, "rstrip": true},
                                     "12": {"content": "<end>", "special": true},
                                     "8": {"content": "<other>", "special": false}}})");
  const Tokenizer tokenizer = Tokenizer::load(path_);
  EXPECT_EQ(tokenizer.encode("<x>  <end>a<other>"), (Ids{9, 12, 0, 13}));  // 8 was taken
  EXPECT_TRUE(tokenizer.is_special(9));
  EXPECT_EQ(tokenizer.stop_tokens(), Ids{12});
  const std::vector<std::pair<std::string, std::string>> names = {
      {"eos_token", "<end>"}, {"image_token", "<x>"}, {"tool_token", "<t>"}};
  EXPECT_EQ(tokenizer.special_tokens(), names);
}

// Ids as transformers 5.24 has them for a directory with these files.
TEST_F(TokenizerDirectory, ThePrefixSpaceIsTheConfigsUnlessTheClassTakesTheFileAsItIs) {
  const auto encoded = [&](std::string_view config) {
    write("tokenizer_config.json", config);
    return Tokenizer::load(path_).encode("ab");
  };
  write("tokenizer.json", kSmallTokenizer);
  const Ids plain{4}, prefixed{3, 4};
  EXPECT_EQ(encoded(R"({"tokenizer_class": "GPT2Tokenizer"})"), plain);
  EXPECT_EQ(encoded(R"({"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": true})"), prefixed);
  EXPECT_EQ(encoded(R"({"tokenizer_class": "GPT2TokenizerFast", "add_prefix_space": true})"),
            prefixed);
  EXPECT_EQ(encoded(R"({"add_prefix_space": true})"), prefixed);
  EXPECT_EQ(encoded(R"({"tokenizer_class": "PreTrainedTokenizerFast", "add_prefix_space": true})"),
            plain);
  write("tokenizer.json", changed(R"("add_prefix_space": false)", R"("add_prefix_space": true)"));
  EXPECT_EQ(encoded(R"({"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": false})"), plain);
  EXPECT_EQ(encoded(R"({"tokenizer_class": "GPT2Tokenizer"})"), plain);
  EXPECT_EQ(encoded("{}"), prefixed);
  EXPECT_EQ(encoded(R"({"tokenizer_class": "TokenizersBackend", "add_prefix_space": false})"),
            prefixed);
  write("tokenizer_config.json", R"({"add_prefix_space": "yes"})");
  EXPECT_NE(load_error().find("add_prefix_space: found \"yes\""), std::string::npos);
}

TEST_F(TokenizerDirectory, EndOfTurnTokensStopThoughNobodySaysSo) {
  const std::string other(changed(R"("content": "<x>")", R"("content": "<|eot_id|>")"));
  write("tokenizer.json", other);
  EXPECT_EQ(Tokenizer::load(path_).stop_tokens(), Ids{9});
  write("tokenizer.json", changed(R"("content": "<x>")", R"("content": "<|end|>")"));
  EXPECT_EQ(Tokenizer::load(path_).stop_tokens(), Ids{9});
  // In formats with channels it ends a message, not the turn.
  write("tokenizer_config.json",
        R"({"added_tokens_decoder": {"10": {"content": "<|channel|>", "special": true}}})");
  EXPECT_EQ(Tokenizer::load(path_).stop_tokens(), Ids{});
}

TEST(TokenizerConfig, NumbersLongerThan64BitsAreRead) {
  TokenizerConfig config;
  read_tokenizer_config_file(
      R"({"a": 1000000000000000019884624838656, "b": [-1000000000000000019884624838656, 1.5e3, "\"10000000000000000000000"], "eos_token": "<x>"})",
      "c.json", config);
  EXPECT_EQ(config.special_tokens.size(), 1u);
}

using Spans = std::vector<std::pair<size_t, size_t>>;

Spans spans_of(const Tokenizer& tokenizer, std::string_view text, EncodeOptions options = {}) {
  const Encoding encoding = tokenizer.encode_with_spans(text, options);
  EXPECT_EQ(encoding.ids, tokenizer.encode(text, options));
  Spans spans;
  for (const TextSpan& span : encoding.spans) spans.emplace_back(span.begin, span.end);
  return spans;
}

TEST(TokenizerSpans, CountTheBytesOfTheTextAsItWasGiven) {
  const Tokenizer tokenizer = small();
  EXPECT_EQ(spans_of(tokenizer, "abc a<x>b"), (Spans{{0, 3}, {3, 5}, {5, 8}, {8, 9}}));
  EXPECT_EQ(spans_of(tokenizer, "ab", {.add_special = true}), (Spans{{0, 0}, {0, 2}}));
  EXPECT_EQ(spans_of(tokenizer, ""), Spans{});
  // An ill-formed byte stands for the three of U+FFFD, which this vocabulary lacks.
  EXPECT_EQ(spans_of(tokenizer, "\xFF<x>a\xE4\xBD<x>"), (Spans{{1, 4}, {4, 5}, {7, 10}}));
}

// With any parts, spans stay in the text, are in order of their ends (except pieces of one
// character, which overlap), and cover whole characters.
TEST(TokenizerSpans, StayInTheText) {
  RandomText random(21);
  const int num_rounds = scaled(200, 20'000);
  for (const char* name : kGoldenTokenizers) {
    const Tokenizer tokenizer = Tokenizer::load(golden_tokenizers() / name);
    for (int i = 0; i < num_rounds; ++i) {
      const std::string text = random.text(12);
      const Encoding encoding = tokenizer.encode_with_spans(text);
      ASSERT_EQ(encoding.ids, tokenizer.encode(text)) << name << ": " << text;
      ASSERT_EQ(encoding.spans.size(), encoding.ids.size());
      for (const TextSpan& span : encoding.spans) {
        ASSERT_LE(span.begin, span.end);
        ASSERT_LE(span.end, text.size());
        ASSERT_TRUE(
            is_valid_utf8(std::string_view(text).substr(span.begin, span.end - span.begin)));
      }
    }
  }
}

}  // namespace
}  // namespace paceline
