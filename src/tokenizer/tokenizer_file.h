// TokenizerFile: the contents of a tokenizer.json, checked.
#pragma once

#include <memory>
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

// Reads the text of a tokenizer.json; `where` names it in errors. Throws Error unsupported naming
// the part that isn't implemented, corrupt naming the field that is wrong.
TokenizerFile read_tokenizer_file(std::string json, std::string_view where);

}  // namespace paceline
