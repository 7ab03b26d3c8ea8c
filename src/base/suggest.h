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

// The name nearest to `word`, if at most a quarter of its letters (or one) are wrong; the first of
// equally near ones. Else the only name that begins with `word`, or the only one that has the same
// words ("tokens-max") or some of them ("model-path" for "model"). Dashes in front count nothing.
std::optional<std::string_view> closest_name(std::string_view word,
                                             std::span<const std::string_view> names);

// "; did you mean NAME?" for the end of a message, or an empty string.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> names);

}  // namespace paceline
