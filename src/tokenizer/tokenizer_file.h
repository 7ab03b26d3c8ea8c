// TokenizerFile: the contents of a tokenizer.json, checked.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe_model.h"
#include "tokenizer/pipeline.h"

namespace paceline {

struct TokenizerFile : BpeModel {
  std::vector<AddedToken> added_tokens;
  std::unique_ptr<Normalizer> normalizer;  // null: none
  PieceSplitter pieces;
  SpecialFrame frame;
  TokenDecoder decoder;
};

// A token with its flags, as tokenizer.json and tokenizer_config.json write it; the id stands
// inside the object or before it.
AddedToken read_added_token(const DocumentCursor& field, TokenId id);

// Reads the text of a tokenizer.json; `where` names it in errors. Throws Error unsupported naming
// the unimplemented part, corrupt naming the wrong field.
// `prefix_space`: overrides add_prefix_space of ByteLevel.
TokenizerFile read_tokenizer_file(std::string json, std::string_view where,
                                  std::optional<bool> prefix_space = std::nullopt);

}  // namespace paceline
