// Matrices as AWQ packs them for its "gemm" kernels (awq/modules/linear/gemm.py): eight codes of
// 4 bits in a word, of neighbouring rows.
#include <fmt/format.h>

#include "weights/integer_matrix.h"

namespace paceline {

// `qweight` [row length, rows / 8], `qzeros` [groups, rows / 8], `scales` [groups, rows].
QuantisedMatrix awq_matrix(const ModuleParts& parts, const PublishedQuantisation& settings) {
  constexpr int kCodes = 8;
  const Extents words = parts.matrix_shape("qweight", kWordTypes);
  const Extents scales = parts.matrix_shape("scales", kFloatTypes);
  const int64_t rows = words[1] * kCodes, row_length = words[0], num_groups = scales[0];
  if (scales[1] != rows || row_length % num_groups != 0) {
    parts.corrupt("scales", fmt::format("has shape {}, expected [groups of {} columns, {}] beside "
                                        "words {} of eight codes",
                                        to_string(scales), row_length, rows, to_string(words)));
  }
  parts.expect("qzeros", {num_groups, words[1]}, kWordTypes);
  const int64_t group_size = row_length / num_groups;
  const DType dtype = settings.dtype;
  const IntegerFormat format{
      .group_size = group_size, .scale_dtype = parts.at("scales").dtype, .value_dtype = dtype};
  return integer_matrix(format, {rows, row_length}, [=]() {
    const WordPacking packing{.order = WordPacking::Order::awq, .rows = WordPacking::Rows::places};
    IntegerMatrix matrix{
        .rows = rows,
        .row_length = row_length,
        .scales = parts.read_scales(
            {"scales", {.block_columns = group_size, .row_stride = 1, .column_stride = rows}}),
        .dtype = dtype};
    matrix.codes = codes_in_words(parts.read("qweight"), packing);
    matrix.zero_codes = codes_in_words(parts.read("qzeros"), packing);
    return matrix;
  });
}

}  // namespace paceline
