#include "kernels/reference/reference_backend.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "kernels/group_packing.h"

namespace paceline {
namespace {

// cap * tanh(x / cap)
double capped(double x, double cap) { return cap * std::tanh(x / cap); }

double activation_of(Activation kind, double x) {
  switch (kind) {
    case Activation::silu:
      return x / (1.0 + std::exp(-x));
    case Activation::gelu_tanh: {
      // Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016), the tanh form.
      const double inner = std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x);
      return 0.5 * x * (1.0 + std::tanh(inner));
    }
    case Activation::gelu_erf:
      return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2));
    case Activation::sigmoid:
      return 1.0 / (1.0 + std::exp(-x));
    case Activation::relu:
      return x < 0.0 ? 0.0 : x;
    case Activation::clamped_swiglu:
      return x / (1.0 + std::exp(-1.702 * x));
  }
  return 0.0;
}

double gated(Activation kind, double gate, double up) {
  constexpr double kLimit = 7.0;
  if (kind != Activation::clamped_swiglu) return activation_of(kind, gate) * up;
  // std::min and std::max return their first argument beside NaN.
  return activation_of(kind, std::min(gate, kLimit)) *
         (std::min(std::max(up, -kLimit), kLimit) + 1.0);
}

// Calls body(x row, out row) for every row of width size(-1), of rank 2 or 3.
template <class Body>
void for_each_row(const Tensor& x, const Tensor& out, Body&& body) {
  if (x.rank() == 2) {
    for (int64_t r = 0; r < x.size(0); ++r) body(x.row<float>(r), out.row<float>(r));
    return;
  }
  for (int64_t r = 0; r < x.size(0); ++r) {
    for (int64_t h = 0; h < x.size(1); ++h) {
      body(x.row<float>(r) + h * x.stride(1), out.row<float>(r) + h * out.stride(1));
    }
  }
}

// Inputs that share a scale, as codes of 8 bits: the largest magnitude becomes 127.
struct QuantizedInputs {
  std::vector<double> codes;
  double scale = 0.0;
};

QuantizedInputs quantize_inputs(const float* x, int64_t size) {
  float largest = 0.0f;
  for (int64_t i = 0; i < size; ++i) largest = std::max(largest, std::abs(x[i]));
  const float scale = largest / 127.0f;
  const float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
  QuantizedInputs inputs;
  inputs.scale = double{scale};
  for (int64_t i = 0; i < size; ++i) {
    inputs.codes.push_back(double{std::nearbyint(std::clamp(x[i] * inverse, -127.0f, 127.0f))});
  }
  return inputs;
}

// Per group: the scales' product times the sum of the codes' products, and the offset times the
// sum of the inputs.
void multiply_int8(const Tensor& x, const PackedMatrix& w, const Tensor* bias, const Tensor& out) {
  const int64_t size = w.groups->grouping.group_size;
  const int64_t length = shared_inputs(w.groups->grouping, w.k);
  const std::span<const int32_t> order = w.input_order();
  for (int64_t r = 0; r < x.size(0); ++r) {
    std::vector<float> row(x.row<float>(r), x.row<float>(r) + w.k);
    for (size_t k = 0; k < order.size(); ++k) row[k] = x.row<float>(r)[order[k]];
    std::vector<QuantizedInputs> shared;
    for (int64_t k = 0; k < w.k; k += length) {
      shared.push_back(quantize_inputs(row.data() + k, length));
    }
    for (int64_t n = 0; n < w.n; ++n) {
      const GroupColumn column = unpack_group_column(w, n);
      double sum = bias != nullptr ? double{bias->elements<float>()[n]} : 0.0;
      for (int64_t first = 0; first < w.k; first += size) {
        const QuantizedInputs& rounded = shared[static_cast<size_t>(first / length)];
        const auto g = static_cast<size_t>(first / size);
        double products = 0.0, inputs = 0.0;
        for (int64_t k = first; k < first + size; ++k) {
          const double input = rounded.codes[static_cast<size_t>(k % length)];
          products += input * column.codes[static_cast<size_t>(k)];
          inputs += input;
        }
        sum += rounded.scale *
               (double{column.scales[g]} * products + double{column.offsets[g]} * inputs);
      }
      out.row<float>(r)[n] = static_cast<float>(sum);
    }
  }
}

}  // namespace

std::span<const float> ReferenceBackend::do_read(const Tensor& x, std::vector<float>& staging) {
  staging.assign(x.elements<float>(), x.elements<float>() + x.num_elements());
  return staging;
}

void ReferenceBackend::do_write(std::span<const float> elements, const Tensor& out) {
  std::copy(elements.begin(), elements.end(), out.elements<float>());
}

PackedMatrix ReferenceBackend::do_pack_matrix(std::span<const Tensor> parts, DType dtype) {
  return paceline::pack_matrix(parts, dtype, memory_, threads_);
}

PackedMatrix ReferenceBackend::do_pack_groups(std::span<const GroupedRows* const> parts,
                                              ActivationType activations) {
  return paceline::pack_groups(parts, activations, memory_, threads_);
}

PackedMatrix ReferenceBackend::do_gather_columns(const PackedMatrix& matrix,
                                                 std::span<const int32_t> columns) {
  return paceline::gather_columns(matrix, columns, memory_);
}

void ReferenceBackend::do_gather_rows(const Tensor& x, Indices<int32_t> rows, const Tensor& out) {
  for (int64_t i = 0; i < out.size(0); ++i) {
    const int64_t row = rows.host()[static_cast<size_t>(i)];
    copy_elements(x.slice(0, row, row + 1), out.slice(0, i, i + 1));
  }
}

void ReferenceBackend::do_clear(const Tensor& out) {
  for (int64_t r = 0; r < out.size(0); ++r) std::fill_n(out.row<float>(r), out.size(1), 0.0f);
}

void ReferenceBackend::do_add_scaled_rows(const Tensor& x, std::span<const int32_t> rows,
                                          std::span<const float> weights, const Tensor& out) {
  for (int64_t i = 0; i < x.size(0); ++i) {
    const auto index = static_cast<size_t>(i);
    const float* const from = x.row<float>(i);
    float* const to = out.row<float>(rows[index]);
    for (int64_t j = 0; j < x.size(1); ++j) to[j] = std::fma(weights[index], from[j], to[j]);
  }
}

void ReferenceBackend::do_finite_rows(const Tensor& x, RowFlags out) {
  for (int64_t r = 0; r < x.size(0); ++r) {
    const float* const row = x.row<float>(r);
    out.host()[static_cast<size_t>(r)] =
        std::all_of(row, row + x.size(1), [](float v) { return std::isfinite(v); }) ? 1 : 0;
  }
}

void ReferenceBackend::do_pool_rows(RowPooling how, const Tensor& x, int64_t first_position,
                                    std::span<double> pooled) {
  for (int64_t r = 0; r < x.size(0); ++r) {
    const double weight =
        how == RowPooling::sum ? 1.0 : static_cast<double>(first_position + r + 1);
    for (size_t i = 0; i < pooled.size(); ++i) {
      const auto element = double{x.row<float>(r)[i]};
      pooled[i] =
          how == RowPooling::max ? std::max(pooled[i], element) : pooled[i] + weight * element;
    }
  }
}

void ReferenceBackend::do_copy_blocks(const KvStore& store, std::span<const BlockMove> moves) {
  const auto copy = [](const Tensor& blocks, const BlockMove& move) {
    copy_elements(blocks.slice(0, move.from, move.from + 1), blocks.slice(0, move.to, move.to + 1));
  };
  for (const BlockMove& move : moves) {
    copy(store.keys, move);
    if (store.values_in_keys == 0) copy(store.values, move);
    if (!store.has_scales()) continue;
    copy(store.key_scales, move);
    copy(store.value_scales, move);
  }
}

void ReferenceBackend::do_embedding(const PackedMatrix& table, Indices<int32_t> ids, float scale,
                                    const Tensor& out) {
  for (int64_t r = 0; r < out.size(0); ++r) {
    float* row = out.row<float>(r);
    unpack_row(table, ids.host()[static_cast<size_t>(r)], row);
    for (int64_t i = 0; i < out.size(1); ++i) row[i] *= scale;
  }
}

void ReferenceBackend::do_matmul(const Tensor& x, const PackedMatrix& w, const Tensor* bias,
                                 const Tensor& out) {
  const auto rounds_to = [&](const PackedGroups& groups) {
    return activations_of(groups.grouping, activations_.value_or(groups.activations));
  };
  if (w.groups && rounds_to(*w.groups) == ActivationType::int8) {
    return multiply_int8(x, w, bias, out);
  }
  std::vector<float> column(static_cast<size_t>(w.k));
  for (int64_t n = 0; n < w.n; ++n) {
    unpack_row(w, n, column.data());
    for (int64_t r = 0; r < x.size(0); ++r) {
      const float* row = x.row<float>(r);
      double sum = 0.0;
      for (int64_t k = 0; k < w.k; ++k) {
        const float input = w.dtype == DType::bf16 ? to_float(to_bfloat16(row[k])) : row[k];
        const float weight = column[static_cast<size_t>(k)];
        sum += double{input} * double{w.groups ? to_float(to_bfloat16(weight)) : weight};
      }
      if (bias != nullptr) sum += double{bias->elements<float>()[n]};
      out.row<float>(r)[n] = static_cast<float>(sum);
    }
  }
}

void ReferenceBackend::do_gated_mlp(const GatedMlpWeights& mlp, const Tensor& x,
                                    const Tensor& out) {
  const int64_t rows = x.size(0), width = mlp.gate.count;
  std::vector<float> gate_sums, up_sums;
  const auto multiply = [&](const PackedColumns& columns, std::vector<float>& sums) {
    const int64_t n = columns.matrix->n;
    sums.resize(static_cast<size_t>(rows * n));
    const Tensor all(sums.data(), DType::f32, {rows, n});
    do_matmul(x, *columns.matrix, columns.bias ? &*columns.bias : nullptr, all);
    return all.slice(1, columns.first, columns.first + width);
  };
  const Tensor gate = multiply(mlp.gate, gate_sums), up = multiply(mlp.up, up_sums);
  do_gated_activation(mlp.activation, gate, up, gate);
  do_matmul(gate, *mlp.down.matrix, mlp.down.bias ? &*mlp.down.bias : nullptr, out);
}

void ReferenceBackend::do_add_lora(const Tensor& x, std::span<const LoraSegment> segments,
                                   const Tensor& out) {
  std::vector<float> inner_sums, delta_sums;
  for (const LoraSegment& segment : segments) {
    const int64_t rows = segment.num_rows, last_row = segment.first_row + rows;
    const int64_t columns = segment.b->n, ranks = segment.a->n;
    inner_sums.resize(static_cast<size_t>(rows * ranks));
    delta_sums.resize(static_cast<size_t>(rows * columns));
    const Tensor inner(inner_sums.data(), DType::f32, {rows, ranks});
    const Tensor delta(delta_sums.data(), DType::f32, {rows, columns});
    do_matmul(x.slice(0, segment.first_row, last_row), *segment.a, nullptr, inner);
    do_matmul(inner.slice(1, segment.first_rank, segment.first_rank + segment.b->k), *segment.b,
              nullptr, delta);
    const Tensor sums = out.slice(0, segment.first_row, last_row)
                            .slice(1, segment.first_column, segment.first_column + columns);
    do_add(sums, delta, sums);
  }
}

void ReferenceBackend::do_rms_norm(const Tensor& x, const Tensor& weight, float eps,
                                   const Tensor& out) {
  const int64_t width = x.size(-1);
  const float* w = weight.elements<float>();
  for_each_row(x, out, [&](const float* row, float* out_row) {
    double sum = 0.0;
    for (int64_t i = 0; i < width; ++i) sum += double{row[i]} * double{row[i]};
    const double inverse = 1.0 / std::sqrt(sum / static_cast<double>(width) + double{eps});
    for (int64_t i = 0; i < width; ++i) {
      out_row[i] = static_cast<float>(double{row[i]} * inverse * double{w[i]});
    }
  });
}

void ReferenceBackend::do_layer_norm(const Tensor& x, const Tensor& weight, const Tensor* bias,
                                     float eps, const Tensor& out) {
  const int64_t width = x.size(-1);
  const auto count = static_cast<double>(width);
  const float* const w = weight.elements<float>();
  const float* const b = bias != nullptr ? bias->elements<float>() : nullptr;
  for_each_row(x, out, [&](const float* row, float* out_row) {
    double sum = 0.0, squares = 0.0;
    for (int64_t i = 0; i < width; ++i) sum += double{row[i]};
    const double mean = sum / count;
    for (int64_t i = 0; i < width; ++i)
      squares += (double{row[i]} - mean) * (double{row[i]} - mean);
    const double inverse = 1.0 / std::sqrt(squares / count + double{eps});
    for (int64_t i = 0; i < width; ++i) {
      const double normed = (double{row[i]} - mean) * inverse * double{w[i]};
      out_row[i] = static_cast<float>(normed + (b != nullptr ? double{b[i]} : 0.0));
    }
  });
}

void ReferenceBackend::do_rope_table(Indices<int32_t> positions, const Tensor& inv_freq,
                                     float scale, const Tensor& table) {
  for (int64_t r = 0; r < table.size(0); ++r) {
    for (int64_t i = 0; i < table.size(1); ++i) {
      // The angle is a float32 product, as in HF's rotary embeddings: that is what models were
      // trained on.
      const float angle = static_cast<float>(positions.host()[static_cast<size_t>(r)]) *
                          inv_freq.elements<float>()[i];
      float* pair = table.row<float>(r) + 2 * i;
      pair[0] = static_cast<float>(std::cos(double{angle}) * double{scale});
      pair[1] = static_cast<float>(std::sin(double{angle}) * double{scale});
    }
  }
}

void ReferenceBackend::do_rope(const Tensor& table, RopePairs pairs, const Tensor& x) {
  const int64_t half = table.size(1);
  for (int64_t r = 0; r < x.size(0); ++r) {
    const float* angles = table.row<float>(r);
    for (int64_t h = 0; h < x.size(1); ++h) {
      float* head = x.row<float>(r) + h * x.stride(1);
      for (int64_t i = 0; i < half; ++i) {
        const int64_t a = pairs == RopePairs::halves ? i : 2 * i;
        const int64_t b = pairs == RopePairs::halves ? i + half : 2 * i + 1;
        const double cosine = double{angles[2 * i]}, sine = double{angles[2 * i + 1]};
        const double first = double{head[a]}, second = double{head[b]};
        head[a] = static_cast<float>(first * cosine - second * sine);
        head[b] = static_cast<float>(second * cosine + first * sine);
      }
    }
  }
}

void ReferenceBackend::do_gated_activation(Activation kind, const Tensor& gate, const Tensor& up,
                                           const Tensor& out) {
  for (int64_t r = 0; r < out.size(0); ++r) {
    for (int64_t i = 0; i < out.size(1); ++i) {
      out.row<float>(r)[i] = static_cast<float>(
          gated(kind, double{gate.row<float>(r)[i]}, double{up.row<float>(r)[i]}));
    }
  }
}

void ReferenceBackend::do_apply_sinks(const Tensor& log_sum_exp, const Tensor& sinks,
                                      const Tensor& out) {
  for (int64_t r = 0; r < out.size(0); ++r) {
    for (int64_t h = 0; h < out.size(1); ++h) {
      const double sum = double{log_sum_exp.row<float>(r)[h]};
      const double share = 1.0 / (1.0 + std::exp(double{sinks.elements<float>()[h]} - sum));
      float* const head = out.row<float>(r) + h * out.stride(1);
      for (int64_t i = 0; i < out.size(2); ++i) {
        head[i] = static_cast<float>(double{head[i]} * share);
      }
    }
  }
}

void ReferenceBackend::do_activation(Activation kind, const Tensor& x, const Tensor& out) {
  for_each_row(x, out, [&](const float* row, float* out_row) {
    for (int64_t i = 0; i < x.size(1); ++i) {
      out_row[i] = static_cast<float>(activation_of(kind, double{row[i]}));
    }
  });
}

void ReferenceBackend::do_scale(const Tensor& x, std::span<const float> factors,
                                const Tensor& out) {
  for (int64_t r = 0; r < out.size(0); ++r) {
    const float factor = factors[factors.size() == 1 ? 0 : static_cast<size_t>(r)];
    for (int64_t i = 0; i < out.size(1); ++i) out.row<float>(r)[i] = x.row<float>(r)[i] * factor;
  }
}

void ReferenceBackend::do_add(const Tensor& x, const Tensor& y, const Tensor& out) {
  for (int64_t r = 0; r < out.size(0); ++r) {
    for (int64_t i = 0; i < out.size(1); ++i) {
      out.row<float>(r)[i] = x.row<float>(r)[i] + y.row<float>(r)[i];
    }
  }
}

void ReferenceBackend::do_scale_columns(const Tensor& x, const Tensor& factors, const Tensor& out) {
  for_each_row(x, out, [&](const float* row, float* out_row) {
    for (int64_t i = 0; i < x.size(1); ++i) out_row[i] = row[i] * factors.elements<float>()[i];
  });
}

void ReferenceBackend::do_xielu(const Tensor& x, const XieluWeights& weights, const Tensor& out) {
  for (int64_t r = 0; r < out.size(0); ++r) {
    for (int64_t i = 0; i < out.size(1); ++i) {
      const double value = x.row<float>(r)[i];
      const double below = std::expm1(std::min(value, double{weights.limit})) - value;
      const double curve = value > 0 ? weights.positive * value * value : weights.negative * below;
      out.row<float>(r)[i] = static_cast<float>(curve + weights.linear * value);
    }
  }
}

void ReferenceBackend::do_clamp(const Tensor& x, float limit, const Tensor& out) {
  for_each_row(x, out, [&](const float* row, float* out_row) {
    for (int64_t i = 0; i < x.size(1); ++i) {
      out_row[i] = std::isnan(row[i]) ? row[i] : std::clamp(row[i], -limit, limit);
    }
  });
}

void ReferenceBackend::do_gaussian_top_k(const Tensor& x, float deviations, const Tensor& out) {
  const int64_t width = x.size(1);
  for_each_row(x, out, [&](const float* row, float* out_row) {
    double mean = 0.0, variance = 0.0;
    for (int64_t i = 0; i < width; ++i) mean += double{row[i]};
    mean /= static_cast<double>(width);
    for (int64_t i = 0; i < width; ++i) {
      variance += (double{row[i]} - mean) * (double{row[i]} - mean);
    }
    variance /= static_cast<double>(width);
    const auto cutoff = static_cast<float>(mean + double{deviations} * std::sqrt(variance));
    // Not std::max, which would hide a NaN.
    for (int64_t i = 0; i < width; ++i) out_row[i] = row[i] < cutoff ? 0.0f : row[i] - cutoff;
  });
}

void ReferenceBackend::do_soft_cap(const Tensor& x, float cap, const Tensor& out) {
  for_each_row(x, out, [&](const float* row, float* out_row) {
    for (int64_t i = 0; i < x.size(1); ++i) {
      out_row[i] = static_cast<float>(capped(double{row[i]}, double{cap}));
    }
  });
}

void ReferenceBackend::do_log_sum_exp(const Tensor& x, std::span<float> out) {
  const int64_t width = x.size(1);
  for (int64_t r = 0; r < x.size(0); ++r) {
    const float* row = x.row<float>(r);
    const double max = double{*std::max_element(row, row + width)};
    const double shift = std::isinf(max) ? 0.0 : max;
    double sum = 0.0;
    for (int64_t i = 0; i < width; ++i) sum += std::exp(double{row[i]} - shift);
    out[static_cast<size_t>(r)] = static_cast<float>(std::log(sum) + shift);
  }
}

std::unique_ptr<Backend> make_reference_backend(std::optional<ActivationType> activations) {
  return std::make_unique<ReferenceBackend>(activations);
}

}  // namespace paceline
