// BertNormalizer: cleans a text, puts spaces around Chinese characters, strips accents, lowers
// case.
#pragma once

#include "tokenizer/normalizer.h"
#include "tokenizer/text_normalizers.h"
#include "tokenizer/unicode_normalizer.h"

namespace paceline {

class BertNormalizer final : public Normalizer {
 public:
  struct Options {
    bool clean_text = true;            // control characters go, white space becomes spaces
    bool handle_chinese_chars = true;  // each becomes a word
    bool strip_accents = true;
    bool lowercase = true;
  };
  explicit BertNormalizer(Options options) : options_(options) {}
  std::string_view normalize(std::string_view text, TextStore& store) const override;

 private:
  std::string_view normalize_ascii(std::string_view text, TextStore& store) const;

  Options options_;
  UnicodeNormalizer decompose_{UnicodeForm::nfd};
  LowercaseNormalizer lower_;
};

}  // namespace paceline
