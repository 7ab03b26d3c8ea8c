// TextPattern finds the matches of a string or a regular expression in a text.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

namespace paceline {

// Immutable; any number of threads may use it at once.
class TextPattern {
 public:
  struct Match {
    size_t begin = 0;
    size_t end = 0;  // may be `begin`
  };
  virtual ~TextPattern() = default;
  // Replaces `matches` by those in `text` (well-formed UTF-8): leftmost first, in order, without
  // overlap. Throws Error exhausted when a pattern exceeds its limits of steps or memory.
  virtual void find_all(std::string_view text, std::vector<Match>& matches) const = 0;
};

// `string` must not be empty.
std::unique_ptr<TextPattern> make_string_pattern(std::string_view string);

// Any of these strings, none of them empty. Where several begin at one place, the longest.
std::unique_ptr<TextPattern> make_strings_pattern(const std::vector<std::string_view>& strings);

// On PCRE2. Throws Error unsupported as make_pcre_pattern does.
std::unique_ptr<TextPattern> make_regex_pattern(std::string_view pattern, std::string_view where);

}  // namespace paceline
