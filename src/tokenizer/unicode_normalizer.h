// UnicodeNormalizer: the four normalisation forms of Unicode.
#pragma once

#include "tokenizer/normalizer.h"

namespace paceline {

enum class UnicodeForm { nfc, nfd, nfkc, nfkd };

// As in HF tokenizers, whose tables are those of Unicode 9: newer characters are neither decomposed
// nor composed nor reordered.
class UnicodeNormalizer final : public Normalizer {
 public:
  explicit UnicodeNormalizer(UnicodeForm form) : form_(form) {}
  std::string_view normalize(std::string_view text, TextStore& store) const override;

 private:
  UnicodeForm form_;
};

}  // namespace paceline
