// RankQueue: positions in order of rank, and from left to right within a rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace paceline {

// A queue for each rank that is present. Merging needs few ranks and mostly from left to right,
// so most pops are O(1); a rank whose positions come out of order becomes a heap. O(log n) at
// worst.
class RankQueue {
 public:
  struct Item {
    uint32_t rank = 0;
    uint32_t position = 0;
  };

  bool empty() const { return ranks_.empty(); }
  void push(uint32_t rank, uint32_t position);
  // The lowest rank's leftmost position; the queue must not be empty.
  Item pop();

 private:
  struct Positions {
    std::vector<uint32_t> items;
    size_t next = 0;       // of ascending items: the first that hasn't been popped
    bool is_heap = false;  // else ascending
  };

  std::map<uint32_t, Positions> ranks_;  // none is empty
};

}  // namespace paceline
