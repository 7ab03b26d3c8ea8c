// The parts of tokenizer.json around the model: normalizer, pre-tokenizer, post-processor, decoder.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "paceline/tokenizer.h"
#include "tokenizer/json_field.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/token_decoder.h"

namespace paceline {

// The post-processor's changes to an encoded text.
struct SpecialFrame {
  std::vector<TokenId> before;  // the special tokens that it puts around it
  std::vector<TokenId> behind;
  // The spans lose the white space at their ends, once per entry.
  struct Trim {
    bool add_prefix_space = true;  // one space before the text isn't the text's own
  };
  std::vector<Trim> trims;
};

struct PieceSplitter {
  std::unique_ptr<PreTokenizer> pre_tokenizer;
  bool byte_level = false;  // every byte of a piece stands for its byte-level character
};

// Each reads its field of tokenizer.json (nothing: absent or null). They throw Error unsupported
// naming the part that isn't implemented, corrupt naming the field that is wrong.

// Null when there is none.
std::unique_ptr<Normalizer> read_normalizer(const std::optional<JsonField>& field);

PieceSplitter read_pre_tokenizer(const std::optional<JsonField>& field);

// The ids are the file's; the caller checks that they exist.
SpecialFrame read_post_processor(const std::optional<JsonField>& field);

TokenDecoder read_decoder(const std::optional<JsonField>& field);

// The parts of a field of type Sequence, whose list has this key, and theirs; else the field alone.
std::vector<JsonField> parts_of(const JsonField& field, std::string_view list);

// A pattern is written as {"String": ...} or {"Regex": ...}; `what` names the part in errors.
std::unique_ptr<TextPattern> read_pattern(const JsonField& field, std::string_view what);

// A string of one character.
const std::string& read_character(const JsonField& field);

}  // namespace paceline
