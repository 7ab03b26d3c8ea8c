#include "weights/dequantize.h"

#include <vector>

namespace paceline {

OwnedTensor dequantize(const ValueRows& rows, Memory& memory, ThreadPool& threads) {
  constexpr int64_t kRowsAtOnce = 16;
  OwnedTensor matrix =
      allocate_tensor(memory, rows.value_dtype(), {rows.num_rows(), rows.row_length()});
  threads.parallel_for(rows.num_rows(), kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
    std::vector<float> values(static_cast<size_t>(rows.row_length()));
    for (int64_t row = begin; row < end; ++row) {
      rows.read_values(row, values);
      with_float_dtype(rows.value_dtype(), [&]<class T>() {
        T* out = matrix.view.row<T>(row);
        for (const float value : values) *out++ = from_float<T>(value);
      });
    }
  });
  return matrix;
}

}  // namespace paceline
