#include <utility>

#include "autodiff/attention.h"
#include "autodiff/elementwise.h"
#include "autodiff/float_math.h"
#include "autodiff/lines.h"
#include "autodiff/operation.h"
#include "autodiff/shape_error.h"

namespace paceline::autodiff {
namespace {

// The other way round: the transpose of a rotation, with the same scale.
enum class Turn : uint8_t { forward, back };

class Rope final : public Operation {
 public:
  Rope(Array table, Turn turn) : table_(std::move(table)), turn_(turn) {}

  std::string_view name() const override { return "rope"; }

  Array forward(const Arrays& inputs) const override {
    const Array x = as_contiguous_f32(inputs[0]), table = as_contiguous_f32(table_);
    Array result(x.context(), DType::f32, x.shape());
    const float* from = x.tensor().elements<float>();
    float* to = result.writable().elements<float>();
    const int64_t width = x.size(-1), num_heads = x.size(-2), num_rows = x.size(-3);
    if (x.num_elements() == 0) return rounded_to(result, inputs[0].dtype());
    for_parts(x.context(), x.num_elements() / width, width, [&](int64_t begin, int64_t end) {
      for (int64_t head = begin; head < end; ++head) {
        const int64_t row = head / num_heads % num_rows;
        turn_head(from + head * width, table.tensor().row<float>(row), width, to + head * width);
      }
    });
    return rounded_to(result, inputs[0].dtype());
  }
  Arrays vjp(const Array& cotangent, const Application&) const override {
    const Turn back = turn_ == Turn::forward ? Turn::back : Turn::forward;
    return one_gradient(apply_new<Rope>({cotangent}, table_, back));
  }
  Array jvp(const Arrays& tangents, const Arrays&, const Array&) const override {
    return apply_new<Rope>({tangents[0]}, table_, turn_);
  }
  bool vjp_reads_input(size_t, const Wanted&) const override { return false; }
  bool vjp_reads_output() const override { return false; }

 private:
  void turn_head(const float* x, const float* pairs, int64_t width, float* out) const {
    const int64_t half = table_.size(1);
    for (int64_t i = 0; i < half; ++i) {
      const float cosine = pairs[2 * i];
      const float sine = turn_ == Turn::forward ? pairs[2 * i + 1] : -pairs[2 * i + 1];
      out[i] = x[i] * cosine - x[i + half] * sine;
      out[i + half] = x[i + half] * cosine + x[i] * sine;
    }
    for (int64_t i = 2 * half; i < width; ++i) out[i] = x[i];
  }

  Array table_;
  Turn turn_;
};

}  // namespace

Array rope_table(const Array& positions, const Array& inv_freq, float scale) {
  if (positions.rank() != 1 || inv_freq.rank() != 1 || positions.dtype() != DType::i32) {
    throw_shapes("rope_table", {positions, inv_freq}, "int32 positions [rows] and [half]");
  }
  check_float("rope_table", inv_freq);
  const Array frequencies = as_contiguous_f32(stop_gradient(inv_freq));
  const int64_t num_rows = positions.size(0), half = inv_freq.size(0);
  Array table(inv_freq.context(), DType::f32, {num_rows, half, 2});
  float* pairs = table.writable().elements<float>();
  const int32_t* elements = positions.tensor().elements<int32_t>();
  for (int64_t r = 0; r < num_rows; ++r) {
    const auto position = static_cast<float>(elements[r * positions.tensor().stride(0)]);
    for (int64_t i = 0; i < half; ++i) {
      const float angle = position * frequencies.tensor().elements<float>()[i];
      const SinCos turned = sine_cosine(double{angle});
      pairs[2 * (r * half + i)] = static_cast<float>(turned.cos * double{scale});
      pairs[2 * (r * half + i) + 1] = static_cast<float>(turned.sin * double{scale});
    }
  }
  return table;
}

Array rope(const Array& x, const Array& table) {
  check_float("rope", x);
  check_float("rope", table);
  if (x.rank() < 3 || table.rank() != 3 || table.size(2) != 2 || table.size(0) != x.size(-3) ||
      2 * table.size(1) > x.size(-1)) {
    throw_shapes("rope", {x, table},
                 "[..., rows, heads, head_dim] and [rows, half, 2], with 2 half up to head_dim");
  }
  return apply_new<Rope>({x}, stop_gradient(table), Turn::forward);
}

}  // namespace paceline::autodiff
