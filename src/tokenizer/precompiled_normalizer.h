// PrecompiledNormalizer: sentencepiece's charsmap as the normalizer Precompiled of HF tokenizers
// applies it.
#pragma once

#include <memory>
#include <utility>

#include "base/json_document.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/sentence_piece_normalizer.h"

namespace paceline {

// Unlike sentencepiece, it looks up grapheme clusters of fewer than six bytes, else characters, and
// replaces each whole by what the map has for the shortest text that it begins with
// (spm_precompiled 0.1.4). Indic conjuncts and pairs of regional indicators don't count as
// clusters: they have six bytes or more.
class PrecompiledNormalizer final : public Normalizer {
 public:
  explicit PrecompiledNormalizer(std::unique_ptr<CharsMap> map) : map_(std::move(map)) {}
  std::string_view normalize(std::string_view text, TextStore& store) const override;

 private:
  std::unique_ptr<CharsMap> map_;
};

// Reads {"type": "Precompiled", "precompiled_charsmap": BASE64}.
std::unique_ptr<Normalizer> read_precompiled_normalizer(const DocumentCursor& field);

}  // namespace paceline
