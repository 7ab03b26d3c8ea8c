// The literals of templates: numbers, and the escapes of strings.
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

// The number that begins at `begin` of `source`, where a digit stands; as jinja2.lexer cuts them.
NumberLiteral scan_number(std::string_view source, size_t begin);

// Of an integer as written, without underscores; nothing beyond 64 bits.
std::optional<int64_t> integer_of_literal(std::string_view text);

// What Python's "unicode-escape" codec makes of the text between the quotes. Throws TemplateError
// for an escape that is cut short.
std::string unescape_string(std::string_view text);

}  // namespace paceline
