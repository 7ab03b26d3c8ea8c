// Finds differences between Oniguruma (HF tokenizers) and PCRE2 in a regular expression.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace paceline {

// The construct in `pattern` that the two engines read differently, or may, in words for a message;
// nothing if PCRE2 (with UTF and UCP) can run it instead of Oniguruma. Source: RE and SYNTAX.md of
// Oniguruma 6.9 (syntax Ruby), pcre2pattern(3).
std::optional<std::string> dialect_difference(std::string_view pattern);

// `pattern` with \s and \S spelt out: U+180E is white space in PCRE2, but not in Oniguruma.
std::string with_spaces_spelt_out(std::string_view pattern);

}  // namespace paceline
