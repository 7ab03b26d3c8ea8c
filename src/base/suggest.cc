#include "base/suggest.h"

#include <algorithm>
#include <string>
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

// Without the dashes in front, which all options share.
std::string_view without_dashes(std::string_view name) {
  return name.substr(std::min(name.find_first_not_of('-'), name.size()));
}

// The words of "max-tokens", sorted.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (folded(c) == '-') {
      words.emplace_back();
    } else {
      words.back() += folded(c);
    }
  }
  std::sort(words.begin(), words.end());
  return words;
}

// "model-path" for "model", whose words are all in it; "tokens-max" for "max-tokens-per-sequence".
bool share_words(std::string_view word, std::string_view name) {
  const std::vector<std::string> a = words_of(word), b = words_of(name);
  return std::includes(a.begin(), a.end(), b.begin(), b.end()) ||
         (a.size() > 1 && std::includes(b.begin(), b.end(), a.begin(), a.end()));
}

// The only name for which `holds`, if there is one.
template <class Test>
std::optional<std::string_view> only_name(std::span<const std::string_view> names, Test&& holds) {
  std::optional<std::string_view> found;
  for (std::string_view name : names) {
    if (!holds(without_dashes(name))) continue;
    if (found) return std::nullopt;
    found = name;
  }
  return found;
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
  word = without_dashes(word);
  if (word.empty() || word.size() > kMaxWord) return std::nullopt;
  std::optional<std::string_view> best;
  size_t best_distance = std::max<size_t>(word.size() / 4, 1) + 1;
  for (std::string_view name : names) {
    const size_t distance = edit_distance(word, without_dashes(name));
    if (distance < best_distance && distance < without_dashes(name).size()) {
      best = name;
      best_distance = distance;
    }
  }
  if (best || word.size() < kMinPrefix) return best;
  best = only_name(names, [&](std::string_view name) { return begins_with(name, word); });
  if (best) return best;
  best = only_name(names, [&](auto name) { return words_of(word) == words_of(name); });
  return best ? best : only_name(names, [&](auto name) { return share_words(word, name); });
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> names) {
  const auto name = closest_name(word, names);
  return name ? "; did you mean " + std::string(*name) + "?" : std::string();
}

}  // namespace paceline
