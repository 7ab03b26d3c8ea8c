// PatternReader reads the characters, escapes and classes of a regular expression.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "grammar/code_points.h"
#include "paceline/error.h"

namespace paceline {

class PatternReader {
 public:
  // Error invalid when it isn't UTF-8. The text must outlive the reader.
  explicit PatternReader(std::string_view pattern);

  bool is_at_end() const { return at_ == pattern_.size(); }
  size_t position() const { return at_; }
  // 0 at the end.
  char peek(size_t distance = 0) const;
  bool accept(std::string_view text);
  bool is_next(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  char32_t take_character();

  // The digits of a count, if any. Error exhausted above a million.
  std::optional<uint32_t> take_count();
  // What stands behind a backslash outside of a class.
  CodePointRanges take_escape();
  // What stands behind `[`, with its end.
  CodePointRanges take_class(bool ignores_case);

  void go_back_to(size_t position) { at_ = position; }
  // Throws an Error that names the pattern and the place.
  [[noreturn]] void fail(ErrorCode code, size_t position, std::string_view what) const;

 private:
  // A class such as \d, or one character.
  struct Item {
    CodePointRanges set;
    std::optional<char32_t> character;
  };
  Item take_escaped_item(bool is_in_class);
  Item take_class_item();
  CodePointRanges take_property(bool is_negated);
  std::optional<char32_t> take_control_escape(char32_t letter);
  char32_t take_unicode_escape();
  std::optional<uint32_t> take_hex_digits(size_t count);

  std::string_view pattern_;
  size_t at_ = 0;
};

}  // namespace paceline
