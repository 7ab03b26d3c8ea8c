// Strings as Python counts them: by code points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

int64_t length_of(std::string_view text);

// The code points of `text`, each as a view.
std::vector<std::string_view> characters_of(std::string_view text);

// str.splitlines(), without the ends.
std::vector<std::string_view> lines_of(std::string_view text);

// str.split() on white space, at most `max_splits` times (negative: any number); from the right
// when `from_right`.
enum class SplitFrom { left, right };
std::vector<std::string_view> split_on_spaces(std::string_view text, int64_t max_splits,
                                              SplitFrom from);
// The same on a separator, which isn't empty.
std::vector<std::string_view> split_on(std::string_view text, std::string_view separator,
                                       int64_t max_splits, SplitFrom from);

enum class Ends { left, right, both };
std::string_view stripped(std::string_view text, Ends ends);
// Of any of the characters in `set`.
std::string_view stripped_of(std::string_view text, std::string_view set, Ends ends);

std::string upper_case(std::string_view text);
std::string lower_case(std::string_view text);
std::string capitalized(std::string_view text);
std::string title_case(std::string_view text);
std::string swapped_case(std::string_view text);

// Letters, digits... as str.isalpha() and the like ask of every character; false for "".
bool all_characters(std::string_view text, const std::function<bool(char32_t)>& is);
bool is_alpha(char32_t c);
bool is_digit(char32_t c);
bool is_decimal(char32_t c);
bool is_numeric(char32_t c);
bool is_upper_text(std::string_view text);  // str.isupper()
bool is_lower_text(std::string_view text);
bool is_title_text(std::string_view text);

// At most `limit` bytes, or TemplateError exhausted.
std::string replaced(std::string_view text, std::string_view from, std::string_view to,
                     int64_t count, size_t limit);

// Indices [start, stop) with a step of a Python slice over `length` items, in order. A step of 0 is
// a TemplateError.
struct PythonSlice {
  bool has_start = false;
  bool has_stop = false;
  int64_t start = 0;
  int64_t stop = 0;
  int64_t step = 1;
};
std::vector<size_t> indices_of(const PythonSlice& slice, int64_t length);

}  // namespace paceline
