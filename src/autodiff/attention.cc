#include "autodiff/attention.h"

#include <limits>

#include "autodiff/elementwise.h"
#include "autodiff/matmul.h"
#include "autodiff/new_arrays.h"
#include "autodiff/normalisation.h"
#include "autodiff/shape_error.h"
#include "autodiff/shapes.h"

namespace paceline::autodiff {
namespace {

// 1 where a query sees a key.  [queries, keys]
Array visible(const Context& context, int64_t num_queries, int64_t num_keys, int64_t window) {
  Array mask(context, DType::i8, {num_queries, num_keys});
  int8_t* elements = mask.writable().elements<int8_t>();
  for (int64_t i = 0; i < num_queries; ++i) {
    const int64_t position = num_keys - num_queries + i;
    for (int64_t key = 0; key <= position; ++key) {
      const bool is_seen = window <= 0 || key > position - window;
      elements[i * num_keys + key] = static_cast<int8_t>(is_seen);
    }
  }
  return mask;
}

void check_attention(const Array& q, const Array& k, const Array& v) {
  const Arrays all = {q, k, v};
  for (const Array& array : all) check_float("attention", array);
  bool fits = q.rank() == 3 || q.rank() == 4;
  fits = fits && k.rank() == q.rank() && v.rank() == q.rank();
  fits = fits && q.size(-1) == k.size(-1) && k.size(-2) == v.size(-2) && k.size(-3) == v.size(-3);
  fits = fits && q.num_elements() > 0 && k.num_elements() > 0 && v.num_elements() > 0;
  fits = fits && q.size(-2) % k.size(-2) == 0 && q.size(-3) <= k.size(-3);
  fits = fits && (q.rank() == 3 || (q.size(0) == k.size(0) && q.size(0) == v.size(0)));
  if (fits) return;
  throw_shapes("attention", all,
               "q [..., queries, heads, head_dim], k [..., keys, kv heads, head_dim] and v [..., "
               "keys, kv heads, value_dim], with at least as many keys as queries and heads a "
               "multiple of kv heads");
}

}  // namespace

Array attention(const Array& q, const Array& k, const Array& v, const AttentionOptions& options) {
  check_attention(q, k, v);
  const int64_t batch = q.rank() == 4 ? q.size(0) : 1;
  const int64_t num_queries = q.size(-3), num_keys = k.size(-3);
  const int64_t kv_heads = k.size(-2), group = q.size(-2) / kv_heads;
  const auto by_head = [&](const Array& x, int64_t rows, int64_t heads) {
    const Array split = reshape(convert(x, DType::f32), {batch, rows, kv_heads, heads, x.size(-1)});
    return permute(split, {0, 2, 3, 1, 4});  // [batch, kv_heads, heads, rows, dim]
  };
  Array scores =
      scale(matmul(by_head(q, num_queries, group), transpose(by_head(k, num_keys, 1), -2, -1)),
            options.scale);  // [batch, kv_heads, group, queries, keys]
  if (options.soft_cap > 0.0f) {
    scores = options.soft_cap * tanh(scale(scores, 1.0f / options.soft_cap));
  }
  const Array mask = visible(q.context(), num_queries, num_keys, options.window);
  const float minus_infinity = -std::numeric_limits<float>::infinity();
  const Array unseen = from_values(q.context(), {&minus_infinity, 1}, {});
  const Array weights = softmax(where(mask, scores, unseen));
  const Array mixed = matmul(weights, by_head(v, num_keys, 1));  // [batch, kv_heads, group, q, dim]
  Extents shape = q.shape();
  shape[q.rank() - 1] = v.size(-1);
  return convert(reshape(permute(mixed, {0, 3, 1, 2, 4}), shape), common_dtype({q, k, v}));
}

}  // namespace paceline::autodiff
