// SourceText is the text of a grammar and a place in it; errors name the line and the column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "grammar/code_points.h"
#include "grammar/text_form.h"
#include "paceline/error.h"

namespace paceline {

// Groups nested deeper, or counts above it, are Error exhausted.
inline constexpr size_t kMaxSourceNesting = 64;
inline constexpr uint32_t kMaxSourceCount = 1'000'000;

class SourceText {
 public:
  // Comments go from one of these marks to the end of the line.
  explicit SourceText(std::string_view text, std::span<const std::string_view> comment_marks = {})
      : text_(text), comment_marks_(comment_marks) {}

  size_t position() const { return position_; }
  void set_position(size_t position) { position_ = position; }
  bool at_end() const { return position_ == text_.size(); }
  // A NUL beyond the end.
  char peek(size_t ahead = 0) const;
  bool starts_with(std::string_view text) const {
    return text_.substr(position_).starts_with(text);
  }
  std::string_view slice(size_t begin, size_t end) const {
    return text_.substr(begin, end - begin);
  }
  // Both move behind what they found.
  bool take(char expected);
  bool take(std::string_view expected);
  void skip(size_t num_bytes) { position_ += num_bytes; }
  void skip_blanks();  // spaces and tabs
  void skip_line();    // up to the line break
  bool at_line_end() const { return peek() == '\n' || peek() == '\r'; }
  bool at_comment() const;
  void skip_comment();  // and blanks before it
  void skip_lines();    // blanks, comments and line breaks
  // Takes the `|` that continues a definition, perhaps on a later line. Behind it the definition
  // ends at a line break if `at_next` says that another one begins there: its last alternative is
  // empty.
  template <class AtNext>
  bool take_bar(AtNext at_next) {
    const size_t before = position_;
    skip_lines();
    if (!take('|')) {
      position_ = before;
      return false;
    }
    const size_t behind = position_;
    skip_lines();
    if (at_next()) position_ = behind;
    return true;
  }
  void skip_name();  // if there is one

  char32_t take_code_point();
  // Letters, digits, '-' and '_', at least one. `expected` says in an error what was to be named.
  std::string_view take_name(std::string_view expected);
  // Exactly `num_digits` hexadecimal digits whose value is a code point.
  char32_t take_hexadecimal(int num_digits);
  // A number of repetitions.
  uint32_t take_count();
  // "{m}", "{m,}", "{m,n}", "{,n}".
  std::pair<uint32_t, uint32_t> take_counts_in_braces();
  // Throws Error invalid unless min <= max.
  void check_counts(size_t at, uint32_t min, uint32_t max) const;
  // Throws Error exhausted when the group at this place is nested too deep.
  void check_nesting(size_t depth) const;

  // "line 3, column 7"; columns count code points.
  std::string place(size_t position) const;
  [[noreturn]] void fail(ErrorCode code, size_t position, std::string_view what) const;
  // "line 3, column 7: found ..., expected ..."
  [[noreturn]] void expected(std::string_view what) const;

 private:
  std::string shown_here() const;

  std::string_view text_;
  std::span<const std::string_view> comment_marks_;
  size_t position_ = 0;
};

// A class of characters such as [^a-z]; its ranges in any order.
struct CharacterClass {
  CodePointRanges ranges;
  bool is_negated = false;
};
RegexId character_class(RegexSet& regexes, const CharacterClass& of);

}  // namespace paceline
