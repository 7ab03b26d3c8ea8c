#include "chat/template_string_literal.h"

#include <fmt/format.h>

#include "base/utf8.h"
#include "chat/template_error.h"

namespace paceline {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The code point of exactly `count` hexadecimal digits.
char32_t hex_digits(std::string_view digits, size_t count) {
  char32_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    const int digit = i < digits.size() ? hex_value(digits[i]) : -1;
    if (digit < 0)
      throw TemplateError(fmt::format("a string's escape needs {} hexadecimal digits", count));
    value = value * 16 + static_cast<char32_t>(digit);
  }
  if (value > 0x10FFFF) throw TemplateError("a string's escape is beyond U+10FFFF");
  return value;
}

char simple_escape(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'v':
      return '\v';
    case '\\':
    case '\'':
    case '"':
      return c;
    default:
      return '\0';
  }
}

// Appends a code point; the halves of a pair of surrogates become one character.
void append_code_point(std::string& out, char32_t code_point, char32_t& high) {
  const bool is_low = code_point >= 0xDC00 && code_point < 0xE000;
  if (high != 0 && is_low) {
    paceline::append_utf8(out, 0x10000 + ((high - 0xD800) << 10) + (code_point - 0xDC00));
    high = 0;
    return;
  }
  if (high != 0) paceline::append_utf8(out, kReplacementCharacter);
  high = 0;
  if (code_point >= 0xD800 && code_point < 0xDC00) {
    high = code_point;
  } else {
    paceline::append_utf8(out, is_low ? kReplacementCharacter : code_point);
  }
}

}  // namespace

std::string unescape_string(std::string_view text) {
  std::string out;
  char32_t high = 0;  // of a pair of surrogates whose other half may follow
  size_t i = 0;
  const auto flush = [&] {
    if (high != 0) append_utf8(out, kReplacementCharacter);
    high = 0;
  };
  while (i < text.size()) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      flush();
      out.push_back(text[i++]);
      continue;
    }
    const char c = text[i + 1];
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits > 0) {
      append_code_point(out, hex_digits(text.substr(i + 2), digits), high);
      i += 2 + digits;
      continue;
    }
    flush();
    if (c >= '0' && c <= '7') {
      char32_t value = 0;
      size_t count = 0;
      for (; count < 3 && i + 1 + count < text.size() && text[i + 1 + count] >= '0' &&
             text[i + 1 + count] <= '7';
           ++count) {
        value = value * 8 + static_cast<char32_t>(text[i + 1 + count] - '0');
      }
      append_utf8(out, value);
      i += 1 + count;
    } else if (c == 'N') {
      throw TemplateError("a string's escape \\N{...} isn't supported");
    } else if (c == '\n') {
      i += 2;
    } else if (const char simple = simple_escape(c); simple != '\0') {
      out.push_back(simple);
      i += 2;
    } else {
      out.push_back('\\');
      ++i;
    }
  }
  flush();
  return out;
}

}  // namespace paceline
