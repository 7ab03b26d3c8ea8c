#include "tokenizer/tokenizer_file.h"

#include <gtest/gtest.h>

#include "tests/test_scale.h"
#include "tests/tokenizer/random_text.h"
#include "tests/tokenizer/small_tokenizer.h"

namespace paceline {
namespace {

struct Refused {
  const char* from;
  const char* to;
  const char* error;
};

class TokenizerFileRefused : public testing::TestWithParam<Refused> {};

TEST_P(TokenizerFileRefused, NamesWhatIsWrong) {
  EXPECT_EQ(refusal(changed(GetParam().from, GetParam().to)), GetParam().error);
}

// kSmallTokenizer's pre-tokenizer and decoder, to be replaced.
constexpr const char* kPreTokenizer = R"("pre_tokenizer": {)";
constexpr const char* kDecoder = R"("decoder": {)";

INSTANTIATE_TEST_SUITE_P(
    Unsupported, TokenizerFileRefused,
    testing::Values(
        Refused{R"({"type": "NFC"})", R"({"type": "Precompile", "precompiled_charsmap": ""})",
                "unsupported: t.json: normalizer Precompile isn't supported"},
        Refused{R"({"type": "NFC"})",
                R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Bert"}]})",
                "unsupported: t.json: normalizer Bert isn't supported"},
        Refused{R"({"type": "NFC"})",
                R"({"type": "Replace", "pattern": {"String": ""}, "content": "x"})",
                "unsupported: t.json: normalizer Replace by an empty string isn't supported"},
        Refused{R"("pre_tokenizer": {"type": "ByteLevel")",
                R"("pre_tokenizer": {"type": "UnicodeScripts")",
                "unsupported: t.json: pre_tokenizer UnicodeScripts isn't supported"},
        Refused{
            kPreTokenizer,
            R"("pre_tokenizer": {"type": "Split", "pattern": {"Other": "a"}, "behavior": "Isolated"}, "other": {)",
            "unsupported: t.json: pre_tokenizer Split by a pattern other than String and Regex "
            "isn't supported"},
        Refused{
            kPreTokenizer,
            R"("pre_tokenizer": {"type": "Split", "pattern": {"Regex": "\\w"}, "behavior": "Isolated"}, "other": {)",
            R"(unsupported: t.json: pre_tokenizer.pattern.Regex: a pattern with \w isn't supported)"},
        Refused{R"({"type": "TemplateProcessing")", R"({"type": "Padding")",
                "unsupported: t.json: post_processor Padding isn't supported"},
        Refused{kDecoder, R"("decoder": {"type": "CTC"}, "other": {)",
                "unsupported: t.json: decoder CTC isn't supported"},
        Refused{
            kDecoder,
            R"("decoder": {"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "ByteFallback"}]}, "other": {)",
            "unsupported: t.json: decoder ByteFallback after one that joins the tokens isn't "
            "supported"},
        Refused{
            kDecoder,
            R"("decoder": {"type": "Sequence", "decoders": [{"type": "BPEDecoder", "suffix": "x"}, {"type": "ByteFallback"}]}, "other": {)",
            "unsupported: t.json: decoder BPEDecoder together with ByteFallback isn't supported"},
        Refused{R"("type": "BPE")", R"("type": "WordLevel")",
                "unsupported: t.json: model WordLevel isn't supported"},
        Refused{R"("byte_fallback": false, "ignore_merges": false,
    "vocab": {)",
                R"("byte_fallback": true, "vocab": {"<0x41>": 3000, )",
                "unsupported: t.json: model.byte_fallback together with ByteLevel and a vocabulary "
                "that lacks bytes isn't supported"},
        Refused{R"("dropout": null)", R"("dropout": 0.1)",
                "unsupported: t.json: model.dropout isn't supported"}));

INSTANTIATE_TEST_SUITE_P(
    Corrupt, TokenizerFileRefused,
    testing::Values(
        Refused{R"("a": 0)", R"("a": -1)",
                "corrupt: t.json: model.vocab[\"a\"]: found -1, expected an id from 0 to 65567 (8 "
                "tokens)"},
        Refused{R"("a": 0)", R"("a": 16777216)",
                "corrupt: t.json: model.vocab[\"a\"]: found 16777216, expected an id from 0 to "
                "65567 (8 tokens)"},
        Refused{R"("a": 0)", R"("a": "0")",
                "corrupt: t.json: model.vocab[\"a\"]: found \"0\", expected an id from 0 to 65567 "
                "(8 tokens)"},
        Refused{R"("b": 1)", R"("b": 0)",
                "corrupt: t.json: model.vocab[\"b\"]: the id 0 is that of \"a\" already"},
        Refused{R"("b": 1)", R"("a": 1)",
                "corrupt: t.json: model.vocab: the key \"a\" occurs twice"},
        Refused{R"("ab c")", R"("abc")",
                "corrupt: t.json: model.merges[1]: found \"abc\", expected a pair of tokens"},
        Refused{R"("ab c")", R"("a b c")",
                "corrupt: t.json: model.merges[1]: found \"a b c\", expected a pair of tokens"},
        Refused{R"("ab c")", R"(["ab"])",
                "corrupt: t.json: model.merges[1]: found an array, expected a pair of tokens"},
        Refused{R"("ab c")", R"("ab d")",
                "corrupt: t.json: model.merges[1]: \"d\" isn't in the vocabulary"},
        Refused{R"("ab c")", R"("b c")",
                "corrupt: t.json: model.merges[1]: \"bc\" isn't in the vocabulary"},
        Refused{R"("merges": [)", R"("other": [)", "corrupt: t.json: model.merges: missing"},
        Refused{R"("vocab": {)", R"("vocab": [], "other": {)",
                "corrupt: t.json: model.vocab: found an array, expected an object"},
        Refused{R"("model": {)", R"("model": 3, "other": {)",
                "corrupt: t.json: model: found 3, expected an object"},
        Refused{R"("model": {)", R"("models": {)", "corrupt: t.json: model: missing"},
        Refused{R"("version": "1.0")", R"("model": null)",
                "corrupt: t.json: the key \"model\" occurs twice"},
        Refused{R"("id": 9)", R"("id": 9, "note": 1, "note": 2)",
                "corrupt: t.json: added_tokens[1]: the key \"note\" occurs twice"},
        Refused{R"({"type": "NFC"})", R"({"type": "NFC", "note": {"a": 1, "a": 1}})",
                "corrupt: t.json: normalizer.note: the key \"a\" occurs twice"},
        Refused{R"("a": 0)", R"("a": 18446744073709551616)",
                "corrupt: t.json: model.vocab.a: found 18446744073709551616, expected an integer "
                "of at most 64 bits"},
        Refused{R"("id": 9)", R"("id": 9, "note": 18446744073709551616)",
                "corrupt: t.json: added_tokens[1].note: found 18446744073709551616, expected an "
                "integer of at most 64 bits"},
        Refused{R"("id": 9)", R"("id": 8)",
                "corrupt: t.json: added_tokens[1]: the id 8 is that of added_tokens[0]"},
        Refused{R"("content": "<x>")", R"("content": "<s>")",
                "corrupt: t.json: added_tokens[1]: the same token as added_tokens[0]"},
        Refused{R"("content": "<x>")", R"("content": "")",
                "corrupt: t.json: added_tokens[1].content: found \"\", expected some text"},
        Refused{R"("content": "<x>")", R"("content": 5)",
                "corrupt: t.json: added_tokens[1].content: found 5, expected a string"},
        Refused{R"("id": 9)", R"("id": 1)",
                "corrupt: t.json: added_tokens[1]: the id 1 of \"<x>\", which is that of \"b\" in "
                "the vocabulary"},
        Refused{
            R"("content": "<x>")", R"("content": "ab")",
            "corrupt: t.json: added_tokens[1]: the id 9 of \"ab\", which the vocabulary has at 4"},
        Refused{R"("id": 9)", R"("id": 18446744073709551615)",
                "corrupt: t.json: added_tokens[1].id: found 18446744073709551615, expected an "
                "integer from 0 to 65551"},
        Refused{
            R"("id": 9)", R"("id": 16777215)",
            "corrupt: t.json: added_tokens[1].id: found 16777215, expected an integer from 0 to "
            "65551"},
        Refused{R"("special": false)", R"("special": 0)",
                "corrupt: t.json: added_tokens[1].special: found 0, expected true or false"},
        Refused{R"("ids": [8])", R"("ids": [7000])",
                "corrupt: t.json: post_processor: the id 7000 has no token"},
        Refused{R"("ids": [8])", R"("ids": [-8])",
                "corrupt: t.json: post_processor.special_tokens[\"<s>\"].ids[0]: found -8, "
                "expected an integer from 0 to 16777215"},
        Refused{R"({"Sequence": {"id": "A", "type_id": 0}})", R"({"SpecialToken": {"id": "<s>"}})",
                "corrupt: t.json: post_processor.single: the text (Sequence A) is missing"},
        Refused{R"({"id": "<s>", "type_id": 0})", R"({"id": "<t>", "type_id": 0})",
                "corrupt: t.json: post_processor.special_tokens[\"<t>\"]: missing"},
        Refused{R"({"type": "NFC"})", R"({"kind": "NFC"})",
                "corrupt: t.json: normalizer.type: missing"},
        Refused{
            kPreTokenizer,
            R"("pre_tokenizer": {"type": "Split", "pattern": {"String": "a"}, "behavior": "Kept"}, "other": {)",
            "corrupt: t.json: pre_tokenizer.behavior: found \"Kept\", expected Removed, "
            "Isolated, MergedWithPrevious, MergedWithNext or Contiguous"},
        Refused{kPreTokenizer,
                R"("pre_tokenizer": {"type": "Metaspace", "replacement": "ab"}, "other": {)",
                "corrupt: t.json: pre_tokenizer.replacement: found \"ab\", expected one "
                "character"},
        Refused{
            kPreTokenizer,
            R"("pre_tokenizer": {"type": "Metaspace", "replacement": "_", "prepend_scheme": "last"}, "other": {)",
            "corrupt: t.json: pre_tokenizer.prepend_scheme: found \"last\", expected always, first "
            "or never"},
        Refused{
            kPreTokenizer,
            R"("pre_tokenizer": {"type": "Metaspace", "replacement": "_", "add_prefix_space": false, "prepend_scheme": "first"}, "other": {)",
            "corrupt: t.json: pre_tokenizer.add_prefix_space: false contradicts prepend_scheme"},
        Refused{
            kDecoder,
            R"("decoder": {"type": "Strip", "content": " ", "start": -1, "stop": 0}, "other": {)",
            "corrupt: t.json: decoder.start: found -1, expected an integer from 0 on"},
        Refused{
            R"("post_processor": {)",
            R"("post_processor": {"type": "BertProcessing", "cls": ["<s>"], "sep": ["<s>", 8]}, "other": {)",
            "corrupt: t.json: post_processor.cls: 1 items, expected a token and its id"},
        Refused{R"("unk_token": null)", R"("unk_token": "<no>")",
                "corrupt: t.json: model.unk_token: \"<no>\" isn't in the vocabulary"},
        Refused{R"("continuing_subword_prefix": null)", R"("continuing_subword_prefix": "##")",
                "corrupt: t.json: model.merges[0]: \"b\" lacks the prefix"},
        Refused{R"("add_prefix_space": false)", R"("add_prefix_space": "no")",
                "corrupt: t.json: pre_tokenizer.add_prefix_space: found \"no\", expected true or "
                "false"}));

TEST(TokenizerFile, TheSmallOneIsTaken) {
  EXPECT_EQ(refusal(kSmallTokenizer), "");
  EXPECT_EQ(refusal(changed(R"("type": "BPE", )", "")), "");  // older files have no type
  EXPECT_EQ(refusal(changed(R"("dropout": null)", R"("dropout": 0.0)")), "");
  EXPECT_EQ(refusal(changed(R"([["a", "b"])", R"(["#version: 0.2", ["a", "b"])")), "");
}

TEST(TokenizerFile, OtherJsonIsRefused) {
  for (const char* json : {"", "[]", "{}", "null", "{\"model\"", "\xff", "{\"model\": {}} x"}) {
    EXPECT_TRUE(refusal(json).starts_with("corrupt: t.json: ")) << json << " -> " << refusal(json);
  }
  const std::string deep = std::string(70, '[') + std::string(70, ']');
  EXPECT_TRUE(refusal(changed("\"NFC\"", deep)).starts_with("corrupt: t.json: "));
  const std::string long_token(5000, 'x');
  EXPECT_EQ(refusal(changed("<x>", long_token)),
            "unsupported: t.json: an added token of 5000 bytes isn't supported");
}

// A damaged file is accepted, or refused with an Error that names it.
TEST(TokenizerFile, AnyDamageIsSafe) {
  const std::string whole(kSmallTokenizer);
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_TRUE(refusal(std::string_view(whole).substr(0, size)).starts_with("corrupt: t.json: "))
        << size;
  }
  RandomText random(6);
  size_t refused = 0;
  const int num_rounds = scaled(3000, 300'000);
  for (int i = 0; i < num_rounds; ++i) {
    std::string damaged = whole;
    damaged[random.below(damaged.size())] = static_cast<char>(random.below(256));
    const std::string error = refusal(damaged);
    if (error.empty()) continue;
    ++refused;
    EXPECT_NE(error.find(": t.json: "), std::string::npos) << error;
  }
  EXPECT_GT(refused, static_cast<size_t>(num_rounds) / 3);
}

}  // namespace
}  // namespace paceline
