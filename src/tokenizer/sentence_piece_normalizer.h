// SentencePieceNormalizer: a text as sentencepiece normalises it before it looks for pieces.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_document.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/string_matcher.h"

namespace paceline {

// A precompiled_charsmap: replacements of texts, found by the longest match. A trie in the form of
// darts-clone, then the replacements, each with a NUL at its end (sentencepiece's builder.cc).
class CharsMap {
 public:
  // Throws Error corrupt "WHERE: ..." for a map whose sizes contradict each other.
  CharsMap(std::string bytes, std::string_view where);

  struct Replacement {
    size_t size = 0;        // of the replaced text
    std::string_view text;  // what replaces it
  };
  // The longest replaced text that `text` begins with; nothing when it begins with none.
  std::optional<Replacement> find(std::string_view text) const;
  // What replaces the shortest one.
  std::optional<std::string_view> find_shortest(std::string_view text) const;

 private:
  // Calls `use(replacement)` for replaced texts, the shortest first, until it returns false.
  template <class Use>
  void for_each_match(std::string_view text, Use use) const;
  uint32_t unit(size_t index) const;

  std::string bytes_;
  size_t num_units_ = 0;
  std::string_view replacements_;
};

// What must agree with Normalizer::Normalize of sentencepiece 0.2: the map's replacements, then
// runs of spaces, spaces as U+2581, and one before the text.
class SentencePieceNormalizer final : public Normalizer {
 public:
  enum class Prefix : uint8_t { always, first, never };  // first: where the input begins
  struct Options {
    Prefix prefix = Prefix::always;
    bool remove_extra_whitespaces = false;  // at both ends, and all but one of a run
    std::unique_ptr<CharsMap> charsmap;     // null: none
    std::unique_ptr<StringMatcher> kept;    // texts that the map doesn't change; null: none
  };
  explicit SentencePieceNormalizer(Options options) : options_(std::move(options)) {}
  std::string_view normalize(std::string_view text, TextStore& store) const override;

 private:
  // A part of the text and what it becomes, with marks for spaces.
  struct Part {
    size_t size = 0;
    std::string text;
  };

  std::vector<Part> parts_of(std::string_view text) const;
  CharsMap::Replacement replacement_at(std::string_view text, size_t at,
                                       std::optional<StringMatcher::Match>& kept) const;
  bool wants_prefix(std::string_view text, const TextStore& store) const;

  Options options_;
};

// Reads {"type": "SentencePiece", ...} (made_fields.h).
std::unique_ptr<Normalizer> read_sentence_piece_normalizer(const DocumentCursor& field);

}  // namespace paceline
