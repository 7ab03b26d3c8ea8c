// White space like str.isspace() and \s in Python's regular expressions.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/utf8.h"

namespace paceline {

inline bool is_python_space(char32_t c) {
  if (c < 0x80) return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

// The end of the white space that begins at `from`.
inline size_t end_of_spaces(std::string_view text, size_t from) {
  while (from < text.size()) {
    const DecodedCodePoint here = decode_utf8(text.substr(from));
    if (!is_python_space(here.code_point)) break;
    from += here.size;
  }
  return from;
}

// The begin of the white space at the end of `text`.
inline size_t begin_of_last_spaces(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    size_t begin = end - 1;
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
    if (!is_python_space(decode_utf8(text.substr(begin)).code_point)) break;
    end = begin;
  }
  return end;
}

}  // namespace paceline
