#include "prepared/part.h"

#include <utility>

#include "base/error.h"

namespace paceline {
namespace {

// Far beyond any weight, and small enough that the product of two and an element's size fits.
constexpr int64_t kMaxExtent = int64_t{1} << 28;

PackedMatrix empty_matrix(const PartFormat& format, ActivationType activations) {
  PackedMatrix matrix;
  matrix.dtype = format.dtype;
  if (format.grouping) {
    matrix.groups = PackedGroups{.grouping = *format.grouping,
                                 .activations = activations_of(*format.grouping, activations),
                                 .has_input_order = format.has_input_order};
  }
  matrix.n = format.n;
  matrix.k = format.k;
  return matrix;
}

bool is_possible(const Grouping& grouping, int64_t k) {
  if (grouping.is_float8()) {
    const int64_t size = grouping.group_size;
    if (grouping != float8_grouping(size) || !can_pack_codes(grouping.bits, size)) return false;
  }
  if (grouping.bits < 1 || grouping.bits > 8) return false;
  if (grouping.zero_point && *grouping.zero_point >= 1 << grouping.bits) return false;
  if (grouping.group_size < 1 || grouping.group_size > k) return false;
  if (grouping.groups_per_factor < 1 || grouping.groups_per_factor > k) return false;
  return k % grouping.factor_length() == 0 && kSegmentLength % grouping.factor_length() == 0;
}

}  // namespace

std::optional<uint64_t> part_bytes(const PartFormat& format) {
  if (format.n < 1 || format.n > kMaxExtent || format.k < 1 || format.k > kMaxExtent) return {};
  if (!is_float(format.dtype)) return {};
  if (format.kind == PartKind::vector) {
    const bool is_plain = !format.grouping && !format.has_input_order;
    if (format.k != 1 || !is_plain || format.dtype != DType::f32) return {};
    return static_cast<uint64_t>(format.n) * sizeof(float);
  }
  if (format.grouping && !is_possible(*format.grouping, format.k)) return {};
  const bool may_have_order =
      format.grouping && !format.grouping->is_float8() && !format.grouping->has_multiples();
  if (format.has_input_order && !may_have_order) return {};
  return static_cast<uint64_t>(empty_matrix(format, ActivationType::int8).bytes());
}

Part matrix_part(std::string name, const PackedMatrix& matrix) {
  PartFormat format{.kind = PartKind::matrix, .dtype = matrix.dtype, .n = matrix.n, .k = matrix.k};
  if (matrix.groups) format.grouping = matrix.groups->grouping;
  format.has_input_order = matrix.has_input_order();
  return {.name = std::move(name),
          .format = format,
          .bytes = {static_cast<const std::byte*>(matrix.storage.get()),
                    static_cast<size_t>(matrix.bytes())}};
}

Part vector_part(std::string name, const Tensor& vector) {
  PL_CHECK(vector.rank() == 1 && vector.dtype() == DType::f32, "vector_part: a float32 vector");
  return {.name = std::move(name),
          .format = {.kind = PartKind::vector, .n = vector.size(0)},
          .bytes = {static_cast<const std::byte*>(vector.raw()), vector.size_bytes()}};
}

PackedMatrix lent_matrix(const Part& part, ActivationType activations) {
  PackedMatrix matrix = empty_matrix(part.format, activations);
  PL_CHECK(part.format.kind == PartKind::matrix &&
               part.bytes.size() == static_cast<size_t>(matrix.bytes()),
           "lent_matrix: the bytes of a matrix");
  matrix.storage = Buffer::lent(part.bytes);
  return matrix;
}

}  // namespace paceline
