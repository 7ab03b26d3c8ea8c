// Operations on each pair of elements of two arrays, and choosing between them by a mask.
#include "autodiff/elementwise.h"
#include "autodiff/lines.h"
#include "autodiff/operation.h"
#include "autodiff/reductions.h"
#include "autodiff/shape_error.h"
#include "autodiff/shapes.h"

namespace paceline::autodiff {
namespace {

enum class BinaryFunction : uint8_t { add, subtract, multiply, divide, maximum, minimum };

template <class Body>
void with_pair_function(BinaryFunction function, Body&& body) {
  switch (function) {
    case BinaryFunction::add:
      return body([](float a, float b) { return a + b; });
    case BinaryFunction::subtract:
      return body([](float a, float b) { return a - b; });
    case BinaryFunction::multiply:
      return body([](float a, float b) { return a * b; });
    case BinaryFunction::divide:
      return body([](float a, float b) { return a / b; });
    case BinaryFunction::maximum:  // NaN if either is
      return body([](float a, float b) { return a > b || a != a ? a : b; });
    case BinaryFunction::minimum:
      return body([](float a, float b) { return a < b || a != a ? a : b; });
  }
}

// out[i] = f(a[i], b[i]) along one line; the strides that occur most have loops of their own.
template <class Out, class F>
void compute_line(F f, const float* a, int64_t a_stride, const float* b, int64_t b_stride, Out* out,
                  int64_t length) {
  if (a_stride == 1 && b_stride == 1) {
    for (int64_t i = 0; i < length; ++i) out[i] = f(a[i], b[i]);
  } else if (a_stride == 1 && b_stride == 0) {
    const float second = *b;
    for (int64_t i = 0; i < length; ++i) out[i] = f(a[i], second);
  } else if (a_stride == 0 && b_stride == 1) {
    const float first = *a;
    for (int64_t i = 0; i < length; ++i) out[i] = f(first, b[i]);
  } else {
    for (int64_t i = 0; i < length; ++i) out[i] = f(a[i * a_stride], b[i * b_stride]);
  }
}

// The array in float32 as a view of `shape`; `storage` holds it.
Tensor broadcast_f32(const Array& array, const Extents& shape, Array& storage) {
  storage = array.dtype() == DType::f32 ? array : as_contiguous_f32(array);
  return storage.tensor().broadcast_to(shape);
}

// A new contiguous array of f of both, in Out.
template <class Out, class F>
Array compute_pairs(std::string_view name, const Array& first, const Array& second, F f) {
  check_float(name, first);
  check_float(name, second);
  const Extents shape = broadcast_shape(name, {first, second});
  Array a_storage, b_storage;
  const Tensor a = broadcast_f32(first, shape, a_storage);
  const Tensor b = broadcast_f32(second, shape, b_storage);
  Array result(first.context(), dtype_of<Out>(), shape);
  const Tensor out = result.writable();
  if (out.empty()) return result;
  const Lines<3> lines({&out, &a, &b});
  for_each_line(first.context(), lines, [&](const auto& offsets, int64_t length) {
    compute_line<Out>(f, a.elements<float>() + offsets[1], lines.strides()[1],
                      b.elements<float>() + offsets[2], lines.strides()[2],
                      out.elements<Out>() + offsets[0], length);
  });
  return result;
}

// The gradient of the larger of both; halves where they are equal.
Array share_of_larger(const Array& direction, const Array& a, const Array& b) {
  const Array zero(direction.context(), direction.dtype(), Extents());
  return where(greater(a, b), direction, where(equal(a, b), 0.5f * direction, zero));
}

class PairFunction final : public Operation {
 public:
  explicit PairFunction(BinaryFunction function) : function_(function) {}

  std::string_view name() const override {
    constexpr std::string_view kNames[] = {"add",    "subtract", "multiply",
                                           "divide", "maximum",  "minimum"};
    return kNames[static_cast<size_t>(function_)];
  }

  Array forward(const Arrays& inputs) const override {
    Array result;
    with_pair_function(
        function_, [&](auto f) { result = compute_pairs<float>(name(), inputs[0], inputs[1], f); });
    return rounded_to(result, common_dtype(inputs));
  }

  Arrays vjp(const Array& cotangent, const Application& at) const override {
    Arrays gradients(2);
    for (size_t i = 0; i < 2; ++i) {
      if (!at.wanted[i]) continue;
      gradients[i] = sum_to(along(i, cotangent, at.inputs), at.inputs[i].shape());
    }
    return gradients;
  }

  Array jvp(const Arrays& tangents, const Arrays& inputs, const Array& output) const override {
    Array sum;
    for (size_t i = 0; i < 2; ++i) {
      if (!tangents[i].is_defined()) continue;
      const Array part = broadcast_to(along(i, tangents[i], inputs), output.shape());
      sum = sum.is_defined() ? add(sum, part) : part;
    }
    return sum;
  }

  bool vjp_reads_input(size_t index, const Wanted& wanted) const override {
    switch (function_) {
      case BinaryFunction::add:
      case BinaryFunction::subtract:
        return false;
      case BinaryFunction::multiply:
        return wanted[1 - index];
      case BinaryFunction::divide:  // a / b: only b's gradient reads a
        return index == 1 || wanted[1];
      default:
        return true;
    }
  }
  bool vjp_reads_output() const override { return false; }

 private:
  // direction times the partial derivative by input i
  Array along(size_t i, const Array& direction, const Arrays& inputs) const {
    const Array &a = inputs[0], &b = inputs[1];
    switch (function_) {
      case BinaryFunction::add:
        return direction;
      case BinaryFunction::subtract:
        return i == 0 ? direction : negate(direction);
      case BinaryFunction::multiply:
        return direction * inputs[1 - i];
      case BinaryFunction::divide:
        return i == 0 ? direction / b : negate(direction * (convert(a, DType::f32) / b) / b);
      case BinaryFunction::maximum:
        return share_of_larger(direction, inputs[i], inputs[1 - i]);
      case BinaryFunction::minimum:
        return share_of_larger(direction, inputs[1 - i], inputs[i]);
    }
    return direction;
  }

  BinaryFunction function_;
};

Array apply_pairs(BinaryFunction function, const Array& a, const Array& b) {
  return apply_new<PairFunction>({a, b}, function);
}

void check_mask(std::string_view name, const Array& mask) {
  if (mask.dtype() == DType::i8) return;
  throw Error(ErrorCode::invalid, std::string(name) + ": mask of " +
                                      std::string(dtype_name(mask.dtype())) + " " +
                                      to_string(mask.shape()) + ": expected int8");
}

class Where final : public Operation {
 public:
  explicit Where(Array mask) : mask_(std::move(mask)) {}

  std::string_view name() const override { return "where"; }

  Array forward(const Arrays& inputs) const override {
    check_float(name(), inputs[0]);
    check_float(name(), inputs[1]);
    const Extents shape = broadcast_shape(name(), {mask_, inputs[0], inputs[1]});
    Array a_storage, b_storage;
    const Tensor a = broadcast_f32(inputs[0], shape, a_storage);
    const Tensor b = broadcast_f32(inputs[1], shape, b_storage);
    const Tensor mask = mask_.tensor().broadcast_to(shape);
    Array result(inputs[0].context(), DType::f32, shape);
    const Tensor out = result.writable();
    if (out.empty()) return rounded_to(result, common_dtype(inputs));
    const Lines<4> lines({&out, &a, &b, &mask});
    const auto& strides = lines.strides();
    for_each_line(inputs[0].context(), lines, [&](const auto& offsets, int64_t length) {
      float* to = out.elements<float>() + offsets[0];
      const float* first = a.elements<float>() + offsets[1];
      const float* second = b.elements<float>() + offsets[2];
      const int8_t* chosen = mask.elements<int8_t>() + offsets[3];
      for (int64_t i = 0; i < length; ++i) {
        to[i * strides[0]] =
            chosen[i * strides[3]] != 0 ? first[i * strides[1]] : second[i * strides[2]];
      }
    });
    return rounded_to(result, common_dtype(inputs));
  }

  Arrays vjp(const Array& cotangent, const Application& at) const override {
    const Array zero(cotangent.context(), cotangent.dtype(), Extents());
    Arrays gradients(2);
    if (at.wanted[0]) {
      gradients[0] = sum_to(where(mask_, cotangent, zero), at.inputs[0].shape());
    }
    if (at.wanted[1]) {
      gradients[1] = sum_to(where(mask_, zero, cotangent), at.inputs[1].shape());
    }
    return gradients;
  }
  Array jvp(const Arrays& tangents, const Arrays&, const Array& output) const override {
    const Array zero(output.context(), output.dtype(), Extents());
    const auto or_zero = [&](const Array& x) { return x.is_defined() ? x : zero; };
    return broadcast_to(where(mask_, or_zero(tangents[0]), or_zero(tangents[1])), output.shape());
  }
  bool vjp_reads_input(size_t, const Wanted&) const override { return false; }
  bool vjp_reads_output() const override { return false; }

 private:
  Array mask_;
};

}  // namespace

Array add(const Array& a, const Array& b) { return apply_pairs(BinaryFunction::add, a, b); }
Array subtract(const Array& a, const Array& b) {
  return apply_pairs(BinaryFunction::subtract, a, b);
}
Array multiply(const Array& a, const Array& b) {
  return apply_pairs(BinaryFunction::multiply, a, b);
}
Array divide(const Array& a, const Array& b) { return apply_pairs(BinaryFunction::divide, a, b); }
Array maximum(const Array& a, const Array& b) { return apply_pairs(BinaryFunction::maximum, a, b); }
Array minimum(const Array& a, const Array& b) { return apply_pairs(BinaryFunction::minimum, a, b); }

Array where(const Array& mask, const Array& a, const Array& b) {
  check_mask("where", mask);
  return apply_new<Where>({a, b}, mask);
}

Array equal(const Array& a, const Array& b) {
  return compute_pairs<int8_t>("equal", stop_gradient(a), stop_gradient(b),
                               [](float x, float y) { return static_cast<int8_t>(x == y); });
}

Array greater(const Array& a, const Array& b) {
  return compute_pairs<int8_t>("greater", stop_gradient(a), stop_gradient(b),
                               [](float x, float y) { return static_cast<int8_t>(x > y); });
}

}  // namespace paceline::autodiff
