#include "load/gguf_splits.h"

#include <fmt/format.h>

#include <string>

#include "base/error.h"

namespace paceline {
namespace {

// The patterns are from each model's tokenizer.json, the names from convert_hf_to_gguf.py.
constexpr std::string_view kUpToThreeDigits =
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)re"
    R"re( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
constexpr std::string_view kOneDigit =
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)re"
    R"re( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
constexpr std::string_view kTekken =
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)re"
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}|)re"
    R"re( ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
constexpr std::array<std::string_view, 3> kDeepseekV3 = {
    R"re(\p{N}{1,3})re", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    R"re([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|)re"
    "[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|"
    "\\s*[\r\n]+|\\s+(?!\\S)|\\s+"};

constexpr GgufSplit whole_words_split(std::string_view name) {
  return {
      .name = name, .patterns = {kUpToThreeDigits}, .ignore_merges = true, .begins_with_bos = true};
}
constexpr GgufSplit digits_split(std::string_view name) {
  return {.name = name, .single_digits = true};
}

constexpr std::array<GgufSplit, 15> kSplits = {{
    {.name = ""},
    {.name = "default"},
    {.name = "gpt-2"},
    whole_words_split("llama-bpe"),
    whole_words_split("llama3"),
    whole_words_split("llama-v3"),
    whole_words_split("smaug-bpe"),
    {.name = "qwen2", .patterns = {kOneDigit}, .composed = true},
    {.name = "deepseek-r1-qwen", .patterns = {kOneDigit}, .composed = true},
    {.name = "deepseek-v3", .patterns = kDeepseekV3},
    {.name = "tekken", .patterns = {kTekken}, .ignore_merges = true, .begins_with_bos = true},
    digits_split("smollm"),
    digits_split("starcoder"),
    digits_split("refact"),
    digits_split("command-r"),
}};

}  // namespace

const GgufSplit& find_gguf_split(std::string_view name, std::string_view file) {
  std::string known;
  for (const GgufSplit& split : kSplits) {
    if (split.name == name) return split;
    if (!split.name.empty()) known += fmt::format("{}{}", known.empty() ? "" : ", ", split.name);
  }
  throw Error(ErrorCode::unsupported,
              fmt::format("{}: tokenizer.ggml.pre: \"{}\" isn't supported; {} are", file,
                          name.substr(0, 64), known));
}

void write_normalizer(const GgufSplit& split, JsonWriter& writer) {
  if (!split.composed) {
    writer.null();
    return;
  }
  writer.begin_object().member("type", "NFC").end_object();
}

void write_pre_tokenizer(const GgufSplit& split, JsonWriter& writer) {
  writer.begin_object().member("type", "Sequence").key("pretokenizers").begin_array();
  if (split.single_digits) {
    writer.begin_object().member("type", "Digits").member("individual_digits", true).end_object();
  }
  for (const std::string_view pattern : split.patterns) {
    if (pattern.empty()) continue;
    writer.begin_object().member("type", "Split").key("pattern").begin_object();
    writer.member("Regex", pattern).end_object().member("behavior", "Isolated");
    writer.member("invert", false).end_object();
  }
  writer.begin_object().member("type", "ByteLevel").member("add_prefix_space", false);
  writer.member("trim_offsets", false).member("use_regex", split.patterns[0].empty());
  writer.end_object().end_array().end_object();
}

}  // namespace paceline
