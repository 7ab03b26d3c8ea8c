// NameSet is a set of names that grows: a value whose copies share what they have in common.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/regex_set.h"

namespace paceline {

// Sorted blocks, each larger than the next one: an addition merges those of its size, so it costs
// O(log n) on average, and the rest O(log^2 n) (Bentley and Saxe, "Decomposable searching problems
// I: Static-to-dynamic transformation", 1980).
class NameSet {
 public:
  bool empty() const { return blocks_.empty(); }
  bool contains(std::string_view name) const;
  // The bytes that follow `prefix` in some name.
  ByteSet next_bytes(std::string_view prefix) const;
  // `name` is not in the set.
  void add(std::string name);

 private:
  using Block = std::vector<std::string>;
  std::vector<std::shared_ptr<const Block>> blocks_;
};

}  // namespace paceline
