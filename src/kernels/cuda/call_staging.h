// CallStaging copies the spans of one operation to the device, all at once.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <tuple>
#include <vector>

#include "kernels/cpu/growing_buffer.h"
#include "kernels/cuda/device.h"

namespace paceline::cuda {

class CallStaging {
 public:
  CallStaging(CudaDevice& device, Memory& memory) : device_(device), on_device_(memory) {}

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
    size_t offset;
    T* in(std::byte* first) const { return reinterpret_cast<T*>(first + offset); }
  };

  template <class T>
  Place<T> append(std::span<const T> span) {
    const size_t offset = (bytes_.size() + kAlignment - 1) / kAlignment * kAlignment;
    bytes_.resize(offset + span.size_bytes());
    if (!span.empty()) std::memcpy(bytes_.data() + offset, span.data(), span.size_bytes());
    return {offset};
  }

  CudaDevice& device_;
  std::vector<std::byte> bytes_;
  GrowingBuffer on_device_;
};

}  // namespace paceline::cuda
