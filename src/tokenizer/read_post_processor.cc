#include <fmt/format.h>

#include <string>

#include "tokenizer/pipeline.h"
#include "tokenizer/vocabulary.h"

namespace paceline {
namespace {

TokenId read_id(const DocumentCursor& field) {
  return static_cast<TokenId>(field.integer(kTokenIdRange));
}

// Puts these tokens around the frame's present ones.
void surround(SpecialFrame& frame, const std::vector<TokenId>& before,
              const std::vector<TokenId>& behind) {
  frame.before.insert(frame.before.begin(), before.begin(), before.end());
  frame.behind.insert(frame.behind.end(), behind.begin(), behind.end());
}

void add_template(const DocumentCursor& field, SpecialFrame& frame) {
  const DocumentCursor pieces = field.at("single");
  std::vector<TokenId> before;
  std::vector<TokenId> behind;
  bool text_seen = false;
  for (const DocumentCursor& piece : pieces.items()) {
    if (const auto special = piece.find("SpecialToken")) {
      const DocumentCursor ids =
          field.at("special_tokens").at(special->at("id").string()).at("ids");
      auto& side = text_seen ? behind : before;
      for (const DocumentCursor& token : ids.items()) side.push_back(read_id(token));
    } else {
      const DocumentCursor id = piece.at("Sequence").at("id");
      if (id.string() != "A" || text_seen) {
        refuse_part(id, "post_processor TemplateProcessing with a text other than one A");
      }
      text_seen = true;
    }
  }
  if (!text_seen) pieces.fail("the text (Sequence A) is missing");
  surround(frame, before, behind);
}

// A token of BertProcessing and RobertaProcessing: its text and its id.
TokenId read_token(const DocumentCursor& field) {
  const auto both = field.items();
  if (both.size() != 2)
    field.fail(fmt::format("{} items, expected a token and its id", both.size()));
  both[0].string();
  return read_id(both[1]);
}

void add_trim(const DocumentCursor& field, SpecialFrame& frame) {
  if (!field.boolean_or("trim_offsets", true)) return;
  frame.trims.push_back({.add_prefix_space = field.at("add_prefix_space").boolean()});
}

}  // namespace

SpecialFrame read_post_processor(const std::optional<DocumentCursor>& field) {
  SpecialFrame frame;
  if (!field) return frame;
  for (const DocumentCursor& part : parts_of(*field, "processors")) {
    const std::string_view type = part.at("type").string();
    if (type == "ByteLevel") {
      add_trim(part, frame);
    } else if (type == "TemplateProcessing") {
      add_template(part, frame);
    } else if (type == "RobertaProcessing") {
      add_trim(part, frame);
      surround(frame, {read_token(part.at("cls"))}, {read_token(part.at("sep"))});
    } else if (type == "BertProcessing") {
      surround(frame, {read_token(part.at("cls"))}, {read_token(part.at("sep"))});
    } else {
      refuse_part(part, fmt::format("post_processor {}", type));
    }
  }
  return frame;
}

}  // namespace paceline
