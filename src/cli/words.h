// Splitting short texts into words and numbers.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <type_traits>
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

// The number that is the whole text; nothing for any other text.
template <class T>
std::optional<T> parse_number(std::string_view text, [[maybe_unused]] int base = 10) {
  T value{};
  const char* const end = text.data() + text.size();
  std::from_chars_result read{};
  if constexpr (std::is_integral_v<T>) {
    read = std::from_chars(text.data(), end, value, base);
  } else {
    read = std::from_chars(text.data(), end, value);
  }
  return read.ec == std::errc() && read.ptr == end ? std::optional(value) : std::nullopt;
}

}  // namespace paceline
