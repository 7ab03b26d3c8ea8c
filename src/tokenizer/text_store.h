// TextStore owns the texts that one call of encode makes from its input, and maps each of their
// bytes to the input.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "paceline/tokenizer.h"

namespace paceline {

// The spans agree with the alignments of `NormalizedString` of HF tokenizers.
class TextStore {
 public:
  // Tracking costs time and memory; without it span() must not be called.
  enum class Spans { untracked, tracked };
  // `input` is well-formed UTF-8 and must outlive it.
  explicit TextStore(std::string_view input, Spans spans = Spans::untracked);
  TextStore(const TextStore&) = delete;
  TextStore& operator=(const TextStore&) = delete;

  bool tracked() const { return tracked_; }
  // Whether `text`, a part of the input or of a text made here, begins with the input's first
  // character or its replacement.
  bool at_start(std::string_view text) const;
  // The part of the input that `text` stands for, in whole characters; `text` isn't empty.
  TextSpan span(std::string_view text) const;

 private:
  friend class TextEdit;
  struct Made {
    size_t size = 0;
    std::vector<TextSpan> spans;  // by byte
  };

  std::string_view input_;
  std::vector<std::string_view> starts_;  // replacements of the input's first character
  bool tracked_;
  std::deque<std::string> texts_;     // views of them stay valid
  std::map<const char*, Made> made_;  // by where the text begins; empty when untracked
};

// Writes a new text while it reads an old one, which is a part of the input or was made here.
class TextEdit {
 public:
  TextEdit(TextStore& store, std::string_view text);
  TextEdit(const TextEdit&) = delete;
  TextEdit& operator=(const TextEdit&) = delete;

  // The rest of the old text.
  std::string_view rest() const { return text_.substr(offset_); }
  void keep(size_t bytes);  // copies the next ones
  void skip(size_t bytes);  // omits them
  // Writes characters that replace the next character of the old text, which is still to be
  // skipped, or the previous one.
  void put_for_next(std::string_view characters);
  void put_for_previous(std::string_view characters);

  // The new text. Call it once, when nothing is left.
  std::string_view finish();

 private:
  void put(std::string_view characters, size_t source);
  void note_start(size_t bytes, size_t source);
  TextSpan span_at(size_t source) const;

  TextStore& store_;
  std::string_view text_;
  std::string& made_;
  std::vector<TextSpan> spans_;
  size_t offset_ = 0;
  size_t start_bytes_ = 0;  // of the new text: the replacement of the input's first character
  bool start_goes_on_ = true;
};

}  // namespace paceline
