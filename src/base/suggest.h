// Finds the name that a misspelt one probably means.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace paceline {

// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b` (optimal
// string alignment distance); letter case and '-' against '_' cost nothing.
size_t edit_distance(std::string_view a, std::string_view b);

// The name nearest to `word`, if at most about a third of its letters are wrong, or else the first
// that begins with `word`. The first of equally near names.
std::optional<std::string_view> closest_name(std::string_view word,
                                             std::span<const std::string_view> names);

// "; did you mean NAME?" for the end of a message, or an empty string.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> names);

}  // namespace paceline
