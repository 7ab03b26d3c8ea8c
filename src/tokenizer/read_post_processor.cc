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

using Part = SpecialFrame::Part;

// An item of a template for pairs.
Part read_pair_part(const DocumentCursor& field, const DocumentCursor& item) {
  Part part;
  const auto special = item.find("SpecialToken");
  const DocumentCursor own = special ? *special : item.at("Sequence");
  const std::string_view id = own.at("id").string();
  part.type_id = static_cast<int32_t>(own.at("type_id").integer({.min = 0, .max = 1e9}));
  part.bare_type_id = part.type_id;
  if (special) {
    for (const DocumentCursor& token : field.at("special_tokens").at(id).at("ids").items()) {
      part.ids.push_back(read_id(token));
    }
  } else if (id == "A" || id == "B") {
    part.kind = id == "A" ? Part::Kind::first : Part::Kind::second;
  } else {
    own.at("id").mismatch("A or B");
  }
  return part;
}

// A template without one A and one B is not for pairs.
void add_pair_template(const DocumentCursor& field, SpecialFrame& frame) {
  frame.pair.clear();
  int num_first = 0, num_second = 0;
  if (const auto pair = field.find("pair")) {
    for (const DocumentCursor& item : pair->items()) {
      frame.pair.push_back(read_pair_part(field, item));
      num_first += frame.pair.back().kind == Part::Kind::first ? 1 : 0;
      num_second += frame.pair.back().kind == Part::Kind::second ? 1 : 0;
    }
  }
  frame.pairs = num_first == 1 && num_second == 1;
}

// [CLS] A [SEP] B [SEP] with type 1 from B on.
void add_bert_pair(TokenId cls, TokenId sep, SpecialFrame& frame) {
  frame.pair = {{.ids = {cls}},
                {.kind = Part::Kind::first},
                {.ids = {sep}},
                {.kind = Part::Kind::second, .type_id = 1, .bare_type_id = 1},
                {.ids = {sep}, .type_id = 1}};
}

// <s> A </s> </s> B </s> with type 0.
void add_roberta_pair(TokenId cls, TokenId sep, SpecialFrame& frame) {
  frame.pair = {{.ids = {cls}},
                {.kind = Part::Kind::first},
                {.ids = {sep, sep}},
                {.kind = Part::Kind::second},
                {.ids = {sep}}};
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
  int num_frames = 0;
  for (const DocumentCursor& part : parts_of(*field, "processors")) {
    const std::string_view type = part.at("type").string();
    num_frames += type == "ByteLevel" ? 0 : 1;
    if (type == "ByteLevel") {
      add_trim(part, frame);
    } else if (type == "TemplateProcessing") {
      add_template(part, frame);
      add_pair_template(part, frame);
    } else if (type == "RobertaProcessing") {
      add_trim(part, frame);
      const TokenId cls = read_token(part.at("cls"));
      const TokenId sep = read_token(part.at("sep"));
      surround(frame, {cls}, {sep});
      add_roberta_pair(cls, sep, frame);
    } else if (type == "BertProcessing") {
      const TokenId cls = read_token(part.at("cls"));
      const TokenId sep = read_token(part.at("sep"));
      surround(frame, {cls}, {sep});
      add_bert_pair(cls, sep, frame);
    } else {
      refuse_part(part, fmt::format("post_processor {}", type));
    }
  }
  // One post-processor after another joins a pair in ways of its own.
  if (num_frames > 1) frame.pairs = false;
  return frame;
}

}  // namespace paceline
