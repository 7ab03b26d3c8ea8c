// The parts of tokenizer.json around the model: normalizer, pre-tokenizer, post-processor, decoder.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tokenizer/json_field.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/tokenizer.h"

namespace paceline {

// The special tokens that the post-processor puts around a text.
struct SpecialFrame {
  std::vector<TokenId> before;
  std::vector<TokenId> behind;
};

// Each reads its field of tokenizer.json (nothing: absent or null). They throw Error unsupported
// naming the part that isn't implemented, corrupt naming the field that is wrong.

// Null when there is none.
std::unique_ptr<Normalizer> read_normalizer(const std::optional<JsonField>& field);

// A byte-level one: its pieces are to be read as bytes.
std::unique_ptr<PreTokenizer> read_pre_tokenizer(const JsonField& root);

// Its ids are as the file says; whether they exist is the caller's to check.
SpecialFrame read_post_processor(const std::optional<JsonField>& field);

// Only checks: ByteLevel is the one that is implemented.
void read_decoder(const JsonField& root);

}  // namespace paceline
