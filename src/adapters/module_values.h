// ModuleValues is a number by module name, as PEFT's rank_pattern and alpha_pattern have them.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "adapters/module_pattern.h"

namespace paceline {

template <class T>
class ModuleValues {
 public:
  struct Entry {
    std::string key;
    ModulePattern pattern;
    T value;
  };

  // Throws Error invalid "WHERE: ..." for a key that is no regular expression.
  void add(std::string_view key, T value, std::string where) {
    ModulePattern pattern(fmt::format("(.*\\.)?({})$", key), ModulePattern::Extent::begin,
                          std::move(where));
    entries_.push_back({std::string(key), std::move(pattern), value});
  }

  // The first entry for which Python's re.match finds (.*\.)?(KEY)$ in the name (get_pattern_key in
  // peft/utils/other.py); null without one. Throws what ModulePattern::matches() throws.
  const Entry* find(std::string_view module, MatchBudget& budget) const {
    for (const Entry& entry : entries_) {
      if (entry.pattern.matches(module, budget)) return &entry;
    }
    return nullptr;
  }

  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

}  // namespace paceline
