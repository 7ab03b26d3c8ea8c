#include "grammar/name_set.h"

#include <algorithm>
#include <utility>

namespace paceline {

bool NameSet::contains(std::string_view name) const {
  return std::any_of(blocks_.begin(), blocks_.end(), [name](const auto& block) {
    return std::binary_search(block->begin(), block->end(), name);
  });
}

ByteSet NameSet::next_bytes(std::string_view prefix) const {
  ByteSet next;
  std::string bound(prefix);
  for (const auto& block : blocks_) {
    bound.resize(prefix.size());
    auto name = std::lower_bound(block->begin(), block->end(), bound);
    if (name != block->end() && *name == prefix) ++name;
    while (name != block->end() && name->starts_with(prefix)) {
      const auto byte = static_cast<uint8_t>((*name)[prefix.size()]);
      next[byte] = true;
      if (byte == 0xFF) break;
      bound.resize(prefix.size());
      bound += static_cast<char>(byte + 1);
      name = std::lower_bound(name, block->end(), bound);
    }
  }
  return next;
}

void NameSet::add(std::string name) {
  Block added;
  added.push_back(std::move(name));
  while (!blocks_.empty() && blocks_.back()->size() <= added.size()) {
    Block merged;
    merged.reserve(added.size() + blocks_.back()->size());
    std::merge(added.begin(), added.end(), blocks_.back()->begin(), blocks_.back()->end(),
               std::back_inserter(merged));
    added = std::move(merged);
    blocks_.pop_back();
  }
  blocks_.push_back(std::make_shared<const Block>(std::move(added)));
}

}  // namespace paceline
