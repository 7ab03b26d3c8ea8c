// The orders in which GGUF files have rows and columns that Hugging Face's checkpoints have in
// another one (llama.cpp's convert_hf_to_gguf.py).
#pragma once

#include <cstdint>
#include <optional>

namespace paceline {

// Heads that belong to groups of equal size, one group after another. A file has the first head of
// each group, then the second of each, and so on: the value heads of gated delta nets, which share
// a key head within a group.
struct GgufHeadGroups {
  int64_t first = 0;  // rows before all heads, which keep their places
  int64_t groups = 1;
  int64_t heads = 1;  // of all groups
  int64_t size = 1;   // rows of a head

  int64_t num_rows() const { return first + heads * size; }
  bool is_reordered() const { return groups != heads && groups != 1; }
  int64_t in_file(int64_t row) const {
    if (row < first) return row;
    const int64_t head = (row - first) / size, group_size = heads / groups;
    const int64_t place = head % group_size * groups + head / group_size;
    return row + (place - head) * size;
  }

  // Calls use(row, row in the file, count) for consecutive rows that are neighbours in the file
  // too, in ascending order.
  template <class Use>
  void for_each_run(const Use& use) const {
    if (first > 0) use(int64_t{0}, int64_t{0}, first);
    for (int64_t row = first; row < num_rows(); row += size) use(row, in_file(row), size);
  }
};

// Maps rows of a matrix to rows of the file.
class GgufRowOrder {
 public:
  // As in the file.
  GgufRowOrder() = default;
  // Undoes the row order of query and key projections that convert_hf_to_gguf.py writes for
  // architecture llama: in each head (of an even number of rows) the file has row j of the first
  // half, then row j of the second.
  GgufRowOrder(int64_t num_rows, int64_t interleaved_heads)
      : half_head_(num_rows / interleaved_heads / 2) {}
  explicit GgufRowOrder(const GgufHeadGroups& groups) : groups_(groups) {}

  int64_t in_file(int64_t row) const {
    if (groups_) return groups_->in_file(row);
    if (half_head_ == 0) return row;
    const int64_t half = row / half_head_;  // even: the first of a head
    const int64_t index = row % half_head_;
    return (half - half % 2) * half_head_ + 2 * index + half % 2;
  }

 private:
  int64_t half_head_ = 0;
  std::optional<GgufHeadGroups> groups_;
};

}  // namespace paceline
