// Matrices as GPTQ's tools pack them: AutoGPTQ, GPTQModel, AutoRound (the layout and the zero
// points of auto_gptq/nn_modules/qlinear/qlinear_cuda.py).
#include <fmt/format.h>

#include <utility>

#include "weights/integer_matrix.h"

namespace paceline {
namespace {

constexpr int kGptqBits[] = {2, 3, 4, 8};

// `qweight` [row length * bits / 32, rows], `scales` and `qzeros` [groups, rows] and [groups, rows
// * bits / 32], `g_idx` [row length].
struct GptqShape {
  int bits = 4;
  int64_t rows = 0;
  int64_t row_length = 0;
  int64_t num_groups = 0;
  int64_t group_size = 0;
};

bool is_gptq_bits(int64_t bits) {
  for (const int known : kGptqBits) {
    if (bits == known) return true;
  }
  return false;
}

// The width that the shapes of the zero points say, or else the config.
int find_bits(const ModuleParts& parts, const PublishedQuantisation& settings, int64_t rows,
              int64_t num_groups) {
  if (!parts.has("qzeros")) {
    const int64_t bits = settings.bits.empty() ? 0 : settings.bits.front();
    if (is_gptq_bits(bits)) return static_cast<int>(bits);
    parts.corrupt("qzeros", "is missing, and the config names no `bits` of 2, 3, 4 or 8");
  }
  const Extents zeros = parts.matrix_shape("qzeros", kWordTypes);
  for (const int bits : kGptqBits) {
    if (zeros[0] == num_groups && zeros[1] * 32 == rows * bits) return bits;
  }
  parts.corrupt("qzeros",
                fmt::format("has shape {}, expected [{}, {} * bits / 32] with 2, 3, 4 or 8 bits",
                            to_string(zeros), num_groups, rows));
}

GptqShape find_shape(const ModuleParts& parts, const PublishedQuantisation& settings) {
  const Extents words = parts.matrix_shape("qweight", kWordTypes);
  const Extents scales = parts.matrix_shape("scales", kFloatTypes);
  GptqShape shape{.rows = words[1], .num_groups = scales[0]};
  if (scales[1] != shape.rows) {
    parts.corrupt("scales", fmt::format("has shape {}, expected [groups, {}] beside the words {}",
                                        to_string(scales), shape.rows, to_string(words)));
  }
  shape.bits = find_bits(parts, settings, shape.rows, shape.num_groups);
  shape.row_length = words[0] * 32 / shape.bits;
  if (words[0] * 32 % shape.bits != 0) {
    parts.corrupt("qweight", fmt::format("has shape {}, which isn't made of codes of {} bits",
                                         to_string(words), shape.bits));
  }
  shape.group_size = shape.row_length / shape.num_groups;
  if (shape.group_size == 0 || shape.row_length % shape.num_groups != 0) {
    parts.corrupt("scales", fmt::format("has shape {}, which doesn't divide rows of {} elements",
                                        to_string(scales), shape.row_length));
  }
  return shape;
}

// The group of each column; empty where groups are neighbouring columns.
std::vector<int32_t> read_group_index(const ModuleParts& parts, const GptqShape& shape) {
  std::vector<int32_t> groups;
  if (!parts.has("g_idx") || parts.at("g_idx").shape == Extents{0}) return groups;
  constexpr DType kIndexTypes[] = {DType::i32, DType::i64};
  parts.expect("g_idx", {shape.row_length}, kIndexTypes);
  bool are_neighbours = true;
  for (const int64_t group : parts.read_integers("g_idx")) {
    if (group < 0 || group >= shape.num_groups) {
      parts.corrupt("g_idx", fmt::format("found group {} of column {}, expected 0 to {}", group,
                                         groups.size(), shape.num_groups - 1));
    }
    are_neighbours = are_neighbours && group == std::ssize(groups) / shape.group_size;
    groups.push_back(static_cast<int32_t>(group));
  }
  if (are_neighbours) groups.clear();
  return groups;
}

}  // namespace

QuantisedMatrix gptq_matrix(const ModuleParts& parts, const PublishedQuantisation& settings) {
  const GptqShape shape = find_shape(parts, settings);
  auto group_of = read_group_index(parts, shape);
  const IntegerFormat format{.bits = shape.bits,
                             .group_size = shape.group_size,
                             .scale_dtype = parts.at("scales").dtype,
                             .value_dtype = settings.dtype,
                             .group_of = std::move(group_of)};
  const ScaleLayout layout{
      .block_columns = shape.group_size, .row_stride = 1, .column_stride = shape.rows};
  return integer_matrix(
      format, {shape.rows, shape.row_length}, [=, zero_shift = settings.gptq_zero_shift]() {
        IntegerMatrix matrix{.rows = shape.rows,
                             .row_length = shape.row_length,
                             .bits = shape.bits,
                             .scales = parts.read_scales({"scales", layout}),
                             .group_of = format.group_of,
                             .dtype = format.value_dtype};
        matrix.codes = codes_in_words(parts.read("qweight"),
                                      {.bits = shape.bits, .lines = WordPacking::Lines::columns});
        if (parts.has("qzeros")) {
          matrix.zero = zero_shift;
          matrix.zero_codes = codes_in_words(
              parts.read("qzeros"), {.bits = shape.bits, .rows = WordPacking::Rows::places});
        } else {
          matrix.zero = 1 << (shape.bits - 1);
        }
        return matrix;
      });
}

}  // namespace paceline
