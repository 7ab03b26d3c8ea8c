// Which file a tokenizer is made of, what the files beside it change, and what is refused.
#include "tokenizer/made_tokenizer.h"

#include <gtest/gtest.h>

#include <string>

#include "base/mapped_file.h"
#include "paceline/tokenizer.h"
#include "tests/expect_error.h"
#include "tests/source_path.h"
#include "tokenizer/sentence_piece_normalizer.h"

namespace paceline {
namespace {

using Ids = std::vector<TokenId>;
using Type = SentencePieceFile::Type;

std::string golden(const std::string& name) {
  return read_text_file(source_path("tests/goldens/made_tokenizers/" + name), size_t{1} << 20);
}

ModelFiles files_of(ModelFiles::Makers makers) { return {"m", std::move(makers)}; }

ModelFiles::Makers::value_type text(const std::string& name, const std::string& content) {
  return {name, [content] { return content; }};
}

// Merges to "ab", with a space's mark, a user-defined token and special ones.
SentencePieceFile small_model() {
  SentencePieceFile file;
  file.pieces = {{"<unk>", 0, Type::unknown},    {"<s>", 0, Type::control},
                 {"</s>", 0, Type::control},     {"\u2581", -1, Type::normal},
                 {"a", -2, Type::normal},        {"b", -3, Type::normal},
                 {"ab", -0.5, Type::normal},     {"\u2581ab", -0.25, Type::normal},
                 {"aba", -9, Type::user_defined}};
  file.kind = SentencePieceFile::Kind::bpe;
  file.remove_extra_whitespaces = false;
  return file;
}

Tokenizer made(const SentencePieceFile& file, const TokenizerConfig& config = {}) {
  return Tokenizer::from_json(sentence_piece_json(file, config, "tokenizer.model"), "t");
}

TEST(MadeTokenizer, IsMadeOfTheFirstFileThatIsThere) {
  const auto spm = text("tokenizer.model", golden("bpe_identity/tokenizer.model"));
  const auto tekken = text("tekken.json", golden("tekken_v3/tekken.json"));
  const auto vocab = text("vocab.json", golden("gpt2/vocab.json"));
  const auto merges = text("merges.txt", golden("gpt2/merges.txt"));
  const auto size = [](const ModelFiles& files) { return Tokenizer::load(files).vocab_size(); };
  EXPECT_EQ(size(files_of({spm, tekken, vocab, merges})), size(files_of({tekken})));
  EXPECT_EQ(size(files_of({spm, vocab, merges})), size(files_of({spm})));
  EXPECT_NE(size(files_of({vocab, merges})), size(files_of({spm})));
  EXPECT_FALSE(with_tokenizer_json(files_of({vocab})).contains("tokenizer.json"));
  EXPECT_FALSE(with_tokenizer_json(files_of({})).contains("tokenizer.json"));
}

TEST(MadeTokenizer, NamesItsOwnTokensWhereNoConfigDoes) {
  const auto spm = text("tokenizer.model", golden("bpe_identity/tokenizer.model"));
  const Tokenizer own = Tokenizer::load(files_of({spm}));
  EXPECT_EQ(own.bos_token(), 1);
  EXPECT_EQ(own.stop_tokens(), Ids{2});
  EXPECT_EQ(own.encode("", {.add_special = true}), Ids{1});
  const Tokenizer configured = Tokenizer::load(
      files_of({spm, text("tokenizer_config.json",
                          R"({"bos_token": "</s>", "add_eos_token": true, "eos_token": "<s>"})")}));
  EXPECT_EQ(configured.bos_token(), 2);
  EXPECT_EQ(configured.encode("", {.add_special = true}), (Ids{2, 1}));
  const Tokenizer tekken =
      Tokenizer::load(files_of({text("tekken.json", golden("tekken_v3/tekken.json"))}));
  EXPECT_EQ(tekken.bos_token(), 1);
  EXPECT_EQ(tekken.stop_tokens(), Ids{2});
  EXPECT_EQ(tekken.token_text(29), "<SPECIAL_29>");
  EXPECT_EQ(tekken.encode("<s>[INST]", {.add_special = true}), (Ids{1, 1, 3}));
}

TEST(MadeTokenizer, PutsASpaceBeforeEachTextOrTheFirstOrNone) {
  EXPECT_EQ(made(small_model()).encode("ab<s>ab"), (Ids{7, 1, 7}));
  EXPECT_EQ(made(small_model(), {.legacy = false}).encode("ab<s>ab"), (Ids{7, 1, 6}));
  EXPECT_EQ(made(small_model(), {.add_prefix_space = false}).encode("ab<s> ab"), (Ids{6, 1, 7}));
  EXPECT_EQ(made(small_model()).decode(Ids{7, 7}), "ab ab");
}

TEST(MadeTokenizer, NeverCutsOrJoinsUserDefinedPieces) {
  EXPECT_EQ(made(small_model()).encode("abab"), (Ids{3, 8, 5}));
  EXPECT_FALSE(made(small_model()).is_special(8));
  EXPECT_TRUE(made(small_model()).is_special(1));
}

TEST(MadeTokenizer, AddsTheTokensThatTheConfigNames) {
  TokenizerConfig config;
  config.special_tokens = {{"eos_token", "ab"}, {"pad_token", "<pad>"}};
  config.more_special_tokens = {"<x>", "<pad>"};
  const Tokenizer tokenizer = made(small_model(), config);
  EXPECT_TRUE(tokenizer.is_special(6));
  EXPECT_EQ(tokenizer.token_id("<pad>"), 9);
  EXPECT_EQ(tokenizer.token_id("<x>"), 10);
  EXPECT_EQ(tokenizer.vocab_size(), 11);
}

TEST(MadeTokenizer, WhatCannotBeFollowedIsRefusedWithTheCommand) {
  const auto expect_refused = [](const std::string& what, auto change) {
    SentencePieceFile file = small_model();
    change(file);
    expect_error(ErrorCode::unsupported,
                 {"tokenizer.model: " + what + " isn't supported", "save_pretrained(DIR)"},
                 [&] { made(file); });
  };
  expect_refused("model_type word", [](auto& file) { file.kind = SentencePieceFile::Kind::word; });
  expect_refused("treat_whitespace_as_suffix",
                 [](auto& file) { file.whitespace_as_suffix = true; });
  expect_refused("escape_whitespaces: false", [](auto& file) { file.escape_whitespaces = false; });
  expect_refused("a denormalizer", [](auto& file) { file.denormalizes = true; });
  expect_refused("a merging model with unused pieces",
                 [](auto& file) { file.pieces[5].type = Type::unused; });
  expect_error(ErrorCode::unsupported, {"vocab.json: tokenizer_class CTRLTokenizer", "Python"}, [] {
    vocab_and_merges_json("{}", "", {.tokenizer_class = "CTRLTokenizer"}, "vocab.json");
  });
}

TEST(MadeTokenizer, DamagedFilesNameThePlace) {
  const auto model = [](const std::string& bytes) { parse_sentence_piece_file(bytes, "f"); };
  expect_error(ErrorCode::corrupt, {"f: no pieces"}, [&] { model(""); });
  expect_error(ErrorCode::corrupt, {"f: byte 2: a field of 5 bytes, 0 are left"},
               [&] { model("\x0a\x05"); });
  expect_error(ErrorCode::corrupt, {"f: ", "expected sentencepiece's model"},
               [&] { model("IQ== 0\nIg== 1\n"); });
  const auto tekken = [](const std::string& fields) {
    tekken_json("{\"config\": {\"pattern\": \"a\"" + fields + "}", {}, "f");
  };
  expect_error(ErrorCode::corrupt, {"f: vocab[0].token_bytes", "base64"},
               [&] { tekken(R"(}, "vocab": [{"rank": 0, "token_bytes": "?"}])"); });
  expect_error(ErrorCode::corrupt, {"f: vocab[0].rank", "expected 0"},
               [&] { tekken(R"(}, "vocab": [{"rank": 1, "token_bytes": "YQ=="}])"); });
  expect_error(ErrorCode::corrupt, {"f: config.default_vocab_size", "expected 20 to 21"}, [&] {
    tekken(R"(, "default_vocab_size": 22}, "vocab": [{"rank": 0, "token_bytes": "YQ=="}])");
  });
}

TEST(CharsMap, RefusesSizesThatContradictEachOther) {
  for (const std::string& bytes : std::vector<std::string>{
           std::string("\x04\0\0", 3), std::string("\0\0\0\0", 4), std::string("\x03\0\0\0abc", 7),
           std::string("\x08\0\0\0abcd", 8), std::string("\x04\0\0\0abcdx", 9)}) {
    expect_error(ErrorCode::corrupt, {"f: precompiled_charsmap: "},
                 [&] { CharsMap map(bytes, "f"); });
  }
  const CharsMap wild(std::string("\x04\0\0\0\xff\xff\xff\x7fx\0", 10), "f");
  EXPECT_FALSE(wild.find("abc"));
}

// An unknown character costs 10 more than the least likely token.
TEST(UnigramModel, TakesTheTokensWithTheGreatestSum) {
  const std::string json = R"({"added_tokens": [], "model": {"type": "Unigram", "unk_id": 0,
      "vocab": [["<unk>", 0.0], ["a", -1.0], ["b", -1.5], ["ab", -2.5], ["aba", -3.0]]}})";
  const Tokenizer tokenizer = Tokenizer::from_json(json, "t");
  EXPECT_EQ(tokenizer.encode("ab"), Ids{3});  // as much as a and b: the first found stays
  EXPECT_EQ(tokenizer.encode("aba"), Ids{4});
  EXPECT_EQ(tokenizer.encode("abab"), (Ids{4, 2}));
  EXPECT_EQ(tokenizer.encode("axyb"), (Ids{1, 0, 2}));
  expect_error(ErrorCode::corrupt, {"model.unk_id: the id has no token"}, [] {
    Tokenizer::from_json(R"({"added_tokens": [], "model": {"type": "Unigram", "unk_id": 3,
                             "vocab": [["a", 0.0]]}})",
                         "t");
  });
  expect_error(ErrorCode::corrupt, {"model.vocab[1]: the token occurs twice"}, [] {
    Tokenizer::from_json(R"({"added_tokens": [], "model": {"type": "Unigram",
                             "vocab": [["a", 0.0], ["a", 1.0]]}})",
                         "t");
  });
}

}  // namespace
}  // namespace paceline
