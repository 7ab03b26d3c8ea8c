// Compares texts of templates by units, so that no mark is cut in two: "</a>" and "<b>" begin with
// no common unit, though with the same byte.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

// A unit is a tag ("<tool_call>", "[TOOL_CALLS]"), a number, a word, or one byte.
std::vector<std::string_view> text_units(std::string_view text);
bool is_tag(std::string_view unit);
bool is_digits(std::string_view unit);

// The common units at the beginning, or the end, of both; a part of `first`.
std::string_view common_prefix(std::string_view first, std::string_view second);
std::string_view common_suffix(std::string_view first, std::string_view second);

// As Python's str: without blanks (" \t\n\r") at the ends.
std::string_view trimmed_left(std::string_view text);
std::string_view trimmed_right(std::string_view text);
std::string_view trimmed(std::string_view text);
bool is_blank(char byte);
bool is_blank(std::string_view text);

// Bytes at the end of `text` with which `mark` may begin, short of all of it.
size_t partial_suffix(std::string_view text, std::string_view mark);

}  // namespace paceline
