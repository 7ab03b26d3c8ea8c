#include "weights/quantizing_checkpoint.h"

#include <fmt/format.h>

#include "base/error.h"
#include "weights/affine_quantizer.h"
#include "weights/dequantize.h"
#include "weights/quoted_name.h"
#include "weights/symmetric_rows.h"

namespace paceline {
namespace {

// AffineRows that own their tensors.
class QuantizedRows : public GroupedRows {
 public:
  explicit QuantizedRows(OwnedAffineRows owned, AffineFormat format)
      : owned_(std::move(owned)), rows_(owned_.tensors(), format) {}

  int64_t num_rows() const override { return rows_.num_rows(); }
  int64_t row_length() const override { return rows_.row_length(); }
  Grouping grouping() const override { return rows_.grouping(); }
  DType value_dtype() const override { return rows_.value_dtype(); }
  void read_codes(int64_t row, std::span<uint8_t> codes, std::span<float> scales,
                  std::span<float> offsets) const override {
    rows_.read_codes(row, codes, scales, offsets);
  }
  void read_values(int64_t row, std::span<float> values) const override {
    rows_.read_values(row, values);
  }
  std::vector<std::span<const std::byte>> stored_bytes() const override {
    return rows_.stored_bytes();
  }

 private:
  OwnedAffineRows owned_;
  AffineRows rows_;
};

// 0: the tensor stays plain.
int64_t group_size_for(const Extents& shape) {
  if (shape.rank() != 2 || shape[1] == 0) return 0;
  for (const int64_t size : {64, 32}) {
    if (shape[1] % size == 0) return size;
  }
  return 0;
}

}  // namespace

std::shared_ptr<const GroupedRows> QuantizingCheckpoint::quantize(std::string_view name,
                                                                  const Extents& shape,
                                                                  int64_t group_size) {
  const Tensor plain = source_.read(name, shape);
  const std::string where = fmt::format("{}: tensor {}", origin(), quoted_name(name));
  if (!is_float(plain.dtype())) {
    throw Error(ErrorCode::unsupported, fmt::format("{} holds {}, which can't be quantised", where,
                                                    dtype_name(plain.dtype())));
  }
  if (quantization_ == LoadQuantization::q8) {
    return std::make_shared<SymmetricRows>(plain, group_size, where, memory_, threads_);
  }
  const AffineFormat format{.bits = 4, .group_size = group_size};
  return std::make_shared<QuantizedRows>(OwnedAffineRows(plain, format, where, memory_, threads_),
                                         format);
}

std::shared_ptr<const GroupedRows> QuantizingCheckpoint::read_grouped(std::string_view name,
                                                                      const Extents& shape) {
  const int64_t group_size = group_size_for(shape);
  if (group_size == 0 || quantization_ == LoadQuantization::none) {
    return source_.read_grouped(name, shape);
  }
  const auto known = matrices_.find(name);
  if (known != matrices_.end()) {
    const GroupedRows& rows = *known->second.rows;
    if (shape == Extents{rows.num_rows(), rows.row_length()}) return known->second.rows;
  }
  if (source_.read_grouped(name, shape) != nullptr) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: tensor {} is quantised already, expected plain numbers to "
                            "quantise; leave --quantize away",
                            origin(), quoted_name(name)));
  }
  auto rows = quantize(name, shape, group_size);
  source_.release(name);
  return matrices_.insert_or_assign(std::string(name), Matrix{std::move(rows), {}})
      .first->second.rows;
}

Tensor QuantizingCheckpoint::read_tensor(std::string_view name, const Extents& shape, ReadAs as) {
  if (as == ReadAs::stored) return source_.read_tensor(name, shape, as);
  const auto rows = read_grouped(name, shape);
  const auto at = matrices_.find(name);
  if (at == matrices_.end()) return source_.read(name, shape);
  if (!at->second.values) at->second.values = dequantize(*rows, memory_, threads_);
  return at->second.values->view;
}

void QuantizingCheckpoint::release(std::string_view name) {
  if (const auto at = matrices_.find(name); at != matrices_.end()) matrices_.erase(at);
  source_.release(name);
}

}  // namespace paceline
