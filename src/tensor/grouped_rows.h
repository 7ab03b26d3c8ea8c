// GroupedRows is a matrix quantised in groups along its rows, in any file format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tensor/value_rows.h"

namespace paceline {

// What codes stand for.
enum class CodeType : uint8_t {
  integer,
  e4m3,  // floats of 8 bits: an element is their product with the scale, rounded to bfloat16
};

// How the elements of a matrix share scales.
struct Grouping {
  int bits = 4;  // 2 to 6, or 8: every code is below 2^bits; 3 and 5 need groups of 32 or more
  int64_t group_size = 32;  // consecutive elements of a row: 16, 32, 64 or 128; divides the row
  // The code of zero in every group: the offset is -zero_point * scale. Without one
  // each group has an offset of its own.
  std::optional<int> zero_point;
  // The number of neighbouring groups whose scales are small multiples of one float16 (and their
  // offsets, if any, of another); 1: none. Divides the groups of a row.
  int64_t groups_per_factor = 1;
  CodeType codes = CodeType::integer;

  constexpr int64_t factor_length() const { return group_size * groups_per_factor; }  // in elements
  constexpr bool has_multiples() const { return groups_per_factor > 1; }
  constexpr bool is_float8() const { return codes == CodeType::e4m3; }

  bool operator==(const Grouping&) const = default;
};

// The parts of a row's scales where groups share factors: scale g is
// factors[g / groups_per_factor] * scales[g], and likewise its offset.
struct ScaleMultiples {
  std::span<float> factors;  // all of them exact in float16
  std::span<int8_t> scales;
  std::span<float> offset_factors;  // without a zero point
  std::span<int8_t> offsets;
};

// How matrices of E4M3 are grouped: codes of all 8 bits, around 0.
constexpr Grouping float8_grouping(int64_t group_size) {
  return {.bits = 8, .group_size = group_size, .zero_point = 0, .codes = CodeType::e4m3};
}

// Element i of row r is scale(r, i / group_size) * code(r, i) + offset(r, i / group_size): the
// affine format of MLX, and a common form of all block formats of GGUF. Codes of CodeType::e4m3
// have float32 scales and no offsets. Several threads may read
// rows at once.
class GroupedRows : public ValueRows {
 public:
  virtual Grouping grouping() const = 0;

  // The element of a row that each code of read_codes() is, where the elements of a group aren't
  // neighbours (GPTQ's act-order): a permutation of [0, row_length). Empty: element i is code i.
  // Groups of such rows don't share factors.
  virtual std::span<const int32_t> column_order() const { return {}; }

  // Reads one row: codes [row_length], scales and offsets [row_length / group_size].
  virtual void read_codes(int64_t row, std::span<uint8_t> codes, std::span<float> scales,
                          std::span<float> offsets) const = 0;

  // The same where groups share factors; otherwise none.
  virtual void read_multiples(int64_t row, std::span<uint8_t> codes,
                              const ScaleMultiples& multiples) const;

  // The bytes that hold the matrix, for a digest.
  virtual std::vector<std::span<const std::byte>> stored_bytes() const = 0;
};

}  // namespace paceline
