// Array: a tensor that never changes, with operations whose derivatives paceline/grad.h takes.
//
// Errors are thrown as Error: invalid, with the operation and the shapes found and expected, for
// arguments that don't fit, and for an empty Array where elements are needed; exhausted where there
// is no memory. A call that throws has changed nothing.
//
// Any thread may call anything here with any arrays, also with one array in several threads: only
// the Array object itself, as any variable, is assigned by one thread at a time. Results don't
// depend on the number of threads. Exempt are the arrays that a vjp hands to its function: they
// belong to the thread that called it until it returns (Error invalid).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "paceline/error.h"

namespace paceline::arrays {

// Integers and masks choose and count; they have no derivative. The number of bytes of an element:
// 4, 2, 2, 4, 1 (a mask's are 0 or 1).
enum class DType : uint8_t { float32, float16, bfloat16, int32, mask };

// The sizes of up to kMaxDimensions dimensions; none: a single element.
using Shape = std::vector<int64_t>;
constexpr size_t kMaxDimensions = 6;

template <class T>
class Elements;

// Copies share elements, and so do views: rows, slices, transposes, broadcasts, reshapes of
// contiguous arrays. Default-constructed it is empty: it has no shape and no elements, and stands
// for zero where tangents and cotangents are given, and for "none" where an argument is optional.
class Array {
 public:
  Array() = default;
  // Values in row-major order, rounded to a float dtype.
  Array(std::span<const float> values, const Shape& shape, DType dtype = DType::float32);
  Array(std::initializer_list<float> values, const Shape& shape, DType dtype = DType::float32)
      : Array(std::span<const float>(values.begin(), values.size()), shape, dtype) {}

  bool is_empty() const { return state_ == nullptr; }
  DType dtype() const;
  Shape shape() const;
  // How many elements apart neighbours along each dimension are in memory: 0 where a view
  // broadcasts, negative where it runs backwards.
  std::vector<int64_t> strides() const;
  int rank() const;
  int64_t size(int dimension) const;  // negative ones count from the last
  int64_t num_elements() const;

  // Whether the elements lie in row-major order without gaps; the array itself if so, else a copy.
  bool is_contiguous() const;
  Array contiguous() const;

  // The elements where they are: float for float32, uint16_t for the bits of 16-bit floats, int32_t
  // for integers, int8_t for masks. Valid while an array shares them. Errors: also of an array that
  // isn't contiguous.
  template <class T>
  std::span<const T> data() const&;
  template <class T>
  std::span<const T> data() const&& = delete;  // of a temporary: its elements are about to go

  // The elements in row-major order, whatever the strides: float for all float dtypes, int32_t for
  // integers, int8_t for masks. The range shares them, so that it may outlive the array:
  //   for (float x : array.elements()) ...
  template <class T = float>
  Elements<T> elements() const;
  // A copy of them.
  template <class T = float>
  std::vector<T> to_vector() const;
  // The only element, of any float dtype.
  float item() const;

  // Row `index` of the first dimension, a view without it; negative ones count from the last.
  Array operator[](int64_t index) const;
  // All rows: for (const Array& row : array) ...
  class RowIterator;
  RowIterator begin() const;
  RowIterator end() const;

  Array& operator+=(const Array& other);
  Array& operator-=(const Array& other);
  Array& operator*=(const Array& other);
  Array& operator/=(const Array& other);

  struct State;  // the implementation, not part of the API
  explicit Array(std::shared_ptr<State> state);
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

// Arrays by name, such as the weights of a net and what a safetensors file holds.
using NamedArrays = std::map<std::string, Array>;

class Array::RowIterator {
 public:
  using value_type = Array;
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::input_iterator_tag;

  RowIterator() = default;
  Array operator*() const { return (*array_)[index_]; }
  RowIterator& operator++() {
    ++index_;
    return *this;
  }
  RowIterator operator++(int) {
    RowIterator before = *this;
    ++index_;
    return before;
  }
  bool operator==(const RowIterator& other) const { return index_ == other.index_; }

 private:
  friend class Array;
  RowIterator(const Array* array, int64_t index) : array_(array), index_(index) {}

  const Array* array_ = nullptr;
  int64_t index_ = 0;
};

// What Array::elements() returns.
template <class T>
class Elements {
 public:
  class Iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;

    Iterator() = default;
    T operator*() const { return range_->first_[offset_]; }
    Iterator& operator++() {
      --left_;
      for (size_t d = range_->rank_; d-- > 0;) {
        offset_ += range_->strides_[d];
        if (++index_[d] < range_->sizes_[d]) break;
        offset_ -= index_[d] * range_->strides_[d];
        index_[d] = 0;
      }
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator& other) const { return left_ == other.left_; }
    bool operator==(std::default_sentinel_t) const { return left_ == 0; }

   private:
    friend class Elements;
    explicit Iterator(const Elements* range) : range_(range), left_(range->count_) {}

    const Elements* range_ = nullptr;
    int64_t offset_ = 0;  // from the first element
    int64_t left_ = 0;
    std::array<int64_t, kMaxDimensions> index_{};
  };

  Iterator begin() const { return Iterator(this); }
  std::default_sentinel_t end() const { return {}; }
  int64_t size() const { return count_; }

 private:
  friend class Array;
  Array owner_;
  const T* first_ = nullptr;
  int64_t count_ = 0;
  size_t rank_ = 0;
  std::array<int64_t, kMaxDimensions> sizes_{};
  std::array<int64_t, kMaxDimensions> strides_{};
};

// The threads that compute large operations, for the whole process: at first, and with 0, one per
// usable core. While one caller has them, others compute alone.
void set_num_threads(int num_threads);

// New arrays. zeros and ones are of any dtype.
Array zeros(const Shape& shape, DType dtype = DType::float32);
Array ones(const Shape& shape, DType dtype = DType::float32);
Array full(const Shape& shape, float value, DType dtype = DType::float32);
Array integers(std::span<const int32_t> values, const Shape& shape);
Array integers(std::initializer_list<int32_t> values, const Shape& shape);
// 1 where a value isn't 0.
Array mask(std::span<const uint8_t> values, const Shape& shape);
Array mask(std::initializer_list<uint8_t> values, const Shape& shape);

// Random arrays are a function of their key alone (Philox 4x32-10, Salmon et al., SC 2011): the
// same on every machine. An array of n elements uses the counters from `counter` to before counter
// + (n + 3) / 4, categorical one counter a row; key.after(array) is the key behind them.
struct RandomKey {
  uint64_t seed = 0;
  uint64_t counter = 0;

  RandomKey after(const Array& drawn) const;
};
// In [low, high), 24 bits. Errors: also unless low < high and both are finite.
Array uniform(const Shape& shape, RandomKey key, float low = 0.0f, float high = 1.0f,
              DType dtype = DType::float32);
Array normal(const Shape& shape, RandomKey key, float mean = 0.0f, float deviation = 1.0f,
             DType dtype = DType::float32);
// Normal with mean 0 and deviation gain / sqrt(fan_in), the product of all sizes but the first (He
// et al., arXiv 1502.01852).
Array kaiming_normal(const Shape& shape, RandomKey key, float gain = 1.41421356f,
                     DType dtype = DType::float32);
// An index of each row, drawn by softmax(logits).  logits [rows, classes]; int32 [rows]. Errors:
// also numerical, for a row without a finite maximum.
Array categorical(const Array& logits, RandomKey key);

// Operations compute in float32 and round once; a result has the dtype of the inputs, or float32 if
// these differ. Those of several arrays broadcast by numpy's rules.
Array add(const Array& a, const Array& b);
Array subtract(const Array& a, const Array& b);
Array multiply(const Array& a, const Array& b);
Array divide(const Array& a, const Array& b);
// Where both are equal, each takes half of the gradient. NaN if either is.
Array maximum(const Array& a, const Array& b);
Array minimum(const Array& a, const Array& b);
// Masks of the values, without derivative.
Array equal(const Array& a, const Array& b);
Array greater(const Array& a, const Array& b);
// a where the mask isn't 0, else b.
Array where(const Array& mask, const Array& a, const Array& b);

Array negate(const Array& x);
Array reciprocal(const Array& x);
Array exp(const Array& x);
Array log(const Array& x);
Array sqrt(const Array& x);
Array rsqrt(const Array& x);  // 1 / sqrt(x)
Array tanh(const Array& x);
Array erf(const Array& x);
Array sigmoid(const Array& x);
Array silu(const Array& x);       // x sigmoid(x)
Array gelu_tanh(const Array& x);  // x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
Array gelu_erf(const Array& x);   // x / 2 (1 + erf(x / sqrt(2)))
// To another float dtype, ties to even. Gradients pass straight through.
Array convert(const Array& x, DType dtype);
// The same values as a constant of all transformations.
Array stop_gradient(const Array& x);

Array operator+(const Array& a, const Array& b);
Array operator-(const Array& a, const Array& b);
Array operator*(const Array& a, const Array& b);
Array operator/(const Array& a, const Array& b);
Array operator-(const Array& x);
// With a number the result has the array's dtype.
Array operator+(const Array& x, float term);
Array operator+(float term, const Array& x);
Array operator-(const Array& x, float term);
Array operator-(float term, const Array& x);
Array operator*(const Array& x, float factor);
Array operator*(float factor, const Array& x);
Array operator/(const Array& x, float divisor);
Array operator/(float numerator, const Array& x);

// a [..., m, k] times b [..., k, n]; the dimensions in front broadcast. Sums are in float32 in an
// order that the shapes alone decide.
Array matmul(const Array& a, const Array& b);

// Along axes, or all of them without one; negative axes count from the last. Reduced axes are
// dropped, or kept with size 1. Elements equal to the maximum share its gradient evenly.
enum class Reduced : bool { dropped, kept };
Array sum(const Array& x, const std::vector<int>& axes = {}, Reduced reduced = Reduced::dropped);
Array mean(const Array& x, const std::vector<int>& axes = {}, Reduced reduced = Reduced::dropped);
Array max(const Array& x, const std::vector<int>& axes = {}, Reduced reduced = Reduced::dropped);
// The transpose of broadcasting `shape` to the shape of x.
Array sum_to(const Array& x, const Shape& shape);

// Of any dtype, views where strides can say it. One size of a reshape may be -1: what is left.
Array reshape(const Array& x, const Shape& shape);
// Dimension i of the result is dimension axes[i] of x.
Array permute(const Array& x, const std::vector<int>& axes);
Array transpose(const Array& x, int first = -2, int second = -1);
Array broadcast_to(const Array& x, const Shape& shape);
// Elements begin, begin + step, ... of an axis, before `end`; without an end as far as the axis
// goes, with a negative step backwards to its first element. Errors: also for an element outside.
struct Range {
  int axis = 0;
  int64_t begin = 0;
  std::optional<int64_t> end{};
  int64_t step = 1;
};
Array slice(const Array& x, const Range& range);
// The transpose of slice: zeros of `size` along the axis, with x where the range lies.
Array place(const Array& x, const Range& range, int64_t size);
// Float arrays behind each other along an axis; their other sizes are equal.
Array concatenate(std::span<const Array> arrays, int axis = 0);
Array concatenate(std::initializer_list<Array> arrays, int axis = 0);

// By integers, each within the size that it indexes. What goes to one place is summed in the order
// of the indices.
// The axis of x is replaced by the dimensions of the indices (numpy.take).
Array gather(const Array& x, const Array& indices, int axis = 0);
// The transpose of gather: zeros of `size` along the axis, with updates added where gather reads.
Array scatter(const Array& updates, const Array& indices, int axis, int64_t size);
// x with updates added where gather would read them.
Array scatter_add(const Array& x, const Array& indices, const Array& updates, int axis = 0);
// table [vocab, width], ids [...]; [..., width]
Array embedding(const Array& table, const Array& ids);
// One element of each row.  x [..., width], indices [...]; [...]
Array take_from_rows(const Array& x, const Array& indices);
// x with one update added to each row.  updates [...]
Array add_to_rows(const Array& x, const Array& indices, const Array& updates);

// Of rows along an axis.
Array softmax(const Array& x, int axis = -1);
// log(sum(exp(x))) of the last axis, without overflow.  [..., width]; [...]
Array log_sum_exp(const Array& x);
// x / sqrt(mean(x^2) + eps) * weight.  x [..., width], weight [width]
Array rms_norm(const Array& x, const Array& weight, float eps = 1e-6f);
// (x - mean(x)) / sqrt(var(x) + eps) * weight + bias, the variance over width
Array layer_norm(const Array& x, const Array& weight, const Array& bias, float eps = 1e-5f);

// {cos, sin}(positions[r] inv_freq[i]) scale, without derivative.  positions [rows] int32, inv_freq
// [half]; [rows, half, 2]
Array rope_table(const Array& positions, const Array& inv_freq, float scale = 1.0f);
// Rotates (x[.., r, h, i], x[.., r, h, i + half]) by table[r, i] (Su et al., arXiv 2104.09864, the
// halves as rotate_half of HF transformers).  x [..., rows, heads, head_dim]
Array rope(const Array& x, const Array& table);

struct AttentionOptions {
  float scale = 1.0f;     // multiplies q.k
  float soft_cap = 0.0f;  // > 0: scores become cap tanh(score / cap)
  int64_t window = 0;     // > 0: position p sees (p - window, p]; 0: all of [0, p]
};
// Causal attention by its definition: every score is kept. The last query stands at the last key's
// position; neighbouring query heads share a key head.  q [..., queries, heads, head_dim], k [...,
// keys, kv_heads, head_dim], v [..., keys, kv_heads, value_dim]; [..., queries, heads, value_dim];
// at most one dimension in front
Array attention(const Array& q, const Array& k, const Array& v,
                const AttentionOptions& options = {});

// Losses, computed in float32.
// log_sum_exp(logits) - logits[target] of each position.  logits [..., vocab], targets [...] int32
Array token_losses(const Array& logits, const Array& targets);
// Their mean over all positions, or over those whose mask isn't 0: others count for nothing, even
// where their loss isn't finite. Errors: also if no position counts.
Array cross_entropy(const Array& logits, const Array& targets, const Array& mask = {});
// The same with logits = hidden weight^T, of which chunk_rows rows exist at a time. A gradient of
// its gradient is refused (Error unsupported).  hidden [rows, width], weight [vocab, width]
Array chunked_cross_entropy(const Array& hidden, const Array& weight, const Array& targets,
                            const Array& mask = {}, int64_t chunk_rows = 256);
// The mean of (a - b)^2.  a and b of one shape
Array mse(const Array& a, const Array& b);

// A file in the format of safetensors, which appears under its name when it is complete and
// replaces another one of that name. Masks are written as I8. Errors: also for a name that isn't
// UTF-8 or is "__metadata__", an empty array, and a path that can't be written.
void save_safetensors(const std::filesystem::path& path, const NamedArrays& arrays);
// All tensors of such a file. Errors: not_found, corrupt (which part, and what contradicts what),
// unsupported for dtypes other than F32, F16, BF16, I32, and I8 of zeros and ones.
NamedArrays load_safetensors(const std::filesystem::path& path);

}  // namespace paceline::arrays
