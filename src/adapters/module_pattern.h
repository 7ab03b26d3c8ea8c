// ModulePattern is a regular expression over module names, as PEFT's configs have them.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace paceline {

// Bounds the time of many matches by what the thread has computed since the first of them.
class MatchBudget {
 public:
  explicit MatchBudget(std::chrono::milliseconds limit) : limit_(limit) {}
  // Whether the limit is passed.
  bool is_spent();

 private:
  std::chrono::milliseconds limit_;
  std::optional<std::chrono::nanoseconds> begin_;
};

// Python's `re` with the syntax that PCRE2 shares. Immutable.
class ModulePattern {
 public:
  enum class Extent : uint8_t {
    begin,  // re.match: a match at the begin of the name
    whole,  // re.fullmatch
  };

  // Throws Error invalid "WHERE: ..." for a pattern that is malformed or too long.
  ModulePattern(std::string_view pattern, Extent extent, std::string where);
  ~ModulePattern();
  ModulePattern(ModulePattern&&) noexcept;
  ModulePattern& operator=(ModulePattern&&) noexcept;

  // Both throw Error exhausted when the match takes too many steps, or the budget is spent.
  bool matches(std::string_view module, MatchBudget& budget) const;
  // The text of a named group; nothing without a match, or where the group has no part in it.
  std::optional<std::string> find_group(std::string_view module, const std::string& group,
                                        MatchBudget& budget) const;

 private:
  struct Compiled;
  // The match is in the compiled pattern's state.
  bool match(std::string_view module, MatchBudget& budget) const;

  std::string where_;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace paceline
