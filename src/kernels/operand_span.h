// OperandSpan is what an operation reads or writes beside tensors: elements in the CPU's memory, or
// in the backend's own.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <variant>

#include "base/error.h"

namespace paceline {

// A view. `Device` is where elements stand in the backend's memory.
template <class T, class Device = T*>
class OperandSpan {
 public:
  OperandSpan() = default;
  template <std::convertible_to<std::span<T>> Host>
  OperandSpan(Host&& host) : place_(std::span<T>(host)) {}
  static OperandSpan on_device(Device place, int64_t size) {
    OperandSpan made;
    made.place_ = OnDevice{place, size};
    return made;
  }

  bool is_on_device() const { return std::holds_alternative<OnDevice>(place_); }
  int64_t size() const {
    return is_on_device() ? std::get<OnDevice>(place_).size : std::ssize(host());
  }
  std::span<T> host() const {
    PL_CHECK(!is_on_device(), "an operand on the device is read by its operations alone");
    return std::get<std::span<T>>(place_);
  }
  Device device() const {
    PL_CHECK(is_on_device(), "an operand in the CPU's memory");
    return std::get<OnDevice>(place_).place;
  }

 private:
  struct OnDevice {
    Device place;
    int64_t size;
  };
  std::variant<std::span<T>, OnDevice> place_;
};

// Ids, positions, rows or slots, one for each row of a tensor.
template <class T>
using Indices = OperandSpan<const T>;
// 0 or 1 for each row.
using RowFlags = OperandSpan<uint8_t>;

}  // namespace paceline
