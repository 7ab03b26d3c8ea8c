#include "load/gguf_splits.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "base/error.h"
#include "base/json_cursor.h"
#include "base/suggest.h"

namespace paceline {
namespace {

// The names are those of convert_hf_to_gguf.py; patterns, normalisation and flags are those of each
// model's tokenizer.json.
using Patterns1 = std::array<std::string_view, 1>;

constexpr Patterns1 kUpToThreeDigits = {
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)re"
    R"re( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};
constexpr Patterns1 kOneDigit = {
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)re"
    R"re( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};
// Qwen 3.5's, whose words have marks.
constexpr Patterns1 kOneDigitAndMarks = {
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|)re"
    R"re( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};
constexpr Patterns1 kTekken = {
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)re"
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}|)re"
    R"re( ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};
// As kTekken, but with contractions at the end of words and numbers of up to three digits.
constexpr std::string_view kO200k =
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)re"
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)re"
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)re"
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}|)re"
    R"re( ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
constexpr Patterns1 kGpt4o = {kO200k};
// What follows the digits is the end of a word, "\\b" in the file.
constexpr std::array<std::string_view, 2> kTinyAya = {
    R"re(\d{1,3}(?=(?:\d{3})*(?![\p{L}\p{M}\p{Nd}\p{Pc}])))re", kO200k};
constexpr std::array<std::string_view, 3> kDeepseekV3 = {
    R"re(\p{N}{1,3})re", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    R"re([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|)re"
    "[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|"
    "\\s*[\r\n]+|\\s+(?!\\S)|\\s+"};
constexpr std::string_view kHanAndHangul = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+";
// The second has the letters that have an upper and a lower case, and letters like them.
constexpr std::array<std::string_view, 5> kDeepseekLlm = {
    "[\r\n]",
    "\\s?["
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-"
    "\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1"
    "\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-"
    "\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15"
    "\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d"
    "\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb"
    "\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d"
    "\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183"
    "\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b"
    "\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-"
    "\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb"
    "\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943"
    "]+",
    "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+", "\\s+(?!\\s|\\S)",
    kHanAndHangul};
constexpr std::array<std::string_view, 4> kDeepseekCoder = {"[\r\n]", R"re(\s?\p{L}+)re",
                                                            R"re(\s?\p{P}+)re", kHanAndHangul};
constexpr Patterns1 kSeedCoder = {
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}|)re"
    R"re( ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)re"};
constexpr std::array<std::string_view, 2> kMiniCpm5 = {
    R"re(\p{N}{1,3})re", R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+|)re"
                         R"re( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};
constexpr Patterns1 kViking = {R"re( ?[^(\s|.,!?)re"
                               "\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"};

constexpr GgufSplit whole_words_split(std::string_view name) {
  return {
      .name = name, .patterns = kUpToThreeDigits, .ignore_merges = true, .begins_with_bos = true};
}
constexpr GgufSplit composed_split(std::string_view name) {
  return {.name = name, .patterns = kOneDigit, .composed = true};
}
constexpr GgufSplit digits_split(std::string_view name) {
  return {.name = name, .digits = GgufSplit::Digits::first};
}

constexpr auto kSplits = std::to_array<GgufSplit>({
    {.name = ""},
    {.name = "default"},
    {.name = "gpt-2"},
    {.name = "exaone4"},
    {.name = "a.x-4.0"},
    {.name = "mellum"},
    {.name = "trillion"},
    {.name = "granite-docling"},
    {.name = "olmo", .composed = true},
    whole_words_split("llama-bpe"),
    whole_words_split("llama3"),
    whole_words_split("llama-v3"),
    whole_words_split("smaug-bpe"),
    whole_words_split("falcon3"),
    whole_words_split("pixtral"),
    whole_words_split("midm-2.0"),
    whole_words_split("lfm2"),
    {.name = "dbrx", .patterns = kUpToThreeDigits},
    {.name = "glm4", .patterns = kUpToThreeDigits},
    {.name = "chatglm-bpe", .patterns = kUpToThreeDigits},
    composed_split("qwen2"),
    composed_split("deepseek-r1-qwen"),
    composed_split("stablelm2"),
    composed_split("megrez"),
    composed_split("kormo"),
    composed_split("f2llmv2"),
    {.name = "qwen35", .patterns = kOneDigitAndMarks, .composed = true},
    {.name = "deepseek-v3", .patterns = kDeepseekV3},
    {.name = "deepseek-llm", .patterns = kDeepseekLlm, .digits = GgufSplit::Digits::last},
    {.name = "deepseek-coder", .patterns = kDeepseekCoder, .digits = GgufSplit::Digits::last},
    {.name = "tekken", .patterns = kTekken, .ignore_merges = true, .begins_with_bos = true},
    {.name = "gpt-4o", .patterns = kGpt4o},
    {.name = "llama4", .patterns = kGpt4o},
    {.name = "kanana2", .patterns = kGpt4o},
    {.name = "tiny_aya", .patterns = kTinyAya, .composed = true},
    {.name = "seed-coder", .patterns = kSeedCoder},
    {.name = "minicpm5", .patterns = kMiniCpm5, .ignore_merges = true},
    {.name = "viking", .patterns = kViking, .digits = GgufSplit::Digits::last},
    digits_split("smollm"),
    digits_split("starcoder"),
    digits_split("refact"),
    digits_split("minerva-7b"),
    {.name = "command-r", .digits = GgufSplit::Digits::first, .composed = true},
});

}  // namespace

std::span<const GgufSplit> gguf_splits() { return kSplits; }

const GgufSplit& find_gguf_split(std::string_view name, std::string_view file) {
  std::vector<std::string_view> known;
  for (const GgufSplit& split : kSplits) {
    if (split.name == name) return split;
    if (!split.name.empty()) known.push_back(split.name);
  }
  const auto closest = closest_name(name, known);
  throw Error(
      ErrorCode::unsupported,
      fmt::format("{}: tokenizer.ggml.pre: {} isn't supported{}; {} are", file, shown_text(name),
                  closest ? fmt::format(" (the nearest is \"{}\")", *closest) : "",
                  fmt::join(known, ", ")));
}

void write_normalizer(const GgufSplit& split, JsonWriter& writer) {
  if (!split.composed) {
    writer.null();
    return;
  }
  writer.begin_object().member("type", "NFC").end_object();
}

void write_pre_tokenizer(const GgufSplit& split, JsonWriter& writer) {
  const auto write_digits = [&writer] {
    writer.begin_object().member("type", "Digits").member("individual_digits", true).end_object();
  };
  writer.begin_object().member("type", "Sequence").key("pretokenizers").begin_array();
  if (split.digits == GgufSplit::Digits::first) write_digits();
  for (const std::string_view pattern : split.patterns) {
    writer.begin_object().member("type", "Split").key("pattern").begin_object();
    writer.member("Regex", pattern).end_object().member("behavior", "Isolated");
    writer.member("invert", false).end_object();
  }
  if (split.digits == GgufSplit::Digits::last) write_digits();
  writer.begin_object().member("type", "ByteLevel").member("add_prefix_space", false);
  writer.member("trim_offsets", false).member("use_regex", split.patterns.empty());
  writer.end_object().end_array().end_object();
}

}  // namespace paceline
