// CallStaging copies the operands of one operation that are in the CPU's memory to the device, all
// at once.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

#include "kernels/cuda/device.h"
#include "kernels/cuda/scratch_buffer.h"
#include "kernels/operand_span.h"

namespace paceline::cuda {

class CallStaging {
 public:
  CallStaging(CudaDevice& device, ScratchMemory& memory) : device_(device), on_device_(memory) {}

  // Where the elements of spans, vectors and Indices stand on the device, until the next call.
  template <class... Operands>
  auto upload(const Operands&... operands) {
    bytes_.clear();
    const std::tuple places{append(operands)...};
    auto* const first = static_cast<std::byte*>(on_device_.reserve(bytes_.size()));
    if (!bytes_.empty()) device_.copy_to_device(first, bytes_.data(), bytes_.size());
    return std::apply([first](auto... place) { return std::tuple{place.in(first)...}; }, places);
  }

 private:
  static constexpr size_t kAlignment = 16;

  template <class T>
  struct Place {
    T* there;  // already; nullptr: it is copied
    size_t offset;
    T* in(std::byte* first) const {
      return there != nullptr ? there : reinterpret_cast<T*>(first + offset);
    }
  };

  template <class Range>
  auto append(const Range& range) {
    const std::span elements(range);
    const size_t offset = (bytes_.size() + kAlignment - 1) / kAlignment * kAlignment;
    bytes_.resize(offset + elements.size_bytes());
    if (!elements.empty()) {
      std::memcpy(bytes_.data() + offset, elements.data(), elements.size_bytes());
    }
    return Place<std::remove_const_t<typename decltype(elements)::element_type>>{nullptr, offset};
  }
  template <class T>
  Place<const T> append(const Indices<T>& indices) {
    if (indices.is_on_device()) return {indices.device(), 0};
    return {nullptr, append(indices.host()).offset};
  }

  CudaDevice& device_;
  std::vector<std::byte> bytes_;
  ScratchBuffer on_device_;
};

}  // namespace paceline::cuda
