#include <fmt/format.h>

#include <utility>

#include "base/utf8.h"
#include "tokenizer/bert_normalizer.h"
#include "tokenizer/made_fields.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/precompiled_normalizer.h"
#include "tokenizer/sentence_piece_normalizer.h"
#include "tokenizer/text_normalizers.h"
#include "tokenizer/unicode_normalizer.h"

namespace paceline {
namespace {

std::unique_ptr<Normalizer> read_bert_normalizer(const DocumentCursor& field) {
  const bool lowercase = field.at("lowercase").boolean();
  const auto strips = field.find("strip_accents");  // null: as lowercase
  return std::make_unique<BertNormalizer>(
      BertNormalizer::Options{.clean_text = field.at("clean_text").boolean(),
                              .handle_chinese_chars = field.at("handle_chinese_chars").boolean(),
                              .strip_accents = strips ? strips->boolean() : lowercase,
                              .lowercase = lowercase});
}

std::unique_ptr<Normalizer> read_one(const DocumentCursor& field) {
  const std::string_view type = field.at("type").string();
  if (type == "NFC") return std::make_unique<UnicodeNormalizer>(UnicodeForm::nfc);
  if (type == "NFD") return std::make_unique<UnicodeNormalizer>(UnicodeForm::nfd);
  if (type == "NFKC") return std::make_unique<UnicodeNormalizer>(UnicodeForm::nfkc);
  if (type == "NFKD") return std::make_unique<UnicodeNormalizer>(UnicodeForm::nfkd);
  if (type == "Lowercase") return std::make_unique<LowercaseNormalizer>();
  if (type == "StripAccents") return std::make_unique<StripAccentsNormalizer>();
  if (type == "Nmt") return std::make_unique<NmtNormalizer>();
  if (type == "ByteLevel") return std::make_unique<ByteLevelNormalizer>();
  if (type == "BertNormalizer") return read_bert_normalizer(field);
  if (type == "Precompiled") return read_precompiled_normalizer(field);
  if (type == "Prepend") {
    return std::make_unique<PrependNormalizer>(field.at("prepend").string());
  }
  if (type == "Strip") {
    return std::make_unique<StripNormalizer>(StripNormalizer::Sides{
        .left = field.at("strip_left").boolean(), .right = field.at("strip_right").boolean()});
  }
  if (type == "Replace") {
    return std::make_unique<ReplaceNormalizer>(
        read_pattern(field.at("pattern"), "normalizer Replace"), field.at("content").string());
  }
  if (type == kSentencePieceType) return read_sentence_piece_normalizer(field);
  refuse_part(field, fmt::format("normalizer {}", type));
}

void collect_parts(const DocumentCursor& field, std::string_view list,
                   std::vector<DocumentCursor>& parts) {
  if (field.at("type").string() != "Sequence") {
    parts.push_back(field);
    return;
  }
  for (const DocumentCursor& item : field.at(list).items()) collect_parts(item, list, parts);
}

}  // namespace

void refuse_part(const DocumentCursor& field, std::string_view what) {
  throw Error(ErrorCode::unsupported, fmt::format("{}: {} isn't supported", field.where(), what));
}

std::vector<DocumentCursor> parts_of(const DocumentCursor& field, std::string_view list) {
  std::vector<DocumentCursor> parts;
  collect_parts(field, list, parts);
  return parts;
}

std::unique_ptr<TextPattern> read_pattern(const DocumentCursor& field, std::string_view what) {
  if (const auto regex = field.find("Regex")) {
    return make_regex_pattern(regex->string(), regex->name());
  }
  if (const auto list = field.find(kStringsField)) {
    std::vector<std::string_view> strings;
    for (const DocumentCursor& item : list->items()) {
      strings.push_back(item.string());
      if (strings.back().empty()) item.mismatch("some text");
    }
    return make_strings_pattern(strings);
  }
  const auto string = field.find("String");
  if (!string) refuse_part(field, fmt::format("{} by a pattern other than String and Regex", what));
  if (string->string().empty()) refuse_part(field, fmt::format("{} by an empty string", what));
  return make_string_pattern(string->string());
}

std::string_view read_character(const DocumentCursor& field) {
  const std::string_view text = field.string();
  if (text.empty() || decode_utf8(text).size != text.size()) {
    field.mismatch("one character");
  }
  return text;
}

std::unique_ptr<Normalizer> with_lower_case(std::unique_ptr<Normalizer> normalizer) {
  if (normalizer && normalizer->lowers_case()) return normalizer;
  std::vector<std::unique_ptr<Normalizer>> steps;
  steps.push_back(std::make_unique<LowercaseNormalizer>());
  if (normalizer) steps.push_back(std::move(normalizer));
  return std::make_unique<NormalizerSequence>(std::move(steps));
}

std::unique_ptr<Normalizer> read_normalizer(const std::optional<DocumentCursor>& field) {
  if (!field) return nullptr;
  std::vector<std::unique_ptr<Normalizer>> steps;
  for (const DocumentCursor& part : parts_of(*field, "normalizers"))
    steps.push_back(read_one(part));
  if (steps.empty()) return nullptr;
  if (steps.size() == 1) return std::move(steps.front());
  return std::make_unique<NormalizerSequence>(std::move(steps));
}

}  // namespace paceline
