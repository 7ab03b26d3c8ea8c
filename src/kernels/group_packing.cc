#include "kernels/group_packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/error.h"

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

uint8_t* record_of(const PackedMatrix& matrix, int64_t n, int64_t group) {
  return panel_of(matrix, n) + kPanelHeadBytes + group * matrix.groups->group_bytes();
}

// The power of two just above the largest magnitude: what is divided by it fills float16's middle.
float column_factor(const std::vector<float>& scales, const std::vector<float>& offsets) {
  float largest = 0.0f;
  for (const float value : scales) largest = std::max(largest, std::abs(value));
  for (const float value : offsets) largest = std::max(largest, std::abs(value));
  if (!(largest > 0.0f) || !std::isfinite(largest)) return 1.0f;
  int exponent = 0;
  std::frexp(largest, &exponent);
  // Products are multiplied by it at the end: it must be a normal number itself.
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

// The bits of each code from `shift` on, into a plane of kWidth bits a code.
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

// Packs column after column; holds one of them apart.
class ColumnPacker {
 public:
  explicit ColumnPacker(const PackedMatrix& matrix) : matrix_(matrix) {
    column_.codes.resize(static_cast<size_t>(matrix.k));
    column_.scales.resize(static_cast<size_t>(matrix.num_groups()));
    column_.offsets.resize(static_cast<size_t>(matrix.num_groups()));
  }

  void pack(const GroupedRows& rows, int64_t row, int64_t n) {
    rows.read_codes(row, column_.codes, column_.scales, column_.offsets);
    const PackedGroups& groups = *matrix_.groups;
    if (!groups.has_offsets()) std::fill(column_.offsets.begin(), column_.offsets.end(), 0.0f);
    const float factor = column_factor(column_.scales, column_.offsets);
    const int64_t column = n % kPanelWidth, size = groups.grouping.group_size;
    std::memcpy(panel_of(matrix_, n) + column * 4, &factor, sizeof(factor));
    for (int64_t g = 0; g < matrix_.num_groups(); ++g) {
      uint8_t* const record = record_of(matrix_, n, g);
      const auto index = static_cast<size_t>(g);
      store_half(record, column, column_.scales[index] / factor);
      if (groups.has_offsets()) {
        store_half(record + kPanelWidth * 2, column, column_.offsets[index] / factor);
      }
      pack_codes(column_.codes.data() + g * size, groups.grouping.bits, size, column,
                 record + groups.scale_bytes());
    }
  }

 private:
  const PackedMatrix& matrix_;
  GroupColumn column_;
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

void check_parts(std::span<const GroupedRows* const> parts) {
  PL_CHECK(!parts.empty(), "pack_groups: no parts");
  const Grouping grouping = parts[0]->grouping();
  const int64_t size = grouping.group_size, k = parts[0]->row_length();
  PL_CHECK(
      can_pack_codes(grouping.bits, size) &&
          (size == 16 || size == 32 || size == 64 || size == 128) && k > 0 && k % size == 0,
      fmt::format("pack_groups: {} bits in groups of {} in rows of {}", grouping.bits, size, k));
  for (const GroupedRows* const part : parts) {
    PL_CHECK(part->grouping() == grouping && part->row_length() == k && part->num_rows() > 0,
             "pack_groups: parts of different groupings or lengths");
  }
}

}  // namespace

PackedMatrix pack_groups(std::span<const GroupedRows* const> parts, ActivationType activations,
                         Memory& memory, ThreadPool& threads) {
  check_parts(parts);
  int64_t n = 0;
  for (const GroupedRows* const part : parts) n += part->num_rows();
  PackedMatrix matrix =
      make_matrix({parts[0]->grouping(), activations}, n, parts[0]->row_length(), memory);
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
  for (int64_t i = 0; i < gathered.n; ++i) {
    const int64_t n = columns[static_cast<size_t>(i)];
    const int64_t from = n % kPanelWidth, to = i % kPanelWidth;
    std::memcpy(panel_of(gathered, i) + to * 4, panel_of(matrix, n) + from * 4, 4);
    for (int64_t g = 0; g < matrix.num_groups(); ++g) {
      const uint8_t* const source = record_of(matrix, n, g);
      uint8_t* const target = record_of(gathered, i, g);
      for (int64_t half = 0; half < groups.scale_bytes(); half += kPanelWidth * 2) {
        std::memcpy(target + half + to * 2, source + half + from * 2, 2);
      }
      for (int64_t word = groups.scale_bytes(); word < groups.group_bytes();
           word += kPanelWidth * 4) {
        std::memcpy(target + word + to * 4, source + word + from * 4, 4);
      }
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
  for (int64_t g = 0; g < matrix.num_groups(); ++g) {
    const uint8_t* const record = record_of(matrix, n, g);
    const float scale = load_half(record, column) * factor;
    result.scales.push_back(scale);
    result.offsets.push_back(groups.has_offsets()
                                 ? load_half(record + kPanelWidth * 2, column) * factor
                                 : -static_cast<float>(*groups.grouping.zero_point) * scale);
    for (int64_t k = 0; k < size; ++k) {
      const int code =
          read_code(record + groups.scale_bytes(), groups.grouping.bits, size, k, column);
      result.codes.push_back(static_cast<uint8_t>(code));
    }
  }
  return result;
}

void unpack_group_row(const PackedMatrix& matrix, int64_t n, float* out) {
  const GroupColumn column = unpack_group_column(matrix, n);
  const int64_t size = matrix.groups->grouping.group_size;
  for (int64_t k = 0; k < matrix.k; ++k) {
    const auto g = static_cast<size_t>(k / size);
    out[k] = std::fma(column.scales[g], static_cast<float>(column.codes[static_cast<size_t>(k)]),
                      column.offsets[g]);
  }
}

}  // namespace paceline
