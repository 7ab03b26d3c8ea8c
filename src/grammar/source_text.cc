#include "grammar/source_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_cursor.h"
#include "base/utf8.h"

namespace paceline {
namespace {

constexpr size_t kMaxNameBytes = 200;
constexpr char32_t kBeforeSurrogates = 0xD7FF;
constexpr char32_t kAfterSurrogates = 0xE000;

bool is_digit_of_source(char c) { return c >= '0' && c <= '9'; }

bool is_name_character(char c) {
  return is_digit_of_source(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '_';
}

int hexadecimal_digit(char c) {
  if (is_digit_of_source(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

char SourceText::peek(size_t ahead) const {
  return ahead < text_.size() - position_ ? text_[position_ + ahead] : '\0';
}

bool SourceText::take(char expected) {
  if (at_end() || text_[position_] != expected) return false;
  ++position_;
  return true;
}

bool SourceText::take(std::string_view expected) {
  if (!starts_with(expected)) return false;
  position_ += expected.size();
  return true;
}

void SourceText::skip_blanks() {
  while (peek() == ' ' || peek() == '\t') ++position_;
}

void SourceText::skip_line() {
  while (!at_end() && peek() != '\n' && peek() != '\r') ++position_;
}

bool SourceText::at_comment() const {
  return std::any_of(comment_marks_.begin(), comment_marks_.end(),
                     [&](std::string_view mark) { return starts_with(mark); });
}

void SourceText::skip_comment() {
  skip_blanks();
  if (at_comment()) skip_line();
}

void SourceText::skip_lines() {
  skip_comment();
  while (take('\n') || take('\r')) skip_comment();
}

void SourceText::skip_name() {
  while (is_name_character(peek())) ++position_;
}

char32_t SourceText::take_code_point() {
  const DecodedCodePoint decoded = decode_utf8(text_.substr(position_));
  position_ += decoded.size;
  return decoded.code_point;
}

std::string_view SourceText::take_name(std::string_view expected) {
  const size_t begin = position_;
  skip_name();
  if (position_ == begin) this->expected(expected);
  if (position_ - begin > kMaxNameBytes) {
    fail(ErrorCode::exhausted, begin, fmt::format("a name of more than {} bytes", kMaxNameBytes));
  }
  return slice(begin, position_);
}

char32_t SourceText::take_hexadecimal(int num_digits) {
  const size_t begin = position_;
  char32_t value = 0;
  for (int i = 0; i < num_digits; ++i) {
    const int digit = hexadecimal_digit(peek());
    if (digit < 0) expected(fmt::format("{} hexadecimal digits", num_digits));
    value = value * 16 + static_cast<char32_t>(digit);
    ++position_;
  }
  if (value > kLastCodePoint || (value > kBeforeSurrogates && value < kAfterSurrogates)) {
    fail(ErrorCode::invalid, begin,
         fmt::format("U+{:04X} isn't a character", static_cast<uint32_t>(value)));
  }
  return value;
}

uint32_t SourceText::take_count() {
  const size_t begin = position_;
  if (!is_digit_of_source(peek())) expected("a number of repetitions");
  uint32_t count = 0;
  while (is_digit_of_source(peek())) {
    count = count * 10 + static_cast<uint32_t>(peek() - '0');
    if (count > kMaxSourceCount) {
      fail(ErrorCode::exhausted, begin,
           fmt::format("more than {} repetitions, the most that a grammar may count",
                       kMaxSourceCount));
    }
    ++position_;
  }
  return count;
}

std::pair<uint32_t, uint32_t> SourceText::take_counts_in_braces() {
  const size_t begin = position_;
  ++position_;
  skip_blanks();
  const uint32_t min = peek() == ',' ? 0 : take_count();
  uint32_t max = min;
  skip_blanks();
  if (take(',')) {
    skip_blanks();
    max = peek() == '}' ? kUnbounded : take_count();
    skip_blanks();
  }
  if (!take('}')) expected("`}`, as in {2,5}");
  check_counts(begin, min, max);
  return {min, max};
}

void SourceText::check_counts(size_t at, uint32_t min, uint32_t max) const {
  if (min <= max) return;
  fail(ErrorCode::invalid, at,
       fmt::format("from {} to {} repetitions, expected the lower number first", min, max));
}

void SourceText::check_nesting(size_t depth) const {
  if (depth <= kMaxSourceNesting) return;
  fail(ErrorCode::exhausted, position_,
       fmt::format("groups are nested deeper than {} levels", kMaxSourceNesting));
}

std::string SourceText::place(size_t position) const {
  const std::string_view before = text_.substr(0, position);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t line_break = before.rfind('\n');
  const size_t begin = line_break == std::string_view::npos ? 0 : line_break + 1;
  return fmt::format("line {}, column {}", line, count_code_points(before.substr(begin)) + 1);
}

void SourceText::fail(ErrorCode code, size_t position, std::string_view what) const {
  throw Error(code, fmt::format("{}: {}", place(position), what));
}

void SourceText::expected(std::string_view what) const {
  fail(ErrorCode::invalid, position_, found_instead(shown_here(), what));
}

// A name or number as a whole, else a character.
std::string SourceText::shown_here() const {
  if (at_end()) return "the end of the text";
  if (peek() == '\n' || peek() == '\r') return "the end of the line";
  size_t end = position_;
  while (end < text_.size() && is_name_character(text_[end])) ++end;
  if (end == position_) end += decode_utf8(text_.substr(position_)).size;
  if (starts_with("::=")) end = position_ + 3;
  return shown_text(slice(position_, end));
}

RegexId character_class(RegexSet& regexes, const CharacterClass& of) {
  CodePointRanges inside = sorted_ranges(of.ranges);
  if (of.is_negated) inside = all_code_points_but(inside);
  return one_of_characters(regexes, inside, TextForm::utf8);
}

}  // namespace paceline
