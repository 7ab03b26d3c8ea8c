#include "paceline/array.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "arrays/array_state.h"
#include "autodiff/elementwise.h"
#include "autodiff/new_arrays.h"
#include "autodiff/shape_error.h"
#include "autodiff/shapes.h"
#include "base/error.h"

namespace paceline::arrays {
namespace {

template <class T>
bool has_elements_of(paceline::DType dtype) {
  if constexpr (std::is_same_v<T, float>) return dtype == paceline::DType::f32;
  if constexpr (std::is_same_v<T, int32_t>) return dtype == paceline::DType::i32;
  if constexpr (std::is_same_v<T, int8_t>) return dtype == paceline::DType::i8;
  return dtype == paceline::DType::f16 || dtype == paceline::DType::bf16;  // their bits
}

template <class T>
constexpr std::string_view kElementName = "uint16_t";
template <>
constexpr std::string_view kElementName<float> = "float";
template <>
constexpr std::string_view kElementName<int32_t> = "int32_t";
template <>
constexpr std::string_view kElementName<int8_t> = "int8_t";

template <class T>
void check_elements(std::string_view operation, const Tensor& tensor) {
  if (has_elements_of<T>(tensor.dtype())) return;
  throw error_of(ErrorCode::invalid,
                 "{}: {} {} read as {}: expected float for float32, uint16_t for 16-bit floats "
                 "where they lie, int32_t for int32, int8_t for masks",
                 operation, dtype_name(tensor.dtype()), to_string(tensor.shape()), kElementName<T>);
}

// The values without traces: what is read, not followed.
autodiff::Array constant(std::string_view operation, const Array& array) {
  return autodiff::stop_gradient(inner(operation, array));
}

}  // namespace

Array::Array(std::span<const float> values, const Shape& shape, DType dtype)
    : Array(std::make_shared<State>(State{autodiff::from_values(
          array_context(), values, checked_shape("Array", shape), inner_float("Array", dtype))})) {}

Array::Array(std::shared_ptr<State> state) : state_(std::move(state)) {}

DType Array::dtype() const { return outer_dtype(inner("dtype", *this).dtype()); }
Shape Array::shape() const { return to_shape(inner("shape", *this).shape()); }
std::vector<int64_t> Array::strides() const {
  return to_shape(inner("strides", *this).tensor().strides());
}
int Array::rank() const { return inner("rank", *this).rank(); }

int64_t Array::size(int dimension) const {
  const autodiff::Array& array = inner("size", *this);
  return array.size(autodiff::checked_axis("size", array, dimension));
}

int64_t Array::num_elements() const { return inner("num_elements", *this).num_elements(); }

bool Array::is_contiguous() const { return inner("is_contiguous", *this).tensor().is_contiguous(); }

Array Array::contiguous() const {
  const autodiff::Array& array = inner("contiguous", *this);
  return array.tensor().is_contiguous() ? *this : wrapped(autodiff::make_contiguous(array));
}

template <class T>
std::span<const T> Array::data() const& {
  const Tensor& tensor = inner("data", *this).tensor();
  check_elements<T>("data", tensor);
  if (!tensor.is_contiguous()) {
    throw error_of(ErrorCode::invalid,
                   "data: {} with strides of {}: expected a contiguous array; contiguous() makes "
                   "one",
                   to_string(tensor.shape()), to_string(tensor.strides()));
  }
  return {static_cast<const T*>(tensor.raw()), static_cast<size_t>(tensor.num_elements())};
}

template std::span<const float> Array::data<float>() const&;
template std::span<const uint16_t> Array::data<uint16_t>() const&;
template std::span<const int32_t> Array::data<int32_t>() const&;
template std::span<const int8_t> Array::data<int8_t>() const&;

template <class T>
Elements<T> Array::elements() const {
  autodiff::Array array = constant("elements", *this);
  if constexpr (std::is_same_v<T, float>) {
    if (is_float(array.dtype()) && array.dtype() != paceline::DType::f32) {
      array = autodiff::as_contiguous_f32(array);
    }
  }
  const Tensor& tensor = array.tensor();
  check_elements<T>("elements", tensor);
  Elements<T> range;
  range.first_ = static_cast<const T*>(tensor.raw());
  range.count_ = tensor.num_elements();
  range.rank_ = static_cast<size_t>(tensor.rank());
  std::ranges::copy(tensor.shape(), range.sizes_.begin());
  std::ranges::copy(tensor.strides(), range.strides_.begin());
  range.owner_ = wrapped(std::move(array));
  return range;
}

template Elements<float> Array::elements<float>() const;
template Elements<int32_t> Array::elements<int32_t>() const;
template Elements<int8_t> Array::elements<int8_t>() const;

template <class T>
std::vector<T> Array::to_vector() const {
  const Elements<T> range = elements<T>();
  std::vector<T> values;
  values.reserve(static_cast<size_t>(range.size()));
  for (const T value : range) values.push_back(value);
  return values;
}

template std::vector<float> Array::to_vector<float>() const;
template std::vector<int32_t> Array::to_vector<int32_t>() const;
template std::vector<int8_t> Array::to_vector<int8_t>() const;

float Array::item() const {
  const autodiff::Array array = constant("item", *this);
  if (array.num_elements() != 1) autodiff::throw_shapes("item", {array}, "a single element");
  autodiff::check_float("item", array);
  return autodiff::to_scalar(array);
}

Array Array::operator[](int64_t index) const {
  const autodiff::Array& array = inner("row", *this);
  const int64_t num_rows = array.rank() == 0 ? 0 : array.size(0);
  const int64_t row = index < 0 ? index + num_rows : index;
  if (row < 0 || row >= num_rows) {
    throw error_of(ErrorCode::invalid, "row {} of {}: expected one of its {} rows", index,
                   to_string(array.shape()), num_rows);
  }
  return wrapped(autodiff::select(array, 0, row));
}

Array::RowIterator Array::begin() const {
  const autodiff::Array& array = inner("rows", *this);
  if (array.rank() == 0) autodiff::throw_shapes("rows", {array}, "at least one dimension");
  return {this, 0};
}

Array::RowIterator Array::end() const { return {this, size(0)}; }

Array& Array::operator+=(const Array& other) { return *this = *this + other; }
Array& Array::operator-=(const Array& other) { return *this = *this - other; }
Array& Array::operator*=(const Array& other) { return *this = *this * other; }
Array& Array::operator/=(const Array& other) { return *this = *this / other; }

void set_num_threads(int num_threads) { array_pool().set_num_threads(num_threads); }

}  // namespace paceline::arrays
