#include "weights/float8_rows.h"

#include <vector>

#include "base/divide_up.h"
#include "tensor/float8.h"
#include "weights/rounded_value.h"

namespace paceline {

void Float8Rows::read_values(int64_t row, std::span<float> values) const {
  const auto& table = float8_values(elements_.dtype());
  const auto* const bytes = static_cast<const uint8_t*>(elements_.raw()) + row * row_length();
  const int64_t block = scales_.layout().block_columns;
  std::vector<float> scales(static_cast<size_t>(divide_up(row_length(), block)));
  scales_.read_row(row, scales);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = table[bytes[i]] * scales[i / static_cast<size_t>(block)];
  }
  round_values(dtype_, values);
}

}  // namespace paceline
