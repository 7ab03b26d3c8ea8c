// How operations on rows are shared out over the threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/divide_up.h"
#include "base/thread_pool.h"
#include "kernels/cpu/kernel_table.h"

namespace paceline {

// With fewer elements, waking another thread takes longer than the work.
constexpr int64_t kPieceElements = 16384;

// Calls body(row) for all rows, split over the threads in pieces of at least kPieceElements
// elements.
template <class Body>
void split_rows(ThreadPool& threads, int64_t rows, int64_t row_elements, Body&& body) {
  const int64_t grain = std::max<int64_t>(1, kPieceElements / std::max<int64_t>(1, row_elements));
  threads.parallel_for(rows, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) body(row);
  });
}

inline int64_t num_row_blocks(int64_t width) { return divide_up(width, kRowBlock); }

// Calls body(row, block, first column, columns) for rows cut into blocks of kRowBlock columns.
template <class Body>
void split_row_blocks(ThreadPool& threads, int64_t rows, int64_t width, Body&& body) {
  const int64_t blocks = num_row_blocks(width);
  split_rows(threads, rows * blocks, std::min(width, kRowBlock), [&](int64_t unit) {
    const int64_t block = unit % blocks, first = block * kRowBlock;
    body(unit / blocks, block, first, std::min(kRowBlock, width - first));
  });
}

}  // namespace paceline
