#include "arrays/array_state.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "autodiff/shape_error.h"
#include "base/error.h"

namespace paceline::arrays {
namespace {

struct Home {
  Memory memory;
  autodiff::SharedPool pool;
  autodiff::Context context{.memory = memory, .shared_pool = &pool};
};

// Arrays of the program's static storage outlive everything that is destroyed at its end.
Home& home() {
  static Home* const kept = new Home;
  return *kept;
}

Extents to_extents(std::string_view operation, const Shape& shape, int64_t least) {
  if (shape.size() > kMaxDimensions) {
    throw error_of(ErrorCode::invalid, "{}: a shape of {} dimensions: expected at most {}",
                   operation, shape.size(), kMaxDimensions);
  }
  const Extents extents{std::span<const int64_t>(shape)};
  if (std::ranges::any_of(shape, [&](int64_t size) { return size < least; })) {
    throw error_of(ErrorCode::invalid, "{}: a shape of {}: expected no negative sizes", operation,
                   to_string(extents));
  }
  return extents;
}

struct DTypeName {
  DType outer;
  paceline::DType inner;
};
constexpr DTypeName kDTypes[] = {{DType::float32, paceline::DType::f32},
                                 {DType::float16, paceline::DType::f16},
                                 {DType::bfloat16, paceline::DType::bf16},
                                 {DType::int32, paceline::DType::i32},
                                 {DType::mask, paceline::DType::i8}};

}  // namespace

static_assert(kMaxDimensions == kMaxRank);

const autodiff::Context& array_context() { return home().context; }
autodiff::SharedPool& array_pool() { return home().pool; }

const autodiff::Array& inner(std::string_view operation, const Array& array) {
  if (array.is_empty()) {
    throw error_of(ErrorCode::invalid, "{}: an empty array: expected one with elements", operation);
  }
  return array.state()->array;
}

autodiff::Arrays inner(std::string_view operation, std::span<const Array> arrays) {
  autodiff::Arrays all;
  all.reserve(arrays.size());
  for (const Array& array : arrays) all.push_back(inner(operation, array));
  return all;
}

autodiff::Array inner_or_undefined(const Array& array) {
  return array.is_empty() ? autodiff::Array() : array.state()->array;
}

Array wrapped(autodiff::Array array) {
  return Array(std::make_shared<Array::State>(Array::State{std::move(array)}));
}

std::vector<Array> wrapped(const autodiff::Arrays& arrays) {
  std::vector<Array> all;
  all.reserve(arrays.size());
  for (const autodiff::Array& array : arrays) all.push_back(wrapped(array));
  return all;
}

Extents checked_shape(std::string_view operation, const Shape& shape) {
  const Extents extents = to_extents(operation, shape, 0);
  autodiff::check_num_elements(operation, extents);
  return extents;
}

Extents open_shape(std::string_view operation, const Shape& shape) {
  return to_extents(operation, shape, -1);
}

Shape to_shape(const Extents& extents) { return {extents.begin(), extents.end()}; }

paceline::DType inner_dtype(std::string_view operation, DType dtype) {
  const auto* const found = std::ranges::find(kDTypes, dtype, &DTypeName::outer);
  if (found != std::end(kDTypes)) return found->inner;
  throw error_of(ErrorCode::invalid, "{}: dtype {}: expected one of the enum's", operation,
                 static_cast<int>(dtype));
}

paceline::DType inner_float(std::string_view operation, DType dtype) {
  const paceline::DType found = inner_dtype(operation, dtype);
  if (is_float(found)) return found;
  throw error_of(ErrorCode::invalid, "{}: {}: expected float32, float16 or bfloat16", operation,
                 dtype_name(found));
}

DType outer_dtype(paceline::DType dtype) {
  const auto* const found = std::ranges::find(kDTypes, dtype, &DTypeName::inner);
  PL_CHECK(found != std::end(kDTypes), "arrays have five dtypes");
  return found->outer;
}

}  // namespace paceline::arrays
