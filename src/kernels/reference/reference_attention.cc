// Keys and values in the paged store, and attention over them, in plain loops.
#include <algorithm>
#include <cmath>
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

// One head of one row: its query, where it stands, and the kv head that it reads.
struct Query {
  const float* elements;  // [head_dim]
  int64_t position;
  int64_t kv_head;
  std::span<const int32_t> block_table;
};

template <class T>
void attend(const Query& query, const KvStore& store, const AttentionParams& params, float* out) {
  const int64_t head_dim = store.values.size(3), block_size = store.block_size();
  const int64_t first =
      params.window > 0 ? std::max<int64_t>(0, query.position - params.window + 1) : 0;
  const auto block_of = [&](int64_t p) {
    return query.block_table[static_cast<size_t>(p / block_size)];
  };

  std::vector<double> scores;
  for (int64_t p = first; p <= query.position; ++p) {
    double dot = 0.0;
    for (int64_t d = 0; d < head_dim; ++d) {
      const T* key = key_element<T>(store, block_of(p), query.kv_head, d, p % block_size);
      dot += double{query.elements[d]} * double{to_float(*key)};
    }
    dot *= double{params.scale};
    const auto cap = double{params.soft_cap};
    scores.push_back(cap > 0.0 ? cap * std::tanh(dot / cap) : dot);
  }

  const double max = *std::max_element(scores.begin(), scores.end());
  double sum = 0.0;
  std::vector<double> mixed(static_cast<size_t>(head_dim));
  for (int64_t p = first; p <= query.position; ++p) {
    const double weight = std::exp(scores[static_cast<size_t>(p - first)] - max);
    sum += weight;
    for (int64_t d = 0; d < head_dim; ++d) {
      const T* value = value_element<T>(store, block_of(p), query.kv_head, p % block_size, d);
      mixed[static_cast<size_t>(d)] += weight * double{to_float(*value)};
    }
  }
  for (int64_t d = 0; d < head_dim; ++d) {
    out[d] = static_cast<float>(mixed[static_cast<size_t>(d)] / sum);
  }
}

}  // namespace

void ReferenceBackend::do_store_kv(const Tensor& k, const Tensor& v, std::span<const int64_t> slots,
                                   const KvStore& store) {
  const int64_t block_size = store.block_size();
  with_float_dtype(store.keys.dtype(), [&]<class T>() {
    for (int64_t r = 0; r < k.size(0); ++r) {
      const int64_t block = slots[static_cast<size_t>(r)] / block_size;
      const int64_t offset = slots[static_cast<size_t>(r)] % block_size;
      for (int64_t h = 0; h < k.size(1); ++h) {
        for (int64_t d = 0; d < k.size(2); ++d) {
          const float key = k.row<float>(r)[h * k.stride(1) + d];
          const float value = v.row<float>(r)[h * v.stride(1) + d];
          *key_element<T>(store, block, h, d, offset) = round_to<T>(key);
          *value_element<T>(store, block, h, offset, d) = round_to<T>(value);
        }
      }
    }
  });
}

void ReferenceBackend::do_attention(const Tensor& q, const KvStore& store,
                                    std::span<const AttentionSlice> slices,
                                    const AttentionParams& params, const Tensor& out) {
  const int64_t group = q.size(1) / store.keys.size(1);
  with_float_dtype(store.keys.dtype(), [&]<class T>() {
    for (const AttentionSlice& slice : slices) {
      for (int64_t i = 0; i < slice.num_rows; ++i) {
        const int64_t row = slice.first_row + i;
        for (int64_t h = 0; h < q.size(1); ++h) {
          const Query query = {q.row<float>(row) + h * q.stride(1), slice.first_position + i,
                               h / group, slice.block_table};
          attend<T>(query, store, params, out.row<float>(row) + h * out.stride(1));
        }
      }
    }
  });
}

}  // namespace paceline
