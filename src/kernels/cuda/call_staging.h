// CallStaging copies the spans of one operation to the device, all at once, but for bound ones.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <tuple>
#include <vector>

#include "kernels/cuda/bound_spans.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/scratch_buffer.h"

namespace paceline::cuda {

class CallStaging {
 public:
  CallStaging(CudaDevice& device, ScratchMemory& memory, const BoundSpans& bound)
      : device_(device), bound_(bound), on_device_(memory) {}

  // Where the spans stand on the device, until the next call.
  template <class... T>
  std::tuple<T*...> upload(std::span<const T>... spans) {
    bytes_.clear();
    const std::tuple<Place<T>...> places = {append(spans)...};
    auto* const first = static_cast<std::byte*>(on_device_.reserve(bytes_.size()));
    if (!bytes_.empty()) device_.copy_to_device(first, bytes_.data(), bytes_.size());
    return std::apply([first](auto... place) { return std::tuple<T*...>{place.in(first)...}; },
                      places);
  }

 private:
  static constexpr size_t kAlignment = 16;

  template <class T>
  struct Place {
    T* bound;  // nullptr: it is copied
    size_t offset;
    T* in(std::byte* first) const {
      return bound != nullptr ? bound : reinterpret_cast<T*>(first + offset);
    }
  };

  template <class T>
  Place<T> append(std::span<const T> span) {
    if (const T* const bound = bound_.find(span)) return {const_cast<T*>(bound), 0};
    const size_t offset = (bytes_.size() + kAlignment - 1) / kAlignment * kAlignment;
    bytes_.resize(offset + span.size_bytes());
    if (!span.empty()) std::memcpy(bytes_.data() + offset, span.data(), span.size_bytes());
    return {nullptr, offset};
  }

  CudaDevice& device_;
  const BoundSpans& bound_;
  std::vector<std::byte> bytes_;
  ScratchBuffer on_device_;
};

}  // namespace paceline::cuda
