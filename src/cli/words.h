// Splitting short texts into words.
#pragma once

#include <string_view>
#include <vector>

namespace paceline {

// The non-empty parts of `text` between any of the characters of `separators`.
inline std::vector<std::string_view> split_words(std::string_view text,
                                                 std::string_view separators = " ") {
  std::vector<std::string_view> words;
  size_t begin = text.find_first_not_of(separators);
  while (begin != std::string_view::npos) {
    const size_t end = text.find_first_of(separators, begin);
    words.push_back(text.substr(begin, end - begin));
    begin = end == std::string_view::npos ? end : text.find_first_not_of(separators, end);
  }
  return words;
}

}  // namespace paceline
