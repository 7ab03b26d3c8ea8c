// BpeModel: the vocabulary and the merges of a tokenizer.json, checked.
#pragma once

#include <optional>

#include "tokenizer/bpe_symbols.h"
#include "tokenizer/dom_field.h"
#include "tokenizer/merge_borders.h"
#include "tokenizer/merge_table.h"
#include "tokenizer/vocabulary.h"

namespace paceline {

struct BpeModel {
  BpeOptions options;
  Vocabulary vocabulary;
  MergeTable merges;
  // Nothing where the text of a token can't be relied on: a prefix, or bytes that merge.
  std::optional<MergeBorders> borders;
};

// Reads the field `model`. Throws Error unsupported or corrupt naming the field.
BpeModel read_bpe_model(const simdjson::dom::element& value, FilePlace place);

}  // namespace paceline
