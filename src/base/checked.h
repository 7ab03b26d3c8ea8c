// Checked unsigned arithmetic for sizes that come from files: every result is a value or nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace paceline {

inline std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

inline std::optional<uint64_t> checked_mul(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// The product of all factors (1 for none), checked factor by factor.
inline std::optional<uint64_t> checked_product(std::span<const uint64_t> factors) {
  uint64_t product = 1;
  for (uint64_t factor : factors) {
    const auto next = checked_mul(product, factor);
    if (!next) return std::nullopt;
    product = *next;
  }
  return product;
}

}  // namespace paceline
