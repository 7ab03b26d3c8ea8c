// Character classes like Python's str.
#pragma once

#include <string_view>

namespace paceline {

bool is_alpha(char32_t c);
bool is_digit(char32_t c);  // also superscripts and other marks for one digit
bool is_decimal(char32_t c);
bool is_numeric(char32_t c);  // also fractions, Roman and Chinese numbers
inline bool is_alnum(char32_t c) { return is_alpha(c) || is_numeric(c); }
inline bool is_ascii(char32_t c) { return c < 0x80; }
bool is_python_space(char32_t c);  // also \s of Python's regular expressions
bool is_printable(char32_t c);     // repr() writes it as it is

bool is_upper(char32_t c);
bool is_lower(char32_t c);
bool is_title(char32_t c);  // one sign for two letters, the first a capital
inline bool is_cased(char32_t c) { return is_upper(c) || is_lower(c) || is_title(c); }
bool is_case_ignorable(char32_t c);  // marks, and signs inside words: Case_Ignorable of Unicode

// Tests every character, like str.isalpha(); false for "".
bool all_characters(std::string_view text, bool (*is)(char32_t));

}  // namespace paceline
