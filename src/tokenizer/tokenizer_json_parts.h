// The parts of a tokenizer.json that is made of another file.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/json_writer.h"

namespace paceline {

// Writes the opening brace and the members `version`, `truncation` and `padding`.
void begin_tokenizer_json(JsonWriter& writer);

// Writes an item of `added_tokens`, which is found in a text before it is normalised.
void write_added_token(int64_t id, std::string_view text, bool is_special, JsonWriter& writer);

// A token around texts.
struct FrameToken {
  std::string_view text = {};  // empty: none
  int64_t id = -1;
};

// Writes the value of `post_processor`.
void write_frame(const FrameToken& before, const FrameToken& behind, JsonWriter& writer);

// Writes the value of `decoder` of byte-level tokens.
void write_byte_level_decoder(JsonWriter& writer);

struct BpeMembers {
  std::string_view unknown = {};  // empty: none
  bool byte_fallback = false;
  bool ignore_merges = false;
};

// Writes the member `model` up to its `vocab`.
void begin_bpe_members(const BpeMembers& members, JsonWriter& writer);
// The same, and the `vocab`: `texts` by id, without empty ones.
void begin_bpe_model(const BpeMembers& members, const std::vector<std::string_view>& texts,
                     JsonWriter& writer);

}  // namespace paceline
