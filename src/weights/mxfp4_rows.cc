#include "weights/mxfp4_rows.h"

#include <array>
#include <cmath>

#include "base/error.h"

namespace paceline {
namespace {

// Twice the numbers of E2M1: a sign, two bits of exponent, one of mantissa.
constexpr std::array<int, 16> kDoubled = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
constexpr std::array<float, 16> kNumbers = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                            -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};
constexpr int kBias = 127;

// Calls use(element, the four bits) for all elements of a row.
template <class Use>
void for_each_number(const Tensor& blocks, int64_t row, const Use& use) {
  const auto* const bytes = blocks.row<uint8_t>(row);
  const int64_t count = blocks.size(1) * blocks.size(2);
  for (int64_t i = 0; i < count; ++i) {
    use(static_cast<size_t>(2 * i), bytes[i] & 0xF);
    use(static_cast<size_t>(2 * i + 1), bytes[i] >> 4);
  }
}

}  // namespace

Mxfp4Rows::Mxfp4Rows(const Mxfp4Tensors& tensors) : tensors_(tensors) {
  PL_CHECK(tensors.blocks.rank() == 3 && tensors.scales.rank() == 2 &&
               tensors.blocks.size(0) == tensors.scales.size(0) &&
               tensors.blocks.size(1) == tensors.scales.size(1) &&
               tensors.blocks.size(2) == kBlock / 2,
           "blocks and scales of one matrix");
}

void Mxfp4Rows::read_codes(int64_t row, std::span<uint8_t> codes, std::span<float> scales,
                           std::span<float> offsets) const {
  for_each_number(tensors_.blocks, row, [&](size_t i, int bits) {
    codes[i] = static_cast<uint8_t>(kZero + kDoubled[static_cast<size_t>(bits)]);
  });
  const auto* const exponents = tensors_.scales.row<uint8_t>(row);
  for (size_t block = 0; block < scales.size(); ++block) {
    scales[block] = std::ldexp(0.5f, exponents[block] - kBias);
    offsets[block] = -static_cast<float>(kZero) * scales[block];
  }
}

void Mxfp4Rows::read_values(int64_t row, std::span<float> values) const {
  const auto* const exponents = tensors_.scales.row<uint8_t>(row);
  for_each_number(tensors_.blocks, row, [&](size_t i, int bits) {
    const float scale = std::ldexp(1.0f, exponents[i / kBlock] - kBias);
    values[i] = kNumbers[static_cast<size_t>(bits)] * scale;
  });
}

std::vector<std::span<const std::byte>> Mxfp4Rows::stored_bytes() const {
  return {tensors_.blocks.bytes(), tensors_.scales.bytes()};
}

}  // namespace paceline
