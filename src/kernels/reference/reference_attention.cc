// Keys and values in the paged store, and attention over them, in plain loops.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/reference/reference_backend.h"

namespace paceline {
namespace {

template <class T>
T round_to(float value) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return to_bfloat16(value);
  } else if constexpr (std::is_same_v<T, Float16>) {
    return to_float16(value);
  } else {
    return value;
  }
}

template <class T>
T* key_element(const KvStore& store, int64_t block, int64_t head, int64_t d, int64_t offset) {
  return store.keys.row<T>(block) + head * store.keys.stride(1) + d * store.block_size() + offset;
}

template <class T>
T* value_element(const KvStore& store, int64_t block, int64_t head, int64_t offset, int64_t d) {
  const int64_t head_dim = store.values.size(3);
  return store.values.row<T>(block) + head * store.values.stride(1) + offset * head_dim + d;
}

float* scale_of(const Tensor& scales, int64_t block, int64_t head, int64_t offset) {
  return scales.row<float>(block) + head * scales.stride(1) + offset;
}

// What is stored, as a number.
double stored_key(const KvStore& store, int64_t block, int64_t head, int64_t d, int64_t offset) {
  if (store.has_scales()) {
    const Tensor& scales = d < store.values_in_keys ? store.value_scales : store.key_scales;
    return double{*scale_of(scales, block, head, offset)} *
           int{*key_element<int8_t>(store, block, head, d, offset)};
  }
  return with_float_dtype(store.keys.dtype(), [&]<class T>() {
    return double{to_float(*key_element<T>(store, block, head, d, offset))};
  });
}

double stored_value(const KvStore& store, int64_t block, int64_t head, int64_t offset, int64_t d) {
  if (store.values_in_keys > 0) return stored_key(store, block, head, d, offset);
  if (store.has_scales()) {
    return double{*scale_of(store.value_scales, block, head, offset)} *
           int{*value_element<int8_t>(store, block, head, offset, d)};
  }
  return with_float_dtype(store.values.dtype(), [&]<class T>() {
    return double{to_float(*value_element<T>(store, block, head, offset, d))};
  });
}

// The scale of one token's keys or values on one head.
float choose_scale(const float* elements, int64_t head_dim) {
  float largest = 0.0f;
  for (int64_t d = 0; d < head_dim; ++d) {
    if (!std::isfinite(elements[d])) return std::numeric_limits<float>::quiet_NaN();
    largest = std::max(largest, std::abs(elements[d]));
  }
  return largest / 127.0f;
}

int8_t choose_code(float element, float scale) {
  if (!(scale > 0.0f)) return 0;
  return static_cast<int8_t>(std::nearbyint(std::clamp(element / scale, -127.0f, 127.0f)));
}

// One head of one row: its query, where it stands, and the kv head that it reads.
struct Query {
  const float* elements;  // [head_dim]
  int64_t position;
  int64_t kv_head;
  int64_t num_keys;  // of its slice
  std::span<const int32_t> block_table;
  int64_t head;       // of the query
  int64_t first_row;  // of its slice, in the batch
};

// What positions add to the query's score of the key at position `key`.
double position_score(const Query& query, const PositionScores& scores, int64_t key) {
  const auto at = static_cast<size_t>(scores.reach + key - query.position);
  double added = 0.0;
  if (scores.has_distances()) {
    const float* const of_head = scores.by_distance.row<float>(query.head);
    added += double{of_head[scores.by_position ? static_cast<size_t>(key) : at]};
  }
  const auto term = [&](const Tensor& terms, int64_t position) {
    const float* const row = terms.row<float>(query.first_row + position);
    return double{row[query.head * terms.stride(1) + scores.buckets[at]]};
  };
  if (scores.has_query_terms()) added += term(scores.of_queries, query.position);
  if (scores.has_key_terms()) added += term(scores.of_keys, key);
  return added;
}

// The first position that the query sees.
int64_t first_visible(const Query& query, const AttentionParams& params) {
  if (params.chunked) return query.position - query.position % params.window;
  return params.window > 0 ? std::max<int64_t>(0, query.position - params.window + 1) : 0;
}

// The last one.
int64_t last_visible(const Query& query, const AttentionParams& params) {
  if (!params.bidirectional) return query.position;
  const int64_t last = query.num_keys - 1;
  return params.window > 0 ? std::min(last, query.position + params.window - 1) : last;
}

// Returns the log of the sum of exp(score).
double attend(const Query& query, const KvStore& store, const AttentionParams& params, float* out) {
  const int64_t head_dim = store.keys.size(2), block_size = store.block_size();
  const int64_t value_dim = store.value_dim();
  const int64_t first = first_visible(query, params);
  const int64_t last = last_visible(query, params);
  const auto block_of = [&](int64_t p) {
    return query.block_table[static_cast<size_t>(p / block_size)];
  };

  std::vector<double> scores;
  for (int64_t p = first; p <= last; ++p) {
    double dot = 0.0;
    for (int64_t d = 0; d < head_dim; ++d) {
      dot += double{query.elements[d]} *
             stored_key(store, block_of(p), query.kv_head, d, p % block_size);
    }
    if (params.position_scores != nullptr) dot += position_score(query, *params.position_scores, p);
    dot *= double{params.scale};
    const auto cap = double{params.soft_cap};
    scores.push_back(cap > 0.0 ? cap * std::tanh(dot / cap) : dot);
  }

  const double max = *std::max_element(scores.begin(), scores.end());
  double sum = 0.0;
  std::vector<double> mixed(static_cast<size_t>(value_dim));
  for (int64_t p = first; p <= last; ++p) {
    const double weight = std::exp(scores[static_cast<size_t>(p - first)] - max);
    sum += weight;
    for (int64_t d = 0; d < value_dim; ++d) {
      mixed[static_cast<size_t>(d)] +=
          weight * stored_value(store, block_of(p), query.kv_head, p % block_size, d);
    }
  }
  for (int64_t d = 0; d < value_dim; ++d) {
    out[d] = static_cast<float>(mixed[static_cast<size_t>(d)] / sum);
  }
  return std::log(sum) + max;
}

// One head of one row of keys and values, and the slot that they go to.
struct NewSlot {
  const float* key;
  const float* value;  // nullptr: it is in the key
  int64_t block;
  int64_t offset;
  int64_t head;
};

template <class T>
void store_rounded(const NewSlot& slot, const KvStore& store) {
  for (int64_t d = 0; d < store.keys.size(2); ++d) {
    *key_element<T>(store, slot.block, slot.head, d, slot.offset) = round_to<T>(slot.key[d]);
    if (slot.value == nullptr) continue;
    *value_element<T>(store, slot.block, slot.head, slot.offset, d) = round_to<T>(slot.value[d]);
  }
}

void store_codes(const NewSlot& slot, const KvStore& store) {
  const int64_t head_dim = store.keys.size(2), shared = store.values_in_keys;
  const float key_scale = choose_scale(slot.key + shared, head_dim - shared);
  const float value_scale =
      shared > 0 ? choose_scale(slot.key, shared) : choose_scale(slot.value, head_dim);
  *scale_of(store.key_scales, slot.block, slot.head, slot.offset) = key_scale;
  *scale_of(store.value_scales, slot.block, slot.head, slot.offset) = value_scale;
  for (int64_t d = 0; d < head_dim; ++d) {
    *key_element<int8_t>(store, slot.block, slot.head, d, slot.offset) =
        choose_code(slot.key[d], d < shared ? value_scale : key_scale);
    if (shared > 0) continue;
    *value_element<int8_t>(store, slot.block, slot.head, slot.offset, d) =
        choose_code(slot.value[d], value_scale);
  }
}

}  // namespace

void ReferenceBackend::do_store_kv(const Tensor& k, const Tensor& v, Indices<int64_t> slots,
                                   const KvStore& store) {
  const int64_t block_size = store.block_size();
  for (int64_t r = 0; r < k.size(0); ++r) {
    for (int64_t h = 0; h < k.size(1); ++h) {
      const NewSlot slot = {
          .key = k.row<float>(r) + h * k.stride(1),
          .value = store.values_in_keys > 0 ? nullptr : v.row<float>(r) + h * v.stride(1),
          .block = slots.host()[static_cast<size_t>(r)] / block_size,
          .offset = slots.host()[static_cast<size_t>(r)] % block_size,
          .head = h};
      if (store.has_scales()) {
        store_codes(slot, store);
      } else {
        with_float_dtype(store.keys.dtype(), [&]<class T>() { store_rounded<T>(slot, store); });
      }
    }
  }
}

void ReferenceBackend::do_attention(const Tensor& q, const KvStore& store,
                                    const AttentionSlices& slices, const AttentionParams& params,
                                    const Tensor& out, const Tensor* log_sum_exp) {
  const int64_t group = q.size(1) / store.keys.size(1);
  for (const AttentionSlice& slice : slices.host()) {
    for (int64_t i = 0; i < slice.num_rows; ++i) {
      const int64_t row = slice.first_row + i;
      for (int64_t h = 0; h < q.size(1); ++h) {
        const Query query = {q.row<float>(row) + h * q.stride(1),
                             slice.first_position + i,
                             h / group,
                             slice.first_position + slice.num_rows,
                             slice.block_table,
                             h,
                             slice.first_row};
        const double sum = attend(query, store, params, out.row<float>(row) + h * out.stride(1));
        if (log_sum_exp != nullptr) log_sum_exp->row<float>(row)[h] = static_cast<float>(sum);
      }
    }
  }
}

}  // namespace paceline
