// Normalizers on characters and strings: Prepend, Replace, Strip and similar.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tokenizer/normalizer.h"
#include "tokenizer/text_pattern.h"

namespace paceline {

// Puts `prefix` before a non-empty text.
class PrependNormalizer final : public Normalizer {
 public:
  explicit PrependNormalizer(std::string_view prefix) : prefix_(prefix) {}
  std::string_view normalize(std::string_view text, TextStore& store) const override;

 private:
  std::string prefix_;
};

class ReplaceNormalizer final : public Normalizer {
 public:
  ReplaceNormalizer(std::unique_ptr<TextPattern> pattern, std::string_view content)
      : pattern_(std::move(pattern)), content_(content) {}
  std::string_view normalize(std::string_view text, TextStore& store) const override;

 private:
  std::unique_ptr<TextPattern> pattern_;
  std::string content_;
};

// Removes the white space at the ends.
class StripNormalizer final : public Normalizer {
 public:
  struct Sides {
    bool left = true;
    bool right = true;
  };
  explicit StripNormalizer(Sides sides) : sides_(sides) {}
  std::string_view normalize(std::string_view text, TextStore& store) const override;

 private:
  Sides sides_;
};

// Removes accents, after a decomposition.
class StripAccentsNormalizer final : public Normalizer {
 public:
  std::string_view normalize(std::string_view text, TextStore& store) const override;
};

class LowercaseNormalizer final : public Normalizer {
 public:
  std::string_view normalize(std::string_view text, TextStore& store) const override;
  bool lowers_case() const override { return true; }
};

// Removes control characters and replaces space-like characters by spaces: SentencePiece's nmt.
class NmtNormalizer final : public Normalizer {
 public:
  std::string_view normalize(std::string_view text, TextStore& store) const override;
};

// Writes every byte as its character of the byte-level alphabet.
class ByteLevelNormalizer final : public Normalizer {
 public:
  std::string_view normalize(std::string_view text, TextStore& store) const override;
};

}  // namespace paceline
