// Integer matrices of compressed-tensors: packed ones (`pack-quantized`) and bytes
// (`int-quantized`, `naive-quantized`); and those that bitsandbytes writes as bytes.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/divide_up.h"
#include "weights/integer_matrix.h"

namespace paceline {
namespace {

// Codes that follow each other without gaps fill the words of a row.
bool fills_words(int64_t row_length, int64_t bits, int64_t num_words) {
  return divide_up(row_length * bits, 32) == num_words;
}

// The row's length, from `weight_shape`.
int64_t read_row_length(const ModuleParts& parts, const Extents& words) {
  const std::vector<int64_t> shape = parts.read_integers("weight_shape");
  const auto in_words = [&](int64_t length) { return length > 0 && length <= words[1] * 32; };
  if (shape.size() != 2 || shape[0] != words[0] || !in_words(shape[1])) {
    parts.corrupt("weight_shape", fmt::format("found [{}], expected the shape of a matrix of words "
                                              "{}",
                                              fmt::join(shape, ", "), to_string(words)));
  }
  return shape[1];
}

int find_width(const ModuleParts& parts, const PublishedQuantisation& settings, int64_t row_length,
               const Extents& words) {
  for (const int64_t bits : settings.bits) {
    if (bits >= 1 && bits <= 8 && fills_words(row_length, bits, words[1])) {
      return static_cast<int>(bits);
    }
  }
  for (const int bits : {4, 8, 2, 3, 5, 6, 7, 1}) {
    if (fills_words(row_length, bits, words[1])) return bits;
  }
  parts.corrupt("weight_packed", fmt::format("has shape {}, which rows of {} codes don't fill",
                                             to_string(words), row_length));
}

std::vector<int32_t> read_column_groups(const ModuleParts& parts, int64_t row_length,
                                        int64_t group_size) {
  std::vector<int32_t> groups;
  if (!parts.has("weight_g_idx")) return groups;
  constexpr DType kIndexTypes[] = {DType::i32, DType::i64};
  parts.expect("weight_g_idx", {row_length}, kIndexTypes);
  const int64_t num_groups = divide_up(row_length, group_size);
  const auto stored = parts.read_integers("weight_g_idx");
  // The library fills an index that isn't used with -1.
  if (std::ranges::all_of(stored, [](int64_t group) { return group == -1; })) return groups;
  bool are_neighbours = true;
  for (const int64_t group : stored) {
    if (group < 0 || group >= num_groups) {
      parts.corrupt("weight_g_idx", fmt::format("found group {} of column {}, expected 0 to {}",
                                                group, groups.size(), num_groups - 1));
    }
    are_neighbours = are_neighbours && group == std::ssize(groups) / group_size;
    groups.push_back(static_cast<int32_t>(group));
  }
  if (are_neighbours) groups.clear();
  return groups;
}

// Zero points are packed along the rows: [rows * bits / 32, groups].
Extents zero_words_shape(int64_t rows, int bits, const ScaleLayout& layout, int64_t row_length) {
  return {divide_up(rows * bits, 32), divide_up(row_length, layout.block_columns)};
}

}  // namespace

QuantisedMatrix packed_integer_matrix(const ModuleParts& parts,
                                      const PublishedQuantisation& settings) {
  const Extents words = parts.matrix_shape("weight_packed", kWordTypes);
  const int64_t rows = words[0], row_length = read_row_length(parts, words);
  const int bits = find_width(parts, settings, row_length, words);
  const ScalePart scales = parts.scales("weight_scale", {rows, row_length}, settings.block);
  const bool has_zeros = parts.has("weight_zero_point");
  if (has_zeros) {
    parts.expect("weight_zero_point", zero_words_shape(rows, bits, scales.layout, row_length),
                 kWordTypes);
    if (scales.layout.block_rows != 1) {
      parts.unsupported("weight_zero_point", "packed zero points of blocks of rows can't be read");
    }
  }
  auto group_of = read_column_groups(parts, row_length, scales.layout.block_columns);
  const IntegerFormat format{.bits = bits,
                             .group_size = scales.layout.block_columns,
                             .scale_dtype = parts.at("weight_scale").dtype,
                             .value_dtype = settings.dtype,
                             .group_of = std::move(group_of)};
  return integer_matrix(format, {rows, row_length}, [=]() {
    IntegerMatrix matrix{.rows = rows,
                         .row_length = row_length,
                         .bits = bits,
                         .scales = parts.read_scales(scales),
                         .group_of = format.group_of,
                         .dtype = format.value_dtype};
    matrix.codes = codes_in_words(parts.read("weight_packed"), {.bits = bits});
    if (has_zeros) {
      matrix.zero_codes = codes_in_words(
          parts.read("weight_zero_point"),
          {.bits = bits, .lines = WordPacking::Lines::columns, .rows = WordPacking::Rows::places});
    } else {
      matrix.zero = 1 << (bits - 1);
    }
    return matrix;
  });
}

// `weight` of int8 with `weight_scale`, or with `SCB` of bitsandbytes, the magnitude of 127 steps
// in each row.
QuantisedMatrix byte_matrix(const ModuleParts& parts, const PublishedQuantisation& settings) {
  constexpr float kSteps = 127.0f;
  constexpr DType kIntegers[] = {DType::i8};
  constexpr int kBits = 8, kZero = 128;  // codes are the integers plus 128
  const Extents shape = parts.stack_shape("weight", kIntegers);
  const bool is_bitsandbytes = parts.has("SCB");
  const ScalePart scales =
      parts.scales(is_bitsandbytes ? "SCB" : "weight_scale", shape, settings.block);
  std::optional<ScalePart> zeros;
  if (parts.has("weight_zero_point")) {
    const bool are_floats = is_float(parts.at("weight_zero_point").dtype);
    if (are_floats && parts.torchao_tensor().type.empty()) {
      parts.unsupported("weight_zero_point",
                        "zero points of floats beside int8 can't be read without the metadata that "
                        "torchao writes to the file, which names what they belong to");
    }
    zeros = parts.scales("weight_zero_point", shape, settings.block);
    if (!(parts.at("weight_zero_point").shape == parts.at(scales.part).shape)) {
      parts.corrupt("weight_zero_point", fmt::format("has shape {}, expected {} as the scales",
                                                     to_string(parts.at("weight_zero_point").shape),
                                                     to_string(parts.at(scales.part).shape)));
    }
  }
  const IntegerFormat format{.bits = kBits,
                             .group_size = scales.layout.block_columns,
                             .scale_dtype = parts.at(scales.part).dtype,
                             .value_dtype = settings.dtype};
  return integer_matrix(format, parts.at("weight").shape, [=]() {
    IntegerMatrix matrix{.rows = shape[0],
                         .row_length = shape[1],
                         .bits = kBits,
                         .scales = parts.read_scales(scales, 1.0f, is_bitsandbytes ? kSteps : 1.0f),
                         .zero = kZero,
                         .dtype = format.value_dtype};
    matrix.codes = codes_in_bytes(parts.read_matrix("weight"));
    if (zeros) matrix.zero_grid = parts.read_scales(*zeros);
    return matrix;
  });
}

}  // namespace paceline
