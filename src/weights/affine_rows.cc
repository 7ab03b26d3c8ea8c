#include "weights/affine_rows.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "weights/packed_codes.h"

namespace paceline {
namespace {

// Codes that are unpacked at a time: a multiple of every group size, in whole words.
constexpr int64_t kPiece = 128;

std::span<const std::byte> bytes_of(const Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.raw()), tensor.size_bytes()};
}

std::span<const uint32_t> words_of(const Tensor& words, int64_t row) {
  return {words.row<uint32_t>(row), static_cast<size_t>(words.size(1))};
}

template <class T>
float value_of(float code, T scale, T bias) {
  const float product = to_float(from_float<T>(to_float(scale) * code));
  return to_float(from_float<T>(product + to_float(bias)));
}

template <class T>
void fill_group(std::span<const uint8_t> codes, T scale, T bias, int bits, float* values) {
  // There are few codes: each is rounded once.
  std::array<float, 16> table;
  const size_t num_codes = size_t{1} << bits;
  if (num_codes > table.size()) {
    for (const uint8_t code : codes) *values++ = value_of(static_cast<float>(code), scale, bias);
    return;
  }
  for (size_t code = 0; code < num_codes; ++code) {
    table[code] = value_of(static_cast<float>(code), scale, bias);
  }
  for (const uint8_t code : codes) *values++ = table[code];
}

}  // namespace

AffineRows::AffineRows(const AffineTensors& tensors, AffineFormat format)
    : tensors_(tensors), format_(format) {
  PL_CHECK(tensors.words.dtype() == DType::u32 && is_float(tensors.scales.dtype()) &&
               tensors.biases.dtype() == tensors.scales.dtype(),
           "words of 32 bits, scales and biases of one float dtype");
  PL_CHECK(tensors.scales.shape() == tensors.biases.shape() &&
               tensors.words.size(0) == tensors.scales.size(0) &&
               tensors.words.size(1) * 32 == row_length() * format.bits,
           "words, scales and biases of one matrix");
}

void AffineRows::read_codes(int64_t row, std::span<uint8_t> codes, std::span<float> scales,
                            std::span<float> offsets) const {
  unpack_codes(words_of(tensors_.words, row), format_.bits, codes);
  with_float_dtype(tensors_.scales.dtype(), [&]<class T>() {
    const T* const scale = tensors_.scales.row<T>(row);
    const T* const bias = tensors_.biases.row<T>(row);
    for (size_t group = 0; group < scales.size(); ++group) {
      scales[group] = to_float(scale[group]);
      offsets[group] = to_float(bias[group]);
    }
  });
}

void AffineRows::read_values(int64_t row, std::span<float> values) const {
  const auto words = words_of(tensors_.words, row);
  const int bits = format_.bits;
  with_float_dtype(tensors_.scales.dtype(), [&]<class T>() {
    const T* scale = tensors_.scales.row<T>(row);
    const T* bias = tensors_.biases.row<T>(row);
    std::array<uint8_t, kPiece> codes;
    const auto length = static_cast<int64_t>(values.size());
    for (int64_t begin = 0; begin < length; begin += kPiece) {
      const auto count = static_cast<size_t>(std::min(kPiece, length - begin));
      const auto first_word = static_cast<size_t>(begin * bits / 32);
      unpack_codes(words.subspan(first_word, count * static_cast<size_t>(bits) / 32), bits,
                   std::span(codes).first(count));
      const auto group_size = static_cast<size_t>(format_.group_size);
      for (size_t i = 0; i < count; i += group_size) {
        fill_group(std::span<const uint8_t>(codes).subspan(i, group_size), *scale++, *bias++, bits,
                   values.data() + begin + static_cast<int64_t>(i));
      }
    }
  });
}

std::vector<std::span<const std::byte>> AffineRows::stored_bytes() const {
  return {bytes_of(tensors_.words), bytes_of(tensors_.scales), bytes_of(tensors_.biases)};
}

}  // namespace paceline
