// TokenizerFile: what a tokenizer.json says, checked.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/merge_table.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/vocabulary.h"

namespace paceline {

struct TokenizerFile {
  std::vector<AddedToken> added_tokens;
  std::unique_ptr<Normalizer> normalizer;  // null: none
  std::unique_ptr<PreTokenizer> pre_tokenizer;
  Vocabulary vocabulary;
  MergeTable merges;
  bool ignore_merges = false;  // a piece that is a token is that token
  SpecialFrame frame;
};

// Reads the text of a tokenizer.json; `where` names it in errors. Throws Error unsupported naming
// the part that isn't implemented, corrupt naming the field that is wrong.
TokenizerFile read_tokenizer_file(std::string json, std::string_view where);

}  // namespace paceline
