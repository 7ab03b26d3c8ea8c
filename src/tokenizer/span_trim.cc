#include "tokenizer/span_trim.h"

#include <algorithm>

#include "base/utf8.h"
#include "tokenizer/unicode_class.h"

namespace paceline {
namespace {

constexpr std::string_view kSpaceLetter = "Ġ";  // of the byte-level alphabet

bool is_space(const ClassReader& text, size_t offset, std::string_view all) {
  return (text.at(offset).classes & kSpace) != 0 || all.substr(offset).starts_with(kSpaceLetter);
}

size_t spaces_at_begin(std::string_view token) {
  const ClassReader reader(token, UnicodeClassTable::shared());
  size_t count = 0;
  for (size_t at = 0; at < token.size() && is_space(reader, at, token); at += reader.at(at).size) {
    ++count;
  }
  return count;
}

size_t spaces_at_end(std::string_view token) {
  const ClassReader reader(token, UnicodeClassTable::shared());
  size_t count = 0;
  for (size_t end = token.size(); end > 0 && is_space(reader, reader.before(end), token);
       end = reader.before(end)) {
    ++count;
  }
  return count;
}

}  // namespace

TextSpan trim_span(TextSpan span, std::string_view input, TrimmedToken token,
                   bool add_prefix_space) {
  const ClassReader reader(input, UnicodeClassTable::shared());
  size_t leading = spaces_at_begin(token.text);
  if (leading == 1 && add_prefix_space && (token.first || span.begin == 0)) leading = 0;
  for (; leading > 0 && span.begin < span.end; --leading) {
    span.begin += reader.at(span.begin).size;
  }
  size_t trailing = spaces_at_end(token.text);
  size_t end = span.end;
  for (; trailing > 0 && end > 0; --trailing) end = reader.before(end);
  if (trailing == 0) span.end = std::max(end, span.begin);
  return span;
}

}  // namespace paceline
