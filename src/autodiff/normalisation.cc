#include "autodiff/normalisation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autodiff/elementwise.h"
#include "autodiff/float_math.h"
#include "autodiff/lines.h"
#include "autodiff/operation.h"
#include "autodiff/reductions.h"
#include "autodiff/segment_sums.h"
#include "autodiff/shape_error.h"
#include "autodiff/shapes.h"

namespace paceline::autodiff {
namespace {

const std::vector<int> kLastAxis = {-1};

Array row_mean(const Array& x) { return mean(x, kLastAxis, Reduced::kept); }
Array row_sum(const Array& x) { return sum(x, kLastAxis, Reduced::kept); }

// Calls body(row, index) for each row of x [..., width].
template <class Body>
void for_each_row(const Array& x, Body&& body) {
  const int64_t width = x.size(-1);
  if (x.num_elements() == 0) return;
  const float* elements = x.tensor().elements<float>();
  for_parts(x.context(), x.num_elements() / width, width, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) body(elements + row * width, row);
  });
}

float row_max(const float* row, int64_t width) {
  float most = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < width; ++i) most = row[i] > most ? row[i] : most;
  return most;
}

class Softmax final : public Operation {
 public:
  std::string_view name() const override { return "softmax"; }

  Array forward(const Arrays& inputs) const override {
    const Array x = as_contiguous_f32(inputs[0]);
    Array result(x.context(), DType::f32, x.shape());
    float* out = result.writable().elements<float>();
    const int64_t width = x.size(-1);
    for_each_row(x, [&](const float* row, int64_t index) {
      float* to = out + index * width;
      const float most = row_max(row, width);
      for (int64_t i = 0; i < width; ++i) to[i] = float_exp(row[i] - most);
      const float factor = 1.0f / sum_terms(width, [&](int64_t i) { return to[i]; });
      for (int64_t i = 0; i < width; ++i) to[i] *= factor;
    });
    return rounded_to(result, inputs[0].dtype());
  }
  Arrays vjp(const Array& cotangent, const Application& at) const override {
    return one_gradient(along(cotangent, at.output));
  }
  Array jvp(const Arrays& tangents, const Arrays&, const Array& output) const override {
    return along(tangents[0], output);
  }
  bool vjp_reads_input(size_t, const Wanted&) const override { return false; }

 private:
  // The Jacobian is symmetric: diag(y) - y y^T.
  static Array along(const Array& direction, const Array& output) {
    const Array y = convert(output, DType::f32);
    const Array weighted = direction * y;
    return weighted - y * row_sum(weighted);
  }
};

class LogSumExp final : public Operation {
 public:
  std::string_view name() const override { return "log_sum_exp"; }

  // Keeps the last axis with size 1.
  Array forward(const Arrays& inputs) const override {
    const Array x = as_contiguous_f32(inputs[0]);
    Extents shape = x.shape();
    shape[x.rank() - 1] = 1;
    Array result(x.context(), DType::f32, shape);
    float* out = result.writable().elements<float>();
    const int64_t width = x.size(-1);
    for_each_row(x, [&](const float* row, int64_t index) {
      const float most = row_max(row, width);
      if (most == -std::numeric_limits<float>::infinity()) {
        out[index] = sum_terms(width, [&](int64_t i) { return row[i]; });  // or NaN, if one is
        return;
      }
      const float total = sum_terms(width, [&](int64_t i) { return float_exp(row[i] - most); });
      out[index] = most + float_log(total);
    });
    return rounded_to(result, inputs[0].dtype());
  }
  Arrays vjp(const Array& cotangent, const Application& at) const override {
    return one_gradient(cotangent * softmax(convert(at.inputs[0], DType::f32)));
  }
  Array jvp(const Arrays& tangents, const Arrays& inputs, const Array&) const override {
    return row_sum(tangents[0] * softmax(convert(inputs[0], DType::f32)));
  }
  bool vjp_reads_output() const override { return false; }
};

class RmsNorm final : public Operation {
 public:
  explicit RmsNorm(float eps) : eps_(eps) {}

  std::string_view name() const override { return "rms_norm"; }

  Array forward(const Arrays& inputs) const override {
    const Array x = as_contiguous_f32(inputs[0]), weight = as_contiguous_f32(inputs[1]);
    Array result(x.context(), DType::f32, x.shape());
    float* out = result.writable().elements<float>();
    const float* factors = weight.tensor().elements<float>();
    const int64_t width = x.size(-1);
    for_each_row(x, [&](const float* row, int64_t index) {
      const float squares = sum_terms(width, [&](int64_t i) { return row[i] * row[i]; });
      const float inverse = 1.0f / std::sqrt(squares / static_cast<float>(width) + eps_);
      float* to = out + index * width;
      for (int64_t i = 0; i < width; ++i) to[i] = row[i] * inverse * factors[i];
    });
    return rounded_to(result, inputs[0].dtype());
  }

  Arrays vjp(const Array& cotangent, const Application& at) const override {
    const Parts parts(at.inputs[0], eps_);
    Arrays gradients(2);
    if (at.wanted[0]) {
      const Array weighted = cotangent * at.inputs[1];
      gradients[0] = parts.project(weighted);
    }
    if (at.wanted[1]) gradients[1] = sum_to(cotangent * parts.unit, at.inputs[1].shape());
    return gradients;
  }

  Array jvp(const Arrays& tangents, const Arrays& inputs, const Array& output) const override {
    const Parts parts(inputs[0], eps_);
    Array sum;
    if (tangents[0].is_defined()) sum = parts.project(tangents[0]) * inputs[1];
    if (tangents[1].is_defined()) {
      const Array part = broadcast_to(parts.unit * tangents[1], output.shape());
      sum = sum.is_defined() ? sum + part : part;
    }
    return sum;
  }
  bool vjp_reads_output() const override { return false; }

 private:
  struct Parts {
    Parts(const Array& input, float eps) {
      const Array x = convert(input, DType::f32);
      inverse = rsqrt(row_mean(x * x) + eps);
      unit = x * inverse;
    }
    // The Jacobian of x -> unit, which is symmetric.
    Array project(const Array& direction) const {
      return inverse * (direction - unit * row_mean(direction * unit));
    }

    Array inverse;  // [..., 1]
    Array unit;     // the row before its weight
  };

  float eps_;
};

class LayerNorm final : public Operation {
 public:
  explicit LayerNorm(float eps) : eps_(eps) {}

  std::string_view name() const override { return "layer_norm"; }

  Array forward(const Arrays& inputs) const override {
    const Array x = as_contiguous_f32(inputs[0]), weight = as_contiguous_f32(inputs[1]);
    const Array bias = as_contiguous_f32(inputs[2]);
    Array result(x.context(), DType::f32, x.shape());
    float* out = result.writable().elements<float>();
    const float* factors = weight.tensor().elements<float>();
    const float* terms = bias.tensor().elements<float>();
    const int64_t width = x.size(-1);
    const auto count = static_cast<float>(width);
    for_each_row(x, [&](const float* row, int64_t index) {
      const float average = sum_terms(width, [&](int64_t i) { return row[i]; }) / count;
      const float squares =
          sum_terms(width, [&](int64_t i) { return (row[i] - average) * (row[i] - average); });
      const float inverse = 1.0f / std::sqrt(squares / count + eps_);
      float* to = out + index * width;
      for (int64_t i = 0; i < width; ++i) {
        to[i] = (row[i] - average) * inverse * factors[i] + terms[i];
      }
    });
    return rounded_to(result, inputs[0].dtype());
  }

  Arrays vjp(const Array& cotangent, const Application& at) const override {
    const Parts parts(at.inputs[0], eps_);
    Arrays gradients(3);
    if (at.wanted[0]) gradients[0] = parts.project(cotangent * at.inputs[1]);
    if (at.wanted[1]) gradients[1] = sum_to(cotangent * parts.unit, at.inputs[1].shape());
    if (at.wanted[2]) gradients[2] = sum_to(cotangent, at.inputs[2].shape());
    return gradients;
  }

  Array jvp(const Arrays& tangents, const Arrays& inputs, const Array& output) const override {
    const Parts parts(inputs[0], eps_);
    Array sum(output.context(), DType::f32, output.shape());
    if (tangents[0].is_defined()) sum = sum + parts.project(tangents[0]) * inputs[1];
    if (tangents[1].is_defined()) sum = sum + parts.unit * tangents[1];
    if (tangents[2].is_defined()) sum = sum + tangents[2];
    return sum;
  }
  bool vjp_reads_input(size_t index, const Wanted&) const override { return index < 2; }
  bool vjp_reads_output() const override { return false; }

 private:
  struct Parts {
    Parts(const Array& input, float eps) {
      const Array x = convert(input, DType::f32);
      const Array centred = x - row_mean(x);
      inverse = rsqrt(row_mean(centred * centred) + eps);
      unit = centred * inverse;
    }
    // The Jacobian of x -> unit, which is symmetric.
    Array project(const Array& direction) const {
      return inverse * (direction - row_mean(direction) - unit * row_mean(direction * unit));
    }

    Array inverse;  // [..., 1]
    Array unit;     // the row before weight and bias
  };

  float eps_;
};

void check_norm(std::string_view name, const Array& x, const Arrays& vectors) {
  check_float(name, x);
  Arrays all = {x};
  bool fits = x.rank() > 0 && x.size(-1) > 0;
  for (const Array& vector : vectors) {
    check_float(name, vector);
    fits = fits && vector.rank() == 1 && vector.size(0) == x.size(-1);
    all.push_back(vector);
  }
  if (!fits) throw_shapes(name, all, "[..., width] and vectors [width], width above 0");
}

}  // namespace

Array softmax(const Array& x) {
  check_norm("softmax", x, {});
  return apply_new<Softmax>({x});
}

Array softmax(const Array& x, int axis) {
  axis = checked_axis("softmax", x, axis);
  return transpose(softmax(transpose(x, axis, -1)), axis, -1);
}

Array log_sum_exp(const Array& x) {
  check_norm("log_sum_exp", x, {});
  const Extents rows(
      std::span<const int64_t>(x.shape().begin(), static_cast<size_t>(x.rank() - 1)));
  return reshape(apply_new<LogSumExp>({x}), rows);
}

Array rms_norm(const Array& x, const Array& weight, float eps) {
  check_norm("rms_norm", x, {weight});
  return apply_new<RmsNorm>({x, weight}, eps);
}

Array layer_norm(const Array& x, const Array& weight, const Array& bias, float eps) {
  check_norm("layer_norm", x, {weight, bias});
  return apply_new<LayerNorm>({x, weight, bias}, eps);
}

}  // namespace paceline::autodiff
