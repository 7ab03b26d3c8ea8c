#include "kernels/group_packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/error.h"
#include "tensor/float8.h"

namespace paceline {
namespace {

PackedMatrix make_matrix(const PackedGroups& groups, int64_t n, int64_t k, Memory& memory) {
  PackedMatrix matrix;
  matrix.dtype = DType::bf16;
  matrix.groups = groups;
  matrix.n = n;
  matrix.k = k;
  matrix.storage = Buffer(memory, static_cast<size_t>(matrix.bytes()));
  return matrix;
}

uint8_t* panel_of(const PackedMatrix& matrix, int64_t n) {
  return static_cast<uint8_t*>(matrix.storage.get()) + n / kPanelWidth * matrix.panel_bytes();
}

// The parts of one group in the panel of column n.
struct GroupParts {
  uint8_t* scales;
  uint8_t* multiples;
  uint8_t* codes;
};
GroupParts parts_of(const PackedMatrix& matrix, int64_t n, int64_t group) {
  uint8_t* const panel = panel_of(matrix, n);
  const PackedGroups::Place place = matrix.groups->place_of(group);
  return {panel + place.scales, panel + place.multiples, panel + place.codes};
}

// The power of two just above the largest magnitude: quotients fall in the middle of float16's
// range.
float column_factor(const std::vector<float>& scales, const std::vector<float>& offsets) {
  float largest = 0.0f;
  for (const float value : scales) largest = std::max(largest, std::abs(value));
  for (const float value : offsets) largest = std::max(largest, std::abs(value));
  if (!(largest > 0.0f) || !std::isfinite(largest)) return 1.0f;
  int exponent = 0;
  std::frexp(largest, &exponent);
  // Products are multiplied by it at the end, so it must be a normal number.
  return std::ldexp(1.0f, std::clamp(exponent, -100, 100));
}

void store_half(uint8_t* halves, int64_t index, float value) {
  const Float16 half = to_float16(value);
  std::memcpy(halves + index * 2, &half, sizeof(half));
}

float load_half(const uint8_t* halves, int64_t index) {
  Float16 half;
  std::memcpy(&half, halves + index * 2, sizeof(half));
  return to_float(half);
}

// Packs kWidth bits of each code, from `shift` on, into a plane.
template <int kWidth>
void pack_plane(const uint8_t* codes, int64_t size, int shift, int64_t column, uint8_t* plane) {
  constexpr int64_t kInByte = 8 / kWidth;
  for (int64_t k = 0; k < size; k += 4 * kInByte) {
    uint8_t* const word = plane + code_place(kWidth, k, column).byte;
    for (int64_t b = 0; b < 4; ++b) {
      int byte = 0;
      for (int64_t j = 0; j < kInByte; ++j) {
        byte |= (codes[k + 4 * j + b] >> shift & ((1 << kWidth) - 1)) << (kWidth * j);
      }
      word[b] = static_cast<uint8_t>(byte);
    }
  }
}

void pack_plane(int width, const uint8_t* codes, int64_t size, int shift, int64_t column,
                uint8_t* plane) {
  switch (width) {
    case 1:
      return pack_plane<1>(codes, size, shift, column, plane);
    case 2:
      return pack_plane<2>(codes, size, shift, column, plane);
    case 4:
      return pack_plane<4>(codes, size, shift, column, plane);
    default:
      return pack_plane<8>(codes, size, shift, column, plane);
  }
}

void pack_codes(const uint8_t* codes, int bits, int64_t size, int64_t column, uint8_t* to) {
  const CodePlanes planes = code_planes(bits);
  pack_plane(planes.low, codes, size, 0, column, to);
  if (planes.high > 0) {
    uint8_t* const high = to + size * kPanelWidth * planes.low / 8;
    pack_plane(planes.high, codes, size, planes.low, column, high);
  }
}

// Packs column after column; holds one column, unpacked.
class ColumnPacker {
 public:
  explicit ColumnPacker(const PackedMatrix& matrix)
      : matrix_(matrix),
        groups_(*matrix.groups),
        codes_(static_cast<size_t>(matrix.k)),
        scales_(static_cast<size_t>(matrix.num_records())),
        offsets_(scales_.size()) {
    if (!groups_.grouping.has_multiples()) return;
    multiples_.resize(static_cast<size_t>(matrix.num_groups()));
    offset_multiples_.resize(multiples_.size());
  }

  void pack(const GroupedRows& rows, int64_t row, int64_t n) {
    if (groups_.grouping.is_float8()) return pack_float8(rows, row, n);
    const float factor = read(rows, row);
    const int64_t column = n % kPanelWidth, size = groups_.grouping.group_size;
    std::memcpy(panel_of(matrix_, n) + column * 4, &factor, sizeof(factor));
    for (int64_t g = 0; g < matrix_.num_groups(); ++g) {
      const GroupParts parts = parts_of(matrix_, n, g);
      if (g % groups_.grouping.groups_per_factor == 0) {
        const auto record = static_cast<size_t>(g / groups_.grouping.groups_per_factor);
        store_half(parts.scales, column, scales_[record] / factor);
        if (groups_.has_offsets()) {
          store_half(parts.scales + kPanelWidth * 2, column, offsets_[record] / factor);
        }
      }
      if (groups_.grouping.has_multiples()) {
        const auto index = static_cast<size_t>(g);
        std::memcpy(parts.multiples + column, &multiples_[index], 1);
        if (groups_.has_offsets()) {
          std::memcpy(parts.multiples + kPanelWidth + column, &offset_multiples_[index], 1);
        }
      }
      pack_codes(codes_.data() + g * size, groups_.grouping.bits, size, column, parts.codes);
    }
  }

 private:
  // A group with a NaN gets a scale of NaN: its products are NaN either way, and kernels know no
  // code that is.
  void pack_float8(const GroupedRows& rows, int64_t row, int64_t n) {
    constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
    const float factor = 1.0f;
    rows.read_codes(row, codes_, scales_, offsets_);
    const int64_t column = n % kPanelWidth, size = groups_.grouping.group_size;
    std::memcpy(panel_of(matrix_, n) + column * 4, &factor, sizeof(factor));
    for (int64_t g = 0; g < matrix_.num_groups(); ++g) {
      const GroupParts parts = parts_of(matrix_, n, g);
      const uint8_t* const codes = codes_.data() + g * size;
      float scale = scales_[static_cast<size_t>(g)];
      if (std::isnan(scale)) scale = kNaN;  // without the low bits that a rounding would carry
      for (int64_t k = 0; k < size; ++k) {
        if ((codes[k] & 0x7F) == 0x7F) scale = kNaN;
        parts.codes[float8_place(k, column)] = codes[k];
      }
      std::memcpy(parts.scales + column * 4, &scale, sizeof(scale));
    }
  }

  // Returns the column's factor: 1 where groups share factors, which are exact as they are.
  float read(const GroupedRows& rows, int64_t row) {
    if (groups_.grouping.has_multiples()) {
      ScaleMultiples multiples{scales_, multiples_, {}, {}};
      if (groups_.has_offsets()) {
        multiples.offset_factors = offsets_;
        multiples.offsets = offset_multiples_;
      }
      rows.read_multiples(row, codes_, multiples);
      return 1.0f;
    }
    rows.read_codes(row, codes_, scales_, offsets_);
    if (!groups_.has_offsets()) std::fill(offsets_.begin(), offsets_.end(), 0.0f);
    return column_factor(scales_, offsets_);
  }

  const PackedMatrix& matrix_;
  const PackedGroups& groups_;
  std::vector<uint8_t> codes_;
  std::vector<float> scales_, offsets_;  // of a record
  std::vector<int8_t> multiples_, offset_multiples_;
};

// The part of row n of the matrix, and its row there.
std::pair<const GroupedRows*, int64_t> find_row(std::span<const GroupedRows* const> parts,
                                                int64_t n) {
  for (const GroupedRows* const part : parts) {
    if (n < part->num_rows()) return {part, n};
    n -= part->num_rows();
  }
  check_failed("find_row", __FILE__, __LINE__, "row beyond the parts");
}

void store_order(std::span<const int32_t> order, PackedMatrix& matrix) {
  if (order.empty()) return;
  auto* const behind =
      static_cast<uint8_t*>(matrix.storage.get()) + matrix.num_panels() * matrix.panel_bytes();
  std::memcpy(behind, order.data(), order.size_bytes());
}

}  // namespace

PackedMatrix pack_groups(std::span<const GroupedRows* const> parts, ActivationType activations,
                         Memory& memory, ThreadPool& threads) {
  int64_t n = 0;
  for (const GroupedRows* const part : parts) n += part->num_rows();
  const Grouping grouping = parts[0]->grouping();
  const std::span<const int32_t> order = parts[0]->column_order();
  PackedMatrix matrix =
      make_matrix({grouping, activations_of(grouping, activations), !order.empty()}, n,
                  parts[0]->row_length(), memory);
  store_order(order, matrix);
  threads.parallel_for(matrix.num_panels(), 1, [&](int64_t begin, int64_t end, int) {
    ColumnPacker packer(matrix);
    const auto panel_bytes = static_cast<size_t>(matrix.panel_bytes());
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t first = panel * kPanelWidth, last = std::min(first + kPanelWidth, n);
      if (last < first + kPanelWidth) std::memset(panel_of(matrix, first), 0, panel_bytes);
      for (int64_t column = first; column < last; ++column) {
        const auto [part, row] = find_row(parts, column);
        packer.pack(*part, row, column);
      }
    }
  });
  return matrix;
}

PackedMatrix gather_group_columns(const PackedMatrix& matrix, std::span<const int32_t> columns,
                                  Memory& memory) {
  const PackedGroups& groups = *matrix.groups;
  PackedMatrix gathered =
      make_matrix(groups, static_cast<int64_t>(columns.size()), matrix.k, memory);
  std::memset(gathered.storage.get(), 0, static_cast<size_t>(gathered.bytes()));
  store_order(matrix.input_order(), gathered);
  for (int64_t i = 0; i < gathered.n; ++i) {
    const int64_t n = columns[static_cast<size_t>(i)];
    const int64_t from = n % kPanelWidth, to = i % kPanelWidth;
    std::memcpy(panel_of(gathered, i) + to * 4, panel_of(matrix, n) + from * 4, 4);
    const auto copy = [&](int64_t offset, int64_t bytes, int64_t column_bytes) {
      const uint8_t* const source = panel_of(matrix, n) + offset;
      uint8_t* const target = panel_of(gathered, i) + offset;
      for (int64_t at = 0; at < bytes; at += kPanelWidth * column_bytes) {
        std::memcpy(target + at + to * column_bytes, source + at + from * column_bytes,
                    static_cast<size_t>(column_bytes));
      }
    };
    for (int64_t g = 0; g < matrix.num_groups(); ++g) {
      const PackedGroups::Place place = groups.place_of(g);
      copy(place.scales, groups.scale_bytes(), groups.number_bytes());
      copy(place.multiples, groups.multiple_bytes(), 1);
      copy(place.codes, groups.code_bytes(), groups.unit_bytes());
    }
  }
  return gathered;
}

GroupColumn unpack_group_column(const PackedMatrix& matrix, int64_t n) {
  const PackedGroups& groups = *matrix.groups;
  const int64_t column = n % kPanelWidth, size = groups.grouping.group_size;
  float factor = 0.0f;
  std::memcpy(&factor, panel_of(matrix, n) + column * 4, sizeof(factor));
  GroupColumn result;
  const bool has_multiples = groups.grouping.has_multiples();
  for (int64_t g = 0; g < matrix.num_groups(); ++g) {
    const GroupParts parts = parts_of(matrix, n, g);
    // One number of the column: from the scales, or the offsets behind them.
    const auto value = [&](int64_t index) {
      const float shared = load_half(parts.scales, index * kPanelWidth + column) * factor;
      if (!has_multiples) return shared;
      const uint8_t multiple = parts.multiples[index * kPanelWidth + column];
      return shared * static_cast<float>(static_cast<int8_t>(multiple));
    };
    const float scale = value(0);
    result.scales.push_back(scale);
    result.offsets.push_back(
        groups.has_offsets() ? value(1) : -static_cast<float>(*groups.grouping.zero_point) * scale);
    for (int64_t k = 0; k < size; ++k) {
      const int code = read_code(parts.codes, groups.grouping.bits, size, k, column);
      result.codes.push_back(static_cast<uint8_t>(code));
    }
  }
  return result;
}

namespace {

void unpack_float8_row(const PackedMatrix& matrix, int64_t n, float* out) {
  const auto& table = float8_values(DType::f8_e4m3);
  const int64_t column = n % kPanelWidth, size = matrix.groups->grouping.group_size;
  for (int64_t g = 0; g < matrix.num_groups(); ++g) {
    const GroupParts parts = parts_of(matrix, n, g);
    float scale = 0.0f;
    std::memcpy(&scale, parts.scales + column * 4, sizeof(scale));
    for (int64_t k = 0; k < size; ++k) {
      const float value = table[parts.codes[float8_place(k, column)]] * scale;
      out[g * size + k] = to_float(to_bfloat16(value));
    }
  }
}

}  // namespace

void unpack_group_row(const PackedMatrix& matrix, int64_t n, float* out) {
  if (matrix.groups->grouping.is_float8()) return unpack_float8_row(matrix, n, out);
  const GroupColumn column = unpack_group_column(matrix, n);
  const int64_t size = matrix.groups->grouping.group_size;
  const std::span<const int32_t> order = matrix.input_order();
  for (int64_t k = 0; k < matrix.k; ++k) {
    const auto g = static_cast<size_t>(k / size);
    const int64_t input = order.empty() ? k : order[static_cast<size_t>(k)];
    out[input] =
        std::fma(column.scales[g], static_cast<float>(column.codes[static_cast<size_t>(k)]),
                 column.offsets[g]);
  }
}

}  // namespace paceline
