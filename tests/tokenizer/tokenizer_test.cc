#include "tokenizer/tokenizer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/tokenizer/golden_file.h"
#include "tests/tokenizer/random_text.h"
#include "tests/tokenizer/small_tokenizer.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/tokenizer_config.h"

namespace paceline {
namespace {

using Ids = std::vector<TokenId>;

std::unique_ptr<Tokenizer> small() { return Tokenizer::from_json(kSmallTokenizer, "t.json"); }

TEST(Tokenizer, Small) {
  const auto tokenizer = small();
  EXPECT_EQ(tokenizer->vocab_size(), 10);
  EXPECT_EQ(tokenizer->encode("abc a<x>b"), (Ids{5, 6, 9, 1}));
  EXPECT_EQ(tokenizer->encode("ab", {.add_special = true}), (Ids{8, 4}));
  EXPECT_EQ(tokenizer->encode("", {.add_special = true}), (Ids{8}));
  EXPECT_EQ(tokenizer->encode("a<s>b<x>", {.specials_as_text = true}), (Ids{0, 1, 9}));
  EXPECT_EQ(tokenizer->encode("aéb"), (Ids{0, 7, 1}));  // a byte without a token is left out
  EXPECT_EQ(tokenizer->decode(Ids{8, 6, 9}), "<s> a<x>");
  EXPECT_EQ(tokenizer->decode(Ids{8, 6, 9}, {.skip_special = true}), " a<x>");
  EXPECT_EQ(tokenizer->decode(Ids{7}), "\uFFFD");
}

TEST(Tokenizer, Ids) {
  const auto tokenizer = small();
  EXPECT_EQ(tokenizer->token_text(6), "Ġa");
  EXPECT_EQ(tokenizer->token_bytes(6), " a");
  EXPECT_EQ(tokenizer->token_bytes(7), "\xC3");
  EXPECT_EQ(tokenizer->token_text(9), "<x>");
  EXPECT_EQ(tokenizer->token_id("Ġa"), 6);
  EXPECT_EQ(tokenizer->token_id("<s>"), 8);
  EXPECT_EQ(tokenizer->token_id("no"), std::nullopt);
  EXPECT_TRUE(tokenizer->is_special(8));
  EXPECT_FALSE(tokenizer->is_special(9));
  EXPECT_FALSE(tokenizer->is_special(-1));
  for (const TokenId id : {-1, 10, 1 << 30}) {
    EXPECT_EQ(tokenizer->token_bytes(id), "");
    EXPECT_EQ(tokenizer->token_text(id), "");
    try {
      tokenizer->decode(Ids{0, id});
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid);
      EXPECT_EQ(error.what(),
                "the token id " + std::to_string(id) + " is outside the vocabulary (0..9)");
    }
  }
}

TEST(Tokenizer, AHoleAmongTheIdsIsNoToken) {
  const auto tokenizer = Tokenizer::from_json(changed(R"("id": 9)", R"("id": 30)"), "t.json");
  EXPECT_EQ(tokenizer->vocab_size(), 31);
  EXPECT_EQ(tokenizer->token_text(20), "");
  EXPECT_EQ(tokenizer->decode(Ids{0, 20, 30}), "a<x>");
}

TEST(Tokenizer, IllFormedTextIsRepairedFirst) {
  const auto tokenizer = Tokenizer::load(golden_tokenizers() / "unknown_pattern");
  RandomText random(7);
  for (int i = 0; i < 2000; ++i) {
    const std::string bytes = random.bytes(40);
    const std::string repaired = replace_invalid_utf8(bytes);
    const Ids ids = tokenizer->encode(bytes);
    ASSERT_EQ(ids, tokenizer->encode(repaired));
    ASSERT_EQ(tokenizer->decode(ids), repaired);
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
  for (int i = 0; i < 3000; ++i) {
    const std::string text = random.text(20);
    std::string storage;
    ASSERT_EQ(plain->decode(plain->encode(text)), text);
    ASSERT_EQ(normalizing->decode(normalizing->encode(text)),
              NfcNormalizer().normalize(text, storage));
  }
}

TEST(Tokenizer, TokenBytesAddUpToTheDecodedText) {
  const auto tokenizer = Tokenizer::load(golden_tokenizers() / "odd_flags");
  RandomText random(9);
  for (int i = 0; i < 1000; ++i) {
    Ids ids(random.below(30));
    for (TokenId& id : ids)
      id = static_cast<TokenId>(random.below(static_cast<size_t>(tokenizer->vocab_size())));
    std::string bytes;
    for (const TokenId id : ids) bytes += tokenizer->token_bytes(id);
    ASSERT_EQ(tokenizer->decode(ids), replace_invalid_utf8(bytes));
  }
}

// Words come from the cache the second time, and collisions replace each other.
TEST(Tokenizer, TheCacheChangesNothing) {
  const auto tokenizer = Tokenizer::load(golden_tokenizers() / "odd_flags");
  RandomText random(10);
  std::string text;
  Ids expected;
  for (int i = 0; i < 4000; ++i) {
    const std::string word =
        random.text(3) + "<longer>";  // an added token: what follows is on its own
    text += word;
    const Ids ids = tokenizer->encode(word);
    expected.insert(expected.end(), ids.begin(), ids.end());
  }
  EXPECT_EQ(tokenizer->encode(text), expected);
}

TEST(Tokenizer, ThreadsShareIt) {
  const auto tokenizer = Tokenizer::load(golden_tokenizers() / "unknown_pattern");
  const auto texts = hard_texts();
  std::vector<Ids> expected;
  for (const auto& text : texts) expected.push_back(tokenizer->encode(text));
  std::vector<std::jthread> threads;
  std::vector<int> differences(4);
  for (int& count : differences) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        for (size_t i = 0; i < texts.size(); ++i) {
          if (tokenizer->encode(texts[i]) != expected[i]) ++count;
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(differences, std::vector<int>(4));
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
constexpr double kSlower = 10;
#else
constexpr double kSlower = 1;
#endif

// Processor time of this thread, so that a busy machine doesn't fail the test.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

TEST(Tokenizer, LongRunsTakeUnderASecond) {
  const auto tokenizer = Tokenizer::load(golden_tokenizers() / "odd_flags");
  for (const std::string unit : {"a", " ", "\n", "ab", "\u0301", "你", "it was the "}) {
    const size_t size = unit == "a" ? size_t{4} << 20 : size_t{1} << 20;
    std::string text;
    while (text.size() < size) text += unit;
    const double begin = thread_seconds();
    const Ids ids = tokenizer->encode(text);
    EXPECT_LT(thread_seconds() - begin, 1.0 * kSlower) << '"' << unit << '"';
    EXPECT_GT(ids.size(), 1000u);
  }
}

class TokenizerDirectory : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(path_); }
  void TearDown() override { std::filesystem::remove_all(path_); }
  void write(const char* name, std::string_view text) { std::ofstream(path_ / name) << text; }
  std::string load_error() {
    try {
      Tokenizer::load(path_);
      return "";
    } catch (const Error& error) {
      return std::string(error_code_name(error.code())) + ": " + error.what();
    }
  }

  const std::filesystem::path path_ =
      std::filesystem::path(testing::TempDir()) / ("tokenizer_test_" + std::to_string(getpid()));
};

TEST_F(TokenizerDirectory, BosAndEosComeFromTheConfig) {
  EXPECT_TRUE(load_error().starts_with("not_found: "));
  write("tokenizer.json", kSmallTokenizer);
  EXPECT_EQ(Tokenizer::load(path_)->eos_token(), std::nullopt);
  write("tokenizer_config.json",
        R"({"bos_token": "<s>", "eos_token": {"content": "<x>", "lstrip": false}})");
  EXPECT_EQ(Tokenizer::load(path_)->bos_token(), 8);
  EXPECT_EQ(Tokenizer::load(path_)->eos_token(), 9);
  write("tokenizer_config.json", R"({"bos_token": null, "eos_token": "<gone>"})");
  EXPECT_EQ(Tokenizer::load(path_)->bos_token(), std::nullopt);
  EXPECT_EQ(Tokenizer::load(path_)->eos_token(), std::nullopt);
  write("tokenizer_config.json", R"({"eos_token": 3})");
  const std::string file = (path_ / "tokenizer_config.json").string();
  EXPECT_EQ(load_error(), "corrupt: " + file + ": eos_token: expected an object, found an integer");
  write("tokenizer_config.json", R"({"eos_token)");
  EXPECT_TRUE(load_error().starts_with("corrupt: " + file)) << load_error();
}

TEST(TokenizerConfig, NumbersLongerThan64BitsAreRead) {
  const auto config = read_tokenizer_config(
      R"({"a": 1000000000000000019884624838656, "b": [-1000000000000000019884624838656, 1.5e3, "\"10000000000000000000000"], "eos_token": "<x>"})",
      "c.json");
  EXPECT_EQ(config.eos_token, "<x>");
  EXPECT_EQ(config.bos_token, std::nullopt);
}

}  // namespace
}  // namespace paceline
