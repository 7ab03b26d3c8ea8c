// Matrices as HQQ writes them (hqq/core/quantize.py and bitpack.py): codes of the matrix reshaped
// to groups, of which the parts of the packed one hold neighbouring rows.
#include <fmt/format.h>

#include "base/divide_up.h"
#include "weights/integer_matrix.h"
#include "weights/rounded_value.h"

namespace paceline {
namespace {

constexpr DType kPackedTypes[] = {DType::u8, DType::i32};

// `W_q` [packed rows, columns] holds the codes of a matrix of more rows: each of `per_word` fields
// of an element, from the highest bits down, those of as many neighbouring rows as are packed.
struct HqqPacking {
  int bits = 4;
  int per_word = 2;
  int64_t packed_rows = 0;
  int64_t columns = 0;
};

class HqqCodes : public CodeSource {
 public:
  HqqCodes(const Tensor& packed, const HqqPacking& packing) : packed_(packed), packing_(packing) {}

  void read_row(int64_t row, std::span<uint8_t> codes) const override {
    int64_t at = row * static_cast<int64_t>(codes.size());
    for (uint8_t& code : codes) code = code_at(at++);
  }

 private:
  uint8_t code_at(int64_t index) const {
    const int64_t row = index / packing_.columns;
    const int64_t element =
        row % packing_.packed_rows * packing_.columns + index % packing_.columns;
    const auto field = static_cast<int>(row / packing_.packed_rows);
    const uint32_t word = packed_.dtype() == DType::u8
                              ? static_cast<const uint8_t*>(packed_.raw())[element]
                              : static_cast<const uint32_t*>(packed_.raw())[element];
    const int shift = (packing_.per_word - 1 - field) * packing_.bits;
    return static_cast<uint8_t>(word >> shift & ((1u << packing_.bits) - 1));
  }

  Tensor packed_;
  HqqPacking packing_;
};

// Groups across rows: element i of the whole matrix is in group i modulo their number.
class CrossedRows : public ValueRows {
 public:
  CrossedRows(const Extents& shape, std::shared_ptr<const CodeSource> codes,
              std::vector<float> scales, std::vector<float> zeros, DType dtype)
      : shape_(shape),
        codes_(std::move(codes)),
        scales_(std::move(scales)),
        zeros_(std::move(zeros)),
        dtype_(dtype) {}

  int64_t num_rows() const override { return shape_[0]; }
  int64_t row_length() const override { return shape_[1]; }
  DType value_dtype() const override { return dtype_; }

  void read_values(int64_t row, std::span<float> values) const override {
    std::vector<uint8_t> codes(values.size());
    codes_->read_row(row, codes);
    const auto first = static_cast<size_t>(row * shape_[1]);
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t group = (first + i) % scales_.size();
      values[i] = (static_cast<float>(codes[i]) - zeros_[group]) * scales_[group];
    }
    round_values(dtype_, values);
  }

 private:
  Extents shape_;
  std::shared_ptr<const CodeSource> codes_;
  std::vector<float> scales_;
  std::vector<float> zeros_;
  DType dtype_;
};

int64_t read_integer(const ModuleParts& parts, std::string_view part) {
  const auto integers = parts.read_integers(part);
  if (integers.size() != 1) parts.corrupt(part, "expected one integer");
  return integers.front();
}

int64_t num_elements(const Extents& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

Extents read_shape(const ModuleParts& parts, const Extents& packed, int per_word) {
  const auto sizes = parts.read_integers("shape");
  const int64_t most = num_elements(packed) * per_word;
  const auto is_size = [&](int64_t size) { return size >= 1 && size <= most; };
  if (sizes.size() != 2 || !is_size(sizes[0]) || !is_size(sizes[1]) || sizes[0] > most / sizes[1]) {
    parts.corrupt("shape", fmt::format("found [{}], expected the shape of a matrix of at most {} "
                                       "codes",
                                       fmt::join(sizes, ", "), most));
  }
  return {sizes[0], sizes[1]};
}

HqqPacking read_packing(const ModuleParts& parts, const Extents& packed) {
  const int64_t bits = read_integer(parts, "nbits");
  const bool is_word = parts.at("W_q").dtype == DType::i32;
  if (is_word ? bits != 3 : bits != 1 && bits != 2 && bits != 4 && bits != 8) {
    parts.corrupt("nbits", fmt::format("found {}, expected {}", bits,
                                       is_word ? "3 beside int32" : "1, 2, 4 or 8 beside uint8"));
  }
  return {.bits = static_cast<int>(bits),
          .per_word = is_word ? 10 : static_cast<int>(8 / bits),
          .packed_rows = packed[0],
          .columns = packed[1]};
}

std::vector<float> read_all(const ModuleParts& parts, std::string_view part) {
  const int64_t count = num_elements(parts.at(part).shape);
  const ScalePart all{std::string(part), {.block_columns = 1}};
  std::vector<float> numbers(static_cast<size_t>(count));
  parts.read_scales(all).read_row(0, numbers);
  return numbers;
}

}  // namespace

QuantisedMatrix hqq_matrix(const ModuleParts& parts, const PublishedQuantisation& settings) {
  const Extents packed = parts.matrix_shape("W_q", kPackedTypes);
  const HqqPacking packing = read_packing(parts, packed);
  const Extents shape = read_shape(parts, packed, packing.per_word);
  const Extents scales = parts.matrix_shape("scale", kFloatTypes);
  parts.expect("zero", scales, kFloatTypes);
  const int64_t num_groups = num_elements(scales), size = shape[0] * shape[1] / num_groups;
  const int64_t axis = read_integer(parts, "axis");
  const bool is_along_rows = axis == 1 && scales[1] == 1 && packed[1] == size;
  const bool is_across = axis == 0 && scales[0] == 1 && packed[1] == num_groups;
  const bool holds_all = packed[0] * packing.per_word * packed[1] >= shape[0] * shape[1] &&
                         size > 0 && shape[0] * shape[1] % num_groups == 0;
  if (!holds_all || !(is_along_rows || is_across)) {
    parts.corrupt("scale",
                  fmt::format("has shape {}, which doesn't divide the matrix {} along axis "
                              "{} as W_q {} does",
                              to_string(scales), to_string(shape), axis, to_string(packed)));
  }
  const DType dtype = settings.dtype;
  if (is_across || shape[1] % size != 0) {
    if (!is_across) parts.unsupported("scale", "groups that cross rows can't be read");
    return {.format = fmt::format("{} bits in groups of {} across rows", packing.bits, size),
            .shape = shape,
            .numbers = [=]() -> std::shared_ptr<const ValueRows> {
              return std::make_shared<CrossedRows>(
                  shape, std::make_shared<HqqCodes>(parts.read("W_q"), packing),
                  read_all(parts, "scale"), read_all(parts, "zero"), dtype);
            }};
  }
  const IntegerFormat format{.bits = packing.bits,
                             .group_size = size,
                             .scale_dtype = parts.at("scale").dtype,
                             .value_dtype = dtype};
  return integer_matrix(format, shape, [=]() {
    const ScaleLayout layout{.block_columns = size, .row_stride = shape[1] / size};
    IntegerMatrix matrix{.rows = shape[0],
                         .row_length = shape[1],
                         .bits = packing.bits,
                         .scales = parts.read_scales({"scale", layout}),
                         .zero_grid = parts.read_scales({"zero", layout}),
                         .dtype = dtype};
    matrix.codes = std::make_shared<HqqCodes>(parts.read("W_q"), packing);
    return matrix;
  });
}

}  // namespace paceline
