// Operations on each element of one array.
#include <numbers>

#include "autodiff/elementwise.h"
#include "autodiff/float_math.h"
#include "autodiff/lines.h"
#include "autodiff/operation.h"
#include "autodiff/shape_error.h"

namespace paceline::autodiff {
namespace {

constexpr float kSqrtHalf = 0.70710678f;
constexpr float kInvSqrtTwoPi = 0.39894228f;
constexpr float kTwoOverSqrtPi = 1.1283792f;
constexpr float kSqrtTwoOverPi = 0.79788456f;
constexpr float kGeluCubic = 0.044715f;

// The slopes of gated activations are functions of their own, so that a backward pass reads x once.
enum class UnaryFunction : uint8_t {
  negate,
  reciprocal,
  exp,
  log,
  sqrt,
  rsqrt,
  tanh,
  erf,
  sigmoid,
  silu,
  silu_slope,
  gelu_tanh,
  gelu_tanh_slope,
  gelu_erf,
  gelu_erf_slope
};

std::string_view function_name(UnaryFunction function) {
  switch (function) {
    case UnaryFunction::negate:
      return "negate";
    case UnaryFunction::reciprocal:
      return "reciprocal";
    case UnaryFunction::exp:
      return "exp";
    case UnaryFunction::log:
      return "log";
    case UnaryFunction::sqrt:
      return "sqrt";
    case UnaryFunction::rsqrt:
      return "rsqrt";
    case UnaryFunction::tanh:
      return "tanh";
    case UnaryFunction::erf:
      return "erf";
    case UnaryFunction::sigmoid:
      return "sigmoid";
    case UnaryFunction::silu:
    case UnaryFunction::silu_slope:
      return "silu";
    case UnaryFunction::gelu_tanh:
    case UnaryFunction::gelu_tanh_slope:
      return "gelu_tanh";
    case UnaryFunction::gelu_erf:
    case UnaryFunction::gelu_erf_slope:
      return "gelu_erf";
  }
  return "";
}

float gelu_tanh_slope_of(float x) {
  const float t = float_tanh(kSqrtTwoOverPi * (x + kGeluCubic * x * x * x));
  const float inner_slope = kSqrtTwoOverPi * (1.0f + 3.0f * kGeluCubic * x * x);
  return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * inner_slope;
}

float gelu_erf_slope_of(float x) {
  return 0.5f * (1.0f + float_erf(x * kSqrtHalf)) + x * kInvSqrtTwoPi * float_exp(-0.5f * x * x);
}

float silu_slope_of(float x) {
  const float s = float_sigmoid(x);
  return s * (1.0f + x * (1.0f - s));
}

// Calls body(f) with the function as a lambda, so that its loop can be vectorised.
template <class Body>
void with_function(UnaryFunction function, Body&& body) {
  switch (function) {
    case UnaryFunction::negate:
      return body([](float x) { return -x; });
    case UnaryFunction::reciprocal:
      return body([](float x) { return 1.0f / x; });
    case UnaryFunction::exp:
      return body([](float x) { return float_exp(x); });
    case UnaryFunction::log:
      return body([](float x) { return float_log(x); });
    case UnaryFunction::sqrt:
      return body([](float x) { return std::sqrt(x); });
    case UnaryFunction::rsqrt:
      return body([](float x) { return 1.0f / std::sqrt(x); });
    case UnaryFunction::tanh:
      return body([](float x) { return float_tanh(x); });
    case UnaryFunction::erf:
      return body([](float x) { return float_erf(x); });
    case UnaryFunction::sigmoid:
      return body([](float x) { return float_sigmoid(x); });
    case UnaryFunction::silu:
      return body([](float x) { return x * float_sigmoid(x); });
    case UnaryFunction::silu_slope:
      return body(silu_slope_of);
    case UnaryFunction::gelu_tanh:
      return body([](float x) {
        return 0.5f * x * (1.0f + float_tanh(kSqrtTwoOverPi * (x + kGeluCubic * x * x * x)));
      });
    case UnaryFunction::gelu_tanh_slope:
      return body(gelu_tanh_slope_of);
    case UnaryFunction::gelu_erf:
      return body([](float x) { return 0.5f * x * (1.0f + float_erf(x * kSqrtHalf)); });
    case UnaryFunction::gelu_erf_slope:
      return body(gelu_erf_slope_of);
  }
}

Array apply_function(UnaryFunction function, const Array& x);

// f'(x), of x and y = f(x) in float32.
Array slope(UnaryFunction function, const Array& x, const Array& y) {
  switch (function) {
    case UnaryFunction::negate:  // linear: it has a rule of its own
    case UnaryFunction::exp:
      return y;
    case UnaryFunction::reciprocal:
      return negate(y * y);
    case UnaryFunction::log:
      return reciprocal(x);
    case UnaryFunction::sqrt:
      return 0.5f * reciprocal(y);
    case UnaryFunction::rsqrt:
      return -0.5f * (y * y * y);
    case UnaryFunction::tanh:
      return 1.0f - y * y;
    case UnaryFunction::erf:
      return kTwoOverSqrtPi * exp(-(x * x));
    case UnaryFunction::sigmoid:
      return y * (1.0f - y);
    case UnaryFunction::silu:
      return apply_function(UnaryFunction::silu_slope, x);
    case UnaryFunction::silu_slope: {
      const Array s = sigmoid(x);
      return s * (1.0f - s) * (2.0f + x * (1.0f - 2.0f * s));
    }
    case UnaryFunction::gelu_tanh:
      return apply_function(UnaryFunction::gelu_tanh_slope, x);
    case UnaryFunction::gelu_tanh_slope: {
      const Array square = x * x;
      const Array t = tanh(kSqrtTwoOverPi * (x * (1.0f + kGeluCubic * square)));
      const Array first = kSqrtTwoOverPi * (1.0f + 3.0f * kGeluCubic * square);
      const Array second = (6.0f * kSqrtTwoOverPi * kGeluCubic) * x;
      return (1.0f - t * t) * (first + 0.5f * (x * (second - 2.0f * (t * first * first))));
    }
    case UnaryFunction::gelu_erf:
      return apply_function(UnaryFunction::gelu_erf_slope, x);
    case UnaryFunction::gelu_erf_slope:
      return kInvSqrtTwoPi * (exp(-0.5f * (x * x)) * (2.0f - x * x));
  }
  return y;
}

class ElementFunction final : public Operation {
 public:
  explicit ElementFunction(UnaryFunction function) : function_(function) {}

  std::string_view name() const override { return function_name(function_); }

  Array forward(const Arrays& inputs) const override {
    check_float(name(), inputs[0]);
    const Array x = as_contiguous_f32(inputs[0]);
    Array y(x.context(), DType::f32, x.shape());
    const float* from = x.tensor().elements<float>();
    float* to = y.writable().elements<float>();
    with_function(function_, [&](auto f) {
      for_parts(x.context(), x.num_elements(), 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) to[i] = f(from[i]);
      });
    });
    return rounded_to(y, inputs[0].dtype());
  }

  Arrays vjp(const Array& cotangent, const Application& at) const override {
    return one_gradient(times_slope(cotangent, at.inputs[0], at.output));
  }
  Array jvp(const Arrays& tangents, const Arrays& inputs, const Array& output) const override {
    return times_slope(tangents[0], inputs[0], output);
  }
  bool vjp_reads_input(size_t, const Wanted&) const override {
    return function_ != UnaryFunction::negate && !reads_output();
  }
  bool vjp_reads_output() const override { return reads_output(); }

 private:
  // Whether the slope is one of y rather than x.
  bool reads_output() const {
    return function_ == UnaryFunction::reciprocal || function_ == UnaryFunction::exp ||
           function_ == UnaryFunction::sqrt || function_ == UnaryFunction::rsqrt ||
           function_ == UnaryFunction::tanh || function_ == UnaryFunction::sigmoid;
  }

  Array times_slope(const Array& direction, const Array& x, const Array& y) const {
    if (function_ == UnaryFunction::negate) return negate(direction);
    const Array undefined;
    return direction * slope(function_, reads_output() ? undefined : convert(x, DType::f32),
                             reads_output() ? convert(y, DType::f32) : undefined);
  }

  UnaryFunction function_;
};

Array apply_function(UnaryFunction function, const Array& x) {
  return apply_new<ElementFunction>({x}, function);
}

// x factor + term
class Affine final : public Operation {
 public:
  Affine(float factor, float term) : factor_(factor), term_(term) {}

  std::string_view name() const override { return "scale"; }

  Array forward(const Arrays& inputs) const override {
    check_float(name(), inputs[0]);
    const Array x = as_contiguous_f32(inputs[0]);
    Array y(x.context(), DType::f32, x.shape());
    const float* from = x.tensor().elements<float>();
    float* to = y.writable().elements<float>();
    for_parts(x.context(), x.num_elements(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = from[i] * factor_ + term_;
    });
    return rounded_to(y, inputs[0].dtype());
  }
  Arrays vjp(const Array& cotangent, const Application&) const override {
    return one_gradient(scale(cotangent, factor_));
  }
  Array jvp(const Arrays& tangents, const Arrays&, const Array&) const override {
    return scale(tangents[0], factor_);
  }
  bool vjp_reads_input(size_t, const Wanted&) const override { return false; }
  bool vjp_reads_output() const override { return false; }

 private:
  float factor_;
  float term_;
};

class Convert final : public Operation {
 public:
  explicit Convert(DType dtype) : dtype_(dtype) {}

  std::string_view name() const override { return "convert"; }

  Array forward(const Arrays& inputs) const override { return rounded_to(inputs[0], dtype_); }
  Arrays vjp(const Array& cotangent, const Application& at) const override {
    return one_gradient(convert(cotangent, at.inputs[0].dtype()));
  }
  Array jvp(const Arrays& tangents, const Arrays&, const Array&) const override {
    return convert(tangents[0], dtype_);
  }
  bool vjp_reads_input(size_t, const Wanted&) const override { return false; }
  bool vjp_reads_output() const override { return false; }

 private:
  DType dtype_;
};

}  // namespace

Array negate(const Array& x) { return apply_function(UnaryFunction::negate, x); }
Array reciprocal(const Array& x) { return apply_function(UnaryFunction::reciprocal, x); }
Array exp(const Array& x) { return apply_function(UnaryFunction::exp, x); }
Array log(const Array& x) { return apply_function(UnaryFunction::log, x); }
Array sqrt(const Array& x) { return apply_function(UnaryFunction::sqrt, x); }
Array rsqrt(const Array& x) { return apply_function(UnaryFunction::rsqrt, x); }
Array tanh(const Array& x) { return apply_function(UnaryFunction::tanh, x); }
Array erf(const Array& x) { return apply_function(UnaryFunction::erf, x); }
Array sigmoid(const Array& x) { return apply_function(UnaryFunction::sigmoid, x); }
Array silu(const Array& x) { return apply_function(UnaryFunction::silu, x); }
Array gelu_tanh(const Array& x) { return apply_function(UnaryFunction::gelu_tanh, x); }
Array gelu_erf(const Array& x) { return apply_function(UnaryFunction::gelu_erf, x); }

Array scale(const Array& x, float factor) { return apply_new<Affine>({x}, factor, 0.0f); }
Array add_scalar(const Array& x, float term) { return apply_new<Affine>({x}, 1.0f, term); }

Array convert(const Array& x, DType dtype) {
  check_float("convert", x);
  return x.dtype() == dtype ? x : apply_new<Convert>({x}, dtype);
}

Array stop_gradient(const Array& x) {
  Array value = x;
  while (value.traced() != nullptr) value = Array(value.traced()->value);
  return value;
}

}  // namespace paceline::autodiff
