#include <fmt/format.h>

#include <string>

#include "tokenizer/pipeline.h"
#include "tokenizer/vocabulary.h"

namespace paceline {
namespace {

TokenId read_id(const JsonField& field) {
  const int64_t id = field.integer();
  if (id < 0 || id >= kMaxTokenIds) field.corrupt(fmt::format("{} is no token id", id));
  return static_cast<TokenId>(id);
}

// Puts these tokens around what is there already.
void surround(SpecialFrame& frame, const std::vector<TokenId>& before,
              const std::vector<TokenId>& behind) {
  frame.before.insert(frame.before.begin(), before.begin(), before.end());
  frame.behind.insert(frame.behind.end(), behind.begin(), behind.end());
}

void add_template(const JsonField& field, SpecialFrame& frame) {
  const JsonField pieces = field.member("single");
  std::vector<TokenId> before;
  std::vector<TokenId> behind;
  bool text_seen = false;
  for (size_t i = 0; i < pieces.num_items(); ++i) {
    const JsonField piece = pieces.item(i);
    if (const auto special = piece.find("SpecialToken")) {
      const JsonField ids =
          field.member("special_tokens").member(special->member("id").string()).member("ids");
      auto& side = text_seen ? behind : before;
      for (size_t j = 0; j < ids.num_items(); ++j) side.push_back(read_id(ids.item(j)));
    } else {
      const JsonField id = piece.member("Sequence").member("id");
      if (id.string() != "A" || text_seen) {
        id.unsupported("post_processor TemplateProcessing with a text other than one A");
      }
      text_seen = true;
    }
  }
  if (!text_seen) pieces.corrupt("the text (Sequence A) is missing");
  surround(frame, before, behind);
}

// A token of BertProcessing and RobertaProcessing: its text and its id.
TokenId read_token(const JsonField& field) {
  if (field.num_items() != 2) field.corrupt("expected a token and its id");
  field.item(0).string();
  return read_id(field.item(1));
}

void add_trim(const JsonField& field, SpecialFrame& frame) {
  if (!field.boolean_or("trim_offsets", true)) return;
  frame.trims.push_back({.add_prefix_space = field.member("add_prefix_space").boolean()});
}

}  // namespace

SpecialFrame read_post_processor(const std::optional<JsonField>& field) {
  SpecialFrame frame;
  if (!field) return frame;
  for (const JsonField& part : parts_of(*field, "processors")) {
    const std::string& type = part.member("type").string();
    if (type == "ByteLevel") {
      add_trim(part, frame);
    } else if (type == "TemplateProcessing") {
      add_template(part, frame);
    } else if (type == "RobertaProcessing") {
      add_trim(part, frame);
      surround(frame, {read_token(part.member("cls"))}, {read_token(part.member("sep"))});
    } else if (type == "BertProcessing") {
      surround(frame, {read_token(part.member("cls"))}, {read_token(part.member("sep"))});
    } else {
      part.unsupported("post_processor " + type);
    }
  }
  return frame;
}

}  // namespace paceline
