#include "tokenizer/rank_queue.h"

#include <algorithm>
#include <functional>

namespace paceline {

void RankQueue::push(uint32_t rank, uint32_t position) {
  Positions& positions = ranks_[rank];
  auto& items = positions.items;
  if (!positions.is_heap && !items.empty() && items.back() > position) {
    items.erase(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(positions.next));
    positions.is_heap = true;  // ascending items are one
  }
  items.push_back(position);
  if (positions.is_heap) std::push_heap(items.begin(), items.end(), std::greater<>());
}

RankQueue::Item RankQueue::pop() {
  const auto lowest = ranks_.begin();
  const uint32_t rank = lowest->first;
  Positions& positions = lowest->second;
  auto& items = positions.items;
  uint32_t position = 0;
  if (positions.is_heap) {
    std::pop_heap(items.begin(), items.end(), std::greater<>());
    position = items.back();
    items.pop_back();
  } else {
    position = items[positions.next++];
  }
  if (items.size() == (positions.is_heap ? 0 : positions.next)) ranks_.erase(lowest);
  return {rank, position};
}

}  // namespace paceline
