// The literals of templates: numbers, and string escapes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace paceline {

struct NumberLiteral {
  size_t end;
  bool is_float;
};

// The number at `begin` of `source`, where a digit must be; like jinja2.lexer.
NumberLiteral scan_number(std::string_view source, size_t begin);

// Parses an integer as written, without underscores; nothing beyond 64 bits.
std::optional<int64_t> integer_of_literal(std::string_view text);

// Decodes the text between the quotes like Python's "unicode-escape" codec. Throws TemplateError
// for a truncated escape.
std::string unescape_string(std::string_view text);

}  // namespace paceline
