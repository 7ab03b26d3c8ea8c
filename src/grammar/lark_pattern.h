// The regular expressions of Lark's grammars, in the dialect of Python's re and Rust's regex.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

// The same expression as ECMA 262 writes it, for parse_pattern. `flags` are letters of "imslux".
// Here \d, \w and \s stand for ASCII's characters, and the flag i ignores the case of A to Z only.
// Error invalid or unsupported, without the place.
std::string ecma_pattern(std::string_view pattern, std::string_view flags);

}  // namespace paceline
