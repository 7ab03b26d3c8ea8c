// Lines walks several views of one shape together, a line of evenly spaced elements at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "autodiff/array.h"

namespace paceline::autodiff {

// Outputs that one thread takes at a time.
constexpr int64_t kElementGrain = 16384;

// Calls body(begin, end) for parts of [0, count), on the threads of the context's pool if it has
// one. `cost` is about the number of elements that a part of one takes.
template <class Body>
void for_parts(const Context& context, int64_t count, int64_t cost, Body&& body) {
  if (count <= 0) return;
  const int64_t grain = std::max<int64_t>(1, kElementGrain / std::max<int64_t>(1, cost));
  if (context.shared_pool != nullptr && count > grain) {
    context.shared_pool->parallel_for(count, grain, body);
  } else if (context.pool != nullptr && count > grain) {
    context.pool->parallel_for(count, grain,
                               [&](int64_t begin, int64_t end, int) { body(begin, end); });
  } else {
    body(int64_t{0}, count);
  }
}

// Dimensions that all views step through evenly are one.
template <size_t N>
class Lines {
 public:
  using Offsets = std::array<int64_t, N>;  // of each view, in elements

  explicit Lines(const std::array<const Tensor*, N>& views) {
    const Extents& shape = views[0]->shape();
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape[i] == 1) continue;
      Offsets strides;
      for (size_t v = 0; v < N; ++v) strides[v] = views[v]->strides()[i];
      add_dimension(shape[i], strides);
    }
    if (rank_ == 0) add_dimension(1, Offsets{});
    num_lines_ = 1;
    for (int i = 0; i + 1 < rank_; ++i) num_lines_ *= sizes_[static_cast<size_t>(i)];
  }

  int64_t num_lines() const { return num_lines_; }
  int64_t length() const { return sizes_[static_cast<size_t>(rank_ - 1)]; }
  const Offsets& strides() const { return strides_[static_cast<size_t>(rank_ - 1)]; }

  Offsets begin_of(int64_t line) const {
    Offsets offsets{};
    for (int i = rank_ - 2; i >= 0; --i) {
      const int64_t size = sizes_[static_cast<size_t>(i)];
      const int64_t position = line % size;
      line /= size;
      for (size_t v = 0; v < N; ++v) offsets[v] += position * strides_[static_cast<size_t>(i)][v];
    }
    return offsets;
  }

 private:
  void add_dimension(int64_t size, const Offsets& strides) {
    if (rank_ > 0) {
      Offsets& last = strides_[static_cast<size_t>(rank_ - 1)];
      bool is_even = true;
      for (size_t v = 0; v < N; ++v) is_even = is_even && last[v] == strides[v] * size;
      if (is_even) {
        sizes_[static_cast<size_t>(rank_ - 1)] *= size;
        last = strides;
        return;
      }
    }
    sizes_[static_cast<size_t>(rank_)] = size;
    strides_[static_cast<size_t>(rank_)] = strides;
    ++rank_;
  }

  int rank_ = 0;
  int64_t num_lines_ = 0;
  std::array<int64_t, kMaxRank> sizes_{};
  std::array<Offsets, kMaxRank> strides_{};
};

// Calls body(offsets, length) for parts of lines: element i of view v is at offsets[v] + i *
// strides()[v].
template <size_t N, class Body>
void for_each_line(const Context& context, const Lines<N>& lines, Body&& body) {
  if (lines.num_lines() == 1) {
    for_parts(context, lines.length(), 1, [&](int64_t begin, int64_t end) {
      auto offsets = lines.begin_of(0);
      for (size_t v = 0; v < N; ++v) offsets[v] += begin * lines.strides()[v];
      body(offsets, end - begin);
    });
    return;
  }
  for_parts(context, lines.num_lines(), lines.length(), [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) body(lines.begin_of(line), lines.length());
  });
}

}  // namespace paceline::autodiff
