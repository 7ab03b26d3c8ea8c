// BpeModel: the vocabulary and the merges of a tokenizer.json, or another model instead of merges:
// Unigram or WordPiece. Checked.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/json_document.h"
#include "tokenizer/bpe_symbols.h"
#include "tokenizer/merge_borders.h"
#include "tokenizer/merge_table.h"
#include "tokenizer/unigram_model.h"
#include "tokenizer/vocabulary.h"
#include "tokenizer/word_piece_model.h"

namespace paceline {

struct BpeModel {
  BpeOptions options;
  Vocabulary vocabulary;
  MergeTable merges;
  // Instead of merges, in a model of type Unigram.
  std::unique_ptr<UnigramModel> unigram;
  // The same of type WordPiece.
  std::unique_ptr<WordPieceModel> word_piece;
  // Ascending. A piece with the text of one is that token, whatever it could become otherwise.
  std::vector<TokenId> whole_tokens;
  // Nothing where a token's text isn't the text of its piece: with a prefix, or with merging bytes.
  std::optional<MergeBorders> borders;
};

// Reads the field `model`. Throws Error unsupported, or the document's, naming the field.
BpeModel read_bpe_model(const DocumentCursor& field);

}  // namespace paceline
