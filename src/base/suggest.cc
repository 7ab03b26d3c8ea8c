#include "base/suggest.h"

#include <algorithm>
#include <vector>

namespace paceline {
namespace {

constexpr size_t kMinPrefix = 3;

char folded(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
  return c == '_' ? '-' : c;
}

bool begins_with(std::string_view name, std::string_view word) {
  return name.size() >= word.size() &&
         std::equal(word.begin(), word.end(), name.begin(),
                    [](char a, char b) { return folded(a) == folded(b); });
}

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = folded(a[i - 1]) == folded(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) &&
          folded(a[i - 2]) == folded(b[j - 1])) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::optional<std::string_view> closest_name(std::string_view word,
                                             std::span<const std::string_view> names) {
  constexpr size_t kMaxWord = 64;  // bounds the table; names are shorter
  if (word.empty() || word.size() > kMaxWord) return std::nullopt;
  std::optional<std::string_view> best;
  size_t best_distance = std::max<size_t>(word.size() / 3, 1) + 1;
  for (std::string_view name : names) {
    const size_t distance = edit_distance(word, name);
    if (distance < best_distance && distance < name.size()) {
      best = name;
      best_distance = distance;
    }
  }
  if (best || word.size() < kMinPrefix) return best;
  const auto prefixed = std::find_if(
      names.begin(), names.end(), [&](std::string_view name) { return begins_with(name, word); });
  if (prefixed != names.end()) best = *prefixed;
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> names) {
  const auto name = closest_name(word, names);
  return name ? "; did you mean " + std::string(*name) + "?" : std::string();
}

}  // namespace paceline
