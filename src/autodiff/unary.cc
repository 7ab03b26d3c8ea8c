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
enum class Function1 : uint8_t {
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

std::string_view function_name(Function1 function) {
  switch (function) {
    case Function1::negate:
      return "negate";
    case Function1::reciprocal:
      return "reciprocal";
    case Function1::exp:
      return "exp";
    case Function1::log:
      return "log";
    case Function1::sqrt:
      return "sqrt";
    case Function1::rsqrt:
      return "rsqrt";
    case Function1::tanh:
      return "tanh";
    case Function1::erf:
      return "erf";
    case Function1::sigmoid:
      return "sigmoid";
    case Function1::silu:
    case Function1::silu_slope:
      return "silu";
    case Function1::gelu_tanh:
    case Function1::gelu_tanh_slope:
      return "gelu_tanh";
    case Function1::gelu_erf:
    case Function1::gelu_erf_slope:
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
void with_function(Function1 function, Body&& body) {
  switch (function) {
    case Function1::negate:
      return body([](float x) { return -x; });
    case Function1::reciprocal:
      return body([](float x) { return 1.0f / x; });
    case Function1::exp:
      return body([](float x) { return float_exp(x); });
    case Function1::log:
      return body([](float x) { return float_log(x); });
    case Function1::sqrt:
      return body([](float x) { return std::sqrt(x); });
    case Function1::rsqrt:
      return body([](float x) { return 1.0f / std::sqrt(x); });
    case Function1::tanh:
      return body([](float x) { return float_tanh(x); });
    case Function1::erf:
      return body([](float x) { return float_erf(x); });
    case Function1::sigmoid:
      return body([](float x) { return float_sigmoid(x); });
    case Function1::silu:
      return body([](float x) { return x * float_sigmoid(x); });
    case Function1::silu_slope:
      return body(silu_slope_of);
    case Function1::gelu_tanh:
      return body([](float x) {
        return 0.5f * x * (1.0f + float_tanh(kSqrtTwoOverPi * (x + kGeluCubic * x * x * x)));
      });
    case Function1::gelu_tanh_slope:
      return body(gelu_tanh_slope_of);
    case Function1::gelu_erf:
      return body([](float x) { return 0.5f * x * (1.0f + float_erf(x * kSqrtHalf)); });
    case Function1::gelu_erf_slope:
      return body(gelu_erf_slope_of);
  }
}

Array apply_function(Function1 function, const Array& x);

// f'(x), of x and y = f(x) in float32.
Array slope(Function1 function, const Array& x, const Array& y) {
  switch (function) {
    case Function1::negate:  // linear: it has a rule of its own
    case Function1::exp:
      return y;
    case Function1::reciprocal:
      return negate(y * y);
    case Function1::log:
      return reciprocal(x);
    case Function1::sqrt:
      return 0.5f * reciprocal(y);
    case Function1::rsqrt:
      return -0.5f * (y * y * y);
    case Function1::tanh:
      return 1.0f - y * y;
    case Function1::erf:
      return kTwoOverSqrtPi * exp(-(x * x));
    case Function1::sigmoid:
      return y * (1.0f - y);
    case Function1::silu:
      return apply_function(Function1::silu_slope, x);
    case Function1::silu_slope: {
      const Array s = sigmoid(x);
      return s * (1.0f - s) * (2.0f + x * (1.0f - 2.0f * s));
    }
    case Function1::gelu_tanh:
      return apply_function(Function1::gelu_tanh_slope, x);
    case Function1::gelu_tanh_slope: {
      const Array square = x * x;
      const Array t = tanh(kSqrtTwoOverPi * (x * (1.0f + kGeluCubic * square)));
      const Array first = kSqrtTwoOverPi * (1.0f + 3.0f * kGeluCubic * square);
      const Array second = (6.0f * kSqrtTwoOverPi * kGeluCubic) * x;
      return (1.0f - t * t) * (first + 0.5f * (x * (second - 2.0f * (t * first * first))));
    }
    case Function1::gelu_erf:
      return apply_function(Function1::gelu_erf_slope, x);
    case Function1::gelu_erf_slope:
      return kInvSqrtTwoPi * (exp(-0.5f * (x * x)) * (2.0f - x * x));
  }
  return y;
}

class ElementFunction final : public Operation {
 public:
  explicit ElementFunction(Function1 function) : function_(function) {}

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
    return function_ != Function1::negate && !reads_output();
  }
  bool vjp_reads_output() const override { return reads_output(); }

 private:
  // Whether the slope is one of y rather than x.
  bool reads_output() const {
    return function_ == Function1::reciprocal || function_ == Function1::exp ||
           function_ == Function1::sqrt || function_ == Function1::rsqrt ||
           function_ == Function1::tanh || function_ == Function1::sigmoid;
  }

  Array times_slope(const Array& direction, const Array& x, const Array& y) const {
    if (function_ == Function1::negate) return negate(direction);
    const Array undefined;
    return direction * slope(function_, reads_output() ? undefined : convert(x, DType::f32),
                             reads_output() ? convert(y, DType::f32) : undefined);
  }

  Function1 function_;
};

Array apply_function(Function1 function, const Array& x) {
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

Array negate(const Array& x) { return apply_function(Function1::negate, x); }
Array reciprocal(const Array& x) { return apply_function(Function1::reciprocal, x); }
Array exp(const Array& x) { return apply_function(Function1::exp, x); }
Array log(const Array& x) { return apply_function(Function1::log, x); }
Array sqrt(const Array& x) { return apply_function(Function1::sqrt, x); }
Array rsqrt(const Array& x) { return apply_function(Function1::rsqrt, x); }
Array tanh(const Array& x) { return apply_function(Function1::tanh, x); }
Array erf(const Array& x) { return apply_function(Function1::erf, x); }
Array sigmoid(const Array& x) { return apply_function(Function1::sigmoid, x); }
Array silu(const Array& x) { return apply_function(Function1::silu, x); }
Array gelu_tanh(const Array& x) { return apply_function(Function1::gelu_tanh, x); }
Array gelu_erf(const Array& x) { return apply_function(Function1::gelu_erf, x); }

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
