// String operations by code points, like Python's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"

namespace paceline {

class TemplateRuntime;

int64_t length_of(std::string_view text);

// Calls body(code point, its bytes) for each code point.
template <class Body>
void for_each_code_point(std::string_view text, Body&& body) {
  while (!text.empty()) {
    const DecodedCodePoint here = decode_utf8(text);
    body(here.code_point, text.substr(0, here.size));
    text.remove_prefix(here.size);
  }
}

// The last code point of `text`, which isn't empty.
std::string_view last_character(std::string_view text);

// The end of the white space that begins at `from`, and the begin of that at the end.
size_t end_of_spaces(std::string_view text, size_t from);
size_t begin_of_last_spaces(std::string_view text);

// The code points of `text`, each as a view.
std::vector<std::string_view> characters_of(std::string_view text);

// str.splitlines(), without the ends.
std::vector<std::string_view> lines_of(std::string_view text);

// str.split() on white space, at most `max_splits` times (negative: any number), from either end.
enum class SplitFrom { left, right };
std::vector<std::string_view> split_on_spaces(std::string_view text, int64_t max_splits,
                                              SplitFrom from);
// The same on a non-empty separator.
std::vector<std::string_view> split_on(std::string_view text, std::string_view separator,
                                       int64_t max_splits, SplitFrom from);

enum class Ends { left, right, both };
std::string_view stripped(std::string_view text, Ends ends);
// Strips any of the characters in `set`.
std::string_view stripped_of(std::string_view text, std::string_view set, Ends ends);

enum class Alignment {
  left,
  right,
  center,  // an odd blank goes to the left where the width is odd
};

// `text` padded to a width in characters. Charged to the budget; throws TemplateError exhausted for
// more padding than 100,000 characters.
std::string padded(TemplateRuntime& runtime, std::string_view text, int64_t width,
                   std::string_view fill, Alignment alignment);

// Throws TemplateError exhausted beyond `limit` bytes.
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
