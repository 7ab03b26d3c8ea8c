#include <fmt/format.h>

#include <utility>

#include "base/utf8.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/text_normalizers.h"
#include "tokenizer/unicode_normalizer.h"

namespace paceline {
namespace {

std::unique_ptr<Normalizer> read_one(const JsonField& field) {
  const std::string& type = field.member("type").string();
  if (type == "NFC") return std::make_unique<UnicodeNormalizer>(UnicodeForm::nfc);
  if (type == "NFD") return std::make_unique<UnicodeNormalizer>(UnicodeForm::nfd);
  if (type == "NFKC") return std::make_unique<UnicodeNormalizer>(UnicodeForm::nfkc);
  if (type == "NFKD") return std::make_unique<UnicodeNormalizer>(UnicodeForm::nfkd);
  if (type == "Lowercase") return std::make_unique<LowercaseNormalizer>();
  if (type == "StripAccents") return std::make_unique<StripAccentsNormalizer>();
  if (type == "Nmt") return std::make_unique<NmtNormalizer>();
  if (type == "ByteLevel") return std::make_unique<ByteLevelNormalizer>();
  if (type == "Prepend") {
    return std::make_unique<PrependNormalizer>(field.member("prepend").string());
  }
  if (type == "Strip") {
    return std::make_unique<StripNormalizer>(
        StripNormalizer::Sides{.left = field.member("strip_left").boolean(),
                               .right = field.member("strip_right").boolean()});
  }
  if (type == "Replace") {
    return std::make_unique<ReplaceNormalizer>(
        read_pattern(field.member("pattern"), "normalizer Replace"),
        field.member("content").string());
  }
  field.unsupported("normalizer " + type);
}

void collect_parts(const JsonField& field, std::string_view list, std::vector<JsonField>& parts) {
  if (field.member("type").string() != "Sequence") {
    parts.push_back(field);
    return;
  }
  const JsonField items = field.member(list);
  for (size_t i = 0; i < items.num_items(); ++i) collect_parts(items.item(i), list, parts);
}

}  // namespace

std::vector<JsonField> parts_of(const JsonField& field, std::string_view list) {
  std::vector<JsonField> parts;
  collect_parts(field, list, parts);
  return parts;
}

std::unique_ptr<TextPattern> read_pattern(const JsonField& field, std::string_view what) {
  if (const auto regex = field.find("Regex")) {
    return make_regex_pattern(regex->string(), regex->name());
  }
  const auto string = field.find("String");
  if (!string) field.unsupported(fmt::format("{} by a pattern other than String and Regex", what));
  if (string->string().empty()) field.unsupported(fmt::format("{} by an empty string", what));
  return make_string_pattern(string->string());
}

const std::string& read_character(const JsonField& field) {
  const std::string& text = field.string();
  if (text.empty() || decode_utf8(text).size != text.size()) {
    field.corrupt(fmt::format("expected one character, found {}", in_quotes(text)));
  }
  return text;
}

std::unique_ptr<Normalizer> read_normalizer(const std::optional<JsonField>& field) {
  if (!field) return nullptr;
  std::vector<std::unique_ptr<Normalizer>> steps;
  for (const JsonField& part : parts_of(*field, "normalizers")) steps.push_back(read_one(part));
  if (steps.empty()) return nullptr;
  if (steps.size() == 1) return std::move(steps.front());
  return std::make_unique<NormalizerSequence>(std::move(steps));
}

}  // namespace paceline
