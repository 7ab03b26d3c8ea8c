// TokenizerFile: what a tokenizer.json says, checked.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe_symbols.h"
#include "tokenizer/merge_borders.h"
#include "tokenizer/merge_table.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/vocabulary.h"

namespace paceline {

struct TokenizerFile {
  std::vector<AddedToken> added_tokens;
  std::unique_ptr<Normalizer> normalizer;  // null: none
  PieceSplitter pieces;
  Vocabulary vocabulary;
  MergeTable merges;
  // Nothing where the text of a token can't be relied on: a prefix, or bytes that merge.
  std::optional<MergeBorders> borders;
  BpeOptions options;
  SpecialFrame frame;
  TokenDecoder decoder;
};

// Reads the text of a tokenizer.json; `where` names it in errors. Throws Error unsupported naming
// the part that isn't implemented, corrupt naming the field that is wrong.
TokenizerFile read_tokenizer_file(std::string json, std::string_view where);

}  // namespace paceline
