// BoundSpans are spans in the CPU's memory that stand for arrays of a device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "base/error.h"
#include "kernels/cuda/code/attention_chunk.h"
#include "kernels/operands.h"

namespace paceline::cuda {

// What stands for the slices of a batch, a row each.
struct BoundSlices {
  const AttentionRow* rows = nullptr;
  const int32_t* tables = nullptr;
  int64_t most_chunks = 0;  // of a row
};

class BoundSpans {
 public:
  // Until it is unbound, the span and those that begin where it does mean the array.
  template <class T>
  void bind(std::span<T> span, void* array) {
    PL_CHECK(!span.empty() && find_address(span.data()) == nullptr, "a span is bound once");
    bound_.push_back({span.data(), span.size_bytes(), array});
  }
  void unbind(const void* begin) {
    std::erase_if(bound_, [begin](const Bound& one) { return one.begin == begin; });
  }

  // nullptr for a span that isn't bound.
  template <class T>
  T* find(std::span<T> span) const {
    return static_cast<T*>(find_array(span.data(), span.size_bytes()));
  }
  const BoundSlices* find(std::span<const AttentionSlice> slices) const {
    return static_cast<const BoundSlices*>(find_array(slices.data(), slices.size_bytes()));
  }

 private:
  struct Bound {
    const void* begin;
    size_t bytes;
    void* array;
  };

  const Bound* find_address(const void* begin) const {
    const auto found = std::find_if(bound_.begin(), bound_.end(),
                                    [begin](const Bound& one) { return one.begin == begin; });
    return found == bound_.end() ? nullptr : &*found;
  }
  void* find_array(const void* begin, size_t bytes) const {
    if (bytes == 0) return nullptr;
    const Bound* const one = find_address(begin);
    if (one == nullptr) return nullptr;
    PL_CHECK(bytes <= one->bytes, "a span that is longer than the bound one");
    return one->array;
  }

  std::vector<Bound> bound_;
};

}  // namespace paceline::cuda
