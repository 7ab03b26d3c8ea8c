#include "tokenizer/pipeline.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "tokenizer/split_pattern.h"
#include "tokenizer/vocabulary.h"

namespace paceline {
namespace {

void add_split(const JsonField& field, std::vector<std::unique_ptr<PreTokenizer>>& steps) {
  const std::string& behavior = field.member("behavior").string();
  if (behavior != "Isolated") {
    field.unsupported(fmt::format("pre_tokenizer Split with behavior {}", behavior));
  }
  if (field.boolean_or("invert", false)) field.unsupported("pre_tokenizer Split with invert");
  const JsonField pattern = field.member("pattern");
  const auto regex = pattern.find("Regex");
  if (!regex) field.unsupported("pre_tokenizer Split by a pattern other than Regex");
  steps.push_back(
      std::make_unique<IsolatedSplit>(make_split_pattern(regex->string(), regex->name())));
}

void add_byte_level(const JsonField& field, std::vector<std::unique_ptr<PreTokenizer>>& steps) {
  if (field.member("add_prefix_space").boolean()) steps.push_back(std::make_unique<PrefixSpace>());
  if (!field.boolean_or("use_regex", true)) return;
  steps.push_back(std::make_unique<IsolatedSplit>(make_split_pattern(kGpt2Pattern, field.name())));
}

// The fields of a pre-tokenizer, Sequences opened.
void flatten(const JsonField& field, std::string_view list, std::vector<JsonField>& parts) {
  if (field.member("type").string() != "Sequence") {
    parts.push_back(field);
    return;
  }
  const JsonField items = field.member(list);
  for (size_t i = 0; i < items.num_items(); ++i) flatten(items.item(i), list, parts);
}

// The ids that a special token of a template stands for.
std::vector<TokenId> template_ids(const JsonField& tokens, const JsonField& piece) {
  const JsonField ids = tokens.member(piece.member("id").string()).member("ids");
  std::vector<TokenId> result;
  for (size_t i = 0; i < ids.num_items(); ++i) {
    const int64_t id = ids.item(i).integer();
    if (id < 0 || id >= kMaxTokenIds) ids.item(i).corrupt(fmt::format("{} is no token id", id));
    result.push_back(static_cast<TokenId>(id));
  }
  return result;
}

// Puts the special tokens of a TemplateProcessing around what is there already.
void add_template(const JsonField& field, SpecialFrame& frame) {
  const JsonField pieces = field.member("single");
  SpecialFrame added;
  bool text_seen = false;
  for (size_t i = 0; i < pieces.num_items(); ++i) {
    const JsonField piece = pieces.item(i);
    if (const auto special = piece.find("SpecialToken")) {
      const auto ids = template_ids(field.member("special_tokens"), *special);
      auto& side = text_seen ? added.behind : added.before;
      side.insert(side.end(), ids.begin(), ids.end());
    } else {
      const JsonField id = piece.member("Sequence").member("id");
      if (id.string() != "A" || text_seen) {
        id.unsupported("post_processor TemplateProcessing with a text other than one A");
      }
      text_seen = true;
    }
  }
  if (!text_seen) pieces.corrupt("the text (Sequence A) is missing");
  frame.before.insert(frame.before.begin(), added.before.begin(), added.before.end());
  frame.behind.insert(frame.behind.end(), added.behind.begin(), added.behind.end());
}

}  // namespace

std::unique_ptr<Normalizer> read_normalizer(const std::optional<JsonField>& field) {
  if (!field) return nullptr;
  std::vector<JsonField> parts;
  flatten(*field, "normalizers", parts);
  std::vector<std::unique_ptr<Normalizer>> steps;
  for (const JsonField& part : parts) {
    const std::string& type = part.member("type").string();
    if (type != "NFC") part.unsupported("normalizer " + type);
    steps.push_back(std::make_unique<NfcNormalizer>());
  }
  if (steps.empty()) return nullptr;
  if (steps.size() == 1) return std::move(steps.front());
  return std::make_unique<NormalizerSequence>(std::move(steps));
}

std::unique_ptr<PreTokenizer> read_pre_tokenizer(const JsonField& root) {
  const auto field = root.find("pre_tokenizer");
  if (!field) root.unsupported("a file without pre_tokenizer ByteLevel");
  std::vector<JsonField> parts;
  flatten(*field, "pretokenizers", parts);
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  bool byte_level = false;
  for (const JsonField& part : parts) {
    const std::string& type = part.member("type").string();
    if (byte_level) part.unsupported(fmt::format("pre_tokenizer {} behind ByteLevel", type));
    if (type == "Split") {
      add_split(part, steps);
    } else if (type == "ByteLevel") {
      add_byte_level(part, steps);
      byte_level = true;
    } else {
      part.unsupported("pre_tokenizer " + type);
    }
  }
  if (!byte_level) field->unsupported("pre_tokenizer without ByteLevel");
  return std::make_unique<PreTokenizerSequence>(std::move(steps));
}

SpecialFrame read_post_processor(const std::optional<JsonField>& field) {
  SpecialFrame frame;
  if (!field) return frame;
  std::vector<JsonField> parts;
  flatten(*field, "processors", parts);
  for (const JsonField& part : parts) {
    const std::string& type = part.member("type").string();
    if (type == "ByteLevel") continue;  // changes offsets only
    if (type != "TemplateProcessing") part.unsupported("post_processor " + type);
    add_template(part, frame);
  }
  return frame;
}

void read_decoder(const JsonField& root) {
  const auto field = root.find("decoder");
  if (!field) root.unsupported("a file without decoder ByteLevel");
  const std::string& type = field->member("type").string();
  if (type != "ByteLevel") field->unsupported("decoder " + type);
}

}  // namespace paceline
