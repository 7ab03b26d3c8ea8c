// BpeModel: the vocabulary and the merges of a tokenizer.json, checked.
#pragma once

#include <optional>

#include "base/json_document.h"
#include "tokenizer/bpe_symbols.h"
#include "tokenizer/merge_borders.h"
#include "tokenizer/merge_table.h"
#include "tokenizer/vocabulary.h"

namespace paceline {

struct BpeModel {
  BpeOptions options;
  Vocabulary vocabulary;
  MergeTable merges;
  // Nothing where a token's text isn't the text of its piece: with a prefix, or with merging bytes.
  std::optional<MergeBorders> borders;
};

// Reads the field `model`. Throws Error unsupported, or the document's, naming the field.
BpeModel read_bpe_model(const DocumentCursor& field);

}  // namespace paceline
