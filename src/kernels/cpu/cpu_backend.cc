#include "kernels/cpu/cpu_backend.h"

#include <fmt/format.h>

#include <vector>

#include "kernels/cpu/group_panels.h"
#include "kernels/cpu/isa.h"

namespace paceline {
namespace {

static_assert(static_cast<int>(DType::f32) == 0 && static_cast<int>(DType::f16) == 1 &&
              static_cast<int>(DType::bf16) == 2);
static_assert(static_cast<int>(Activation::clamped_swiglu) == kNumActivations - 1);

// The cost of a sine, in elements of cheaper operations.
constexpr int64_t kSineElements = 16;
constexpr int64_t kExpElements = 16;

// Head `index % heads` of row `index / heads` of a tensor of rank 2 (one head) or 3.
float* head_row(const Tensor& tensor, int64_t index) {
  if (tensor.rank() == 2) return tensor.row<float>(index);
  const int64_t heads = tensor.size(1);
  return tensor.row<float>(index / heads) + index % heads * tensor.stride(1);
}

// Brings a row whose element i belongs at order[i] into its order.
void undo_order(std::span<const int32_t> order, float* row) {
  thread_local std::vector<float> ordered;
  ordered.assign(row, row + order.size());
  for (size_t i = 0; i < order.size(); ++i) row[order[i]] = ordered[i];
}

}  // namespace

CpuBackend::CpuBackend(Isa isa, ThreadPool& threads, Memory& memory)
    : kernels_(kernel_table(isa)),
      threads_(threads),
      memory_(memory),
      name_(fmt::format("cpu/{}", isa_name(isa))),
      gradients_(kernels_, threads, memory),
      recurrent_(kernels_, threads, memory),
      recurrent_gradients_(kernels_, threads, memory),
      tuner_(fixed_streams()),
      input_rows_(memory),
      up_rows_(memory),
      inner_rows_(memory),
      row_partials_(memory),
      row_totals_(memory),
      thread_scratch_(memory),
      chunk_partials_(memory),
      mixer_(kernels_, threads, tuner_, memory),
      lora_inner_(memory) {}

void CpuBackend::do_embedding(const PackedMatrix& table, Indices<int32_t> ids, float scale,
                              const Tensor& out) {
  if (table.groups) {
    const GroupPanels weights = group_panels(table);
    const std::span<const int32_t> order = table.input_order();
    return for_each_row(out.size(0), table.k, [&](int64_t row) {
      kernels_.embedding_groups(weights, ids.host()[static_cast<size_t>(row)], scale,
                                out.row<float>(row));
      if (!order.empty()) undo_order(order, out.row<float>(row));
    });
  }
  const auto kernel = kernels_.embedding[static_cast<size_t>(table.dtype)];
  for_each_row(out.size(0), table.k, [&](int64_t row) {
    const int64_t id = ids.host()[static_cast<size_t>(row)];
    kernel(table.panel(id / kPanelWidth), id % kPanelWidth, table.k, scale, out.row<float>(row));
  });
}

void CpuBackend::do_rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& out) {
  const int64_t width = x.size(-1);
  const float* const weights = weight.elements<float>();
  for_each_row(x.num_elements() / width, width, [&](int64_t row) {
    kernels_.rms_norm(head_row(x, row), weights, eps, width, head_row(out, row));
  });
}

void CpuBackend::do_layer_norm(const Tensor& x, const Tensor& weight, const Tensor* bias, float eps,
                               const Tensor& out) {
  const int64_t width = x.size(-1);
  const float* const weights = weight.elements<float>();
  const float* const biases = bias != nullptr ? bias->elements<float>() : nullptr;
  for_each_row(x.num_elements() / width, width, [&](int64_t row) {
    kernels_.layer_norm(head_row(x, row), weights, biases, eps, width, head_row(out, row));
  });
}

void CpuBackend::do_rope_table(Indices<int32_t> positions, const Tensor& inv_freq, float scale,
                               const Tensor& table) {
  const int64_t half = table.size(1);
  for_each_row(table.size(0), half * kSineElements, [&](int64_t row) {
    kernels_.rope_table(static_cast<float>(positions.host()[static_cast<size_t>(row)]),
                        inv_freq.elements<float>(), half, scale, table.row<float>(row));
  });
}

void CpuBackend::do_rope(const Tensor& table, RopePairs pairs, const Tensor& x) {
  const int64_t heads = x.size(1), half = table.size(1);
  const auto kernel = kernels_.rope[static_cast<size_t>(pairs)];
  for_each_row(x.size(0), heads * half * 2, [&](int64_t row) {
    for (int64_t head = 0; head < heads; ++head) {
      kernel(table.row<float>(row), half, x.row<float>(row) + head * x.stride(1));
    }
  });
}

void CpuBackend::do_mix_experts(std::span<const GatedMlpWeights> experts, const Routing& routing,
                                const Tensor& x, const Tensor& out) {
  mixer_.mix(experts, routing, x, out);
}

void CpuBackend::do_gated_activation(Activation kind, const Tensor& gate, const Tensor& up,
                                     const Tensor& out) {
  const auto kernel = kernels_.gated_activation[static_cast<size_t>(kind)];
  for_each_block(out.size(0), out.size(1), [&](int64_t row, int64_t, int64_t first, int64_t count) {
    kernel(gate.row<float>(row) + first, up.row<float>(row) + first, count,
           out.row<float>(row) + first);
  });
}

void CpuBackend::do_activation(Activation kind, const Tensor& x, const Tensor& out) {
  const auto kernel = kernels_.activation[static_cast<size_t>(kind)];
  for_each_block(out.size(0), out.size(1), [&](int64_t row, int64_t, int64_t first, int64_t count) {
    kernel(x.row<float>(row) + first, count, out.row<float>(row) + first);
  });
}

void CpuBackend::do_scale(const Tensor& x, std::span<const float> factors, const Tensor& out) {
  for_each_block(out.size(0), out.size(1), [&](int64_t row, int64_t, int64_t first, int64_t count) {
    const float factor = factors[factors.size() == 1 ? 0 : static_cast<size_t>(row)];
    kernels_.scale(x.row<float>(row) + first, factor, count, out.row<float>(row) + first);
  });
}

void CpuBackend::do_apply_sinks(const Tensor& log_sum_exp, const Tensor& sinks, const Tensor& out) {
  const int64_t heads = out.size(1), head_dim = out.size(2);
  for_each_row(out.size(0), heads * head_dim, [&](int64_t row) {
    for (int64_t head = 0; head < heads; ++head) {
      const float score = log_sum_exp.row<float>(row)[head] - sinks.elements<float>()[head];
      float share = 0.0f;
      kernels_.sigmoid(&score, 1, &share);
      float* const values = out.row<float>(row) + head * out.stride(1);
      kernels_.scale(values, share, head_dim, values);
    }
  });
}

void CpuBackend::do_add(const Tensor& x, const Tensor& y, const Tensor& out) {
  for_each_block(out.size(0), out.size(1), [&](int64_t row, int64_t, int64_t first, int64_t count) {
    kernels_.add(x.row<float>(row) + first, y.row<float>(row) + first, count,
                 out.row<float>(row) + first);
  });
}

void CpuBackend::do_scale_columns(const Tensor& x, const Tensor& factors, const Tensor& out) {
  const auto* const by = factors.elements<float>();
  for_each_block(out.size(0), out.size(1), [&](int64_t row, int64_t, int64_t first, int64_t count) {
    const float* const from = x.row<float>(row) + first;
    float* const to = out.row<float>(row) + first;
    for (int64_t i = 0; i < count; ++i) to[i] = from[i] * by[first + i];
  });
}

void CpuBackend::do_xielu(const Tensor& x, const XieluWeights& weights, const Tensor& out) {
  for_each_block(out.size(0), out.size(1), [&](int64_t row, int64_t, int64_t first, int64_t count) {
    kernels_.xielu(x.row<float>(row) + first, weights, count, out.row<float>(row) + first);
  });
}

void CpuBackend::do_clamp(const Tensor& x, float limit, const Tensor& out) {
  for_each_block(out.size(0), out.size(1), [&](int64_t row, int64_t, int64_t first, int64_t count) {
    kernels_.clamp(x.row<float>(row) + first, limit, count, out.row<float>(row) + first);
  });
}

// Sums are eight in turn, in double, on every instruction set.
void CpuBackend::do_gaussian_top_k(const Tensor& x, float deviations, const Tensor& out) {
  const int64_t width = x.size(1);
  const auto sum_of = [width](auto&& term) {
    std::array<double, 8> sums{};
    int64_t i = 0;
    for (; i + 8 <= width; i += 8) {
      for (int64_t k = 0; k < 8; ++k) sums[static_cast<size_t>(k)] += term(i + k);
    }
    for (; i < width; ++i) sums[0] += term(i);
    double total = 0.0;
    for (const double sum : sums) total += sum;
    return total;
  };
  for_each_row(out.size(0), width, [&](int64_t row) {
    const auto* const from = x.row<float>(row);
    auto* const to = out.row<float>(row);
    const auto count = static_cast<double>(width);
    const double mean = sum_of([&](int64_t i) { return double{from[i]}; }) / count;
    const double variance =
        sum_of([&](int64_t i) { return (double{from[i]} - mean) * (double{from[i]} - mean); }) /
        count;
    const auto cutoff = static_cast<float>(mean + double{deviations} * std::sqrt(variance));
    // Not std::max, which would hide a NaN.
    for (int64_t i = 0; i < width; ++i) to[i] = from[i] < cutoff ? 0.0f : from[i] - cutoff;
  });
}

void CpuBackend::do_soft_cap(const Tensor& x, float cap, const Tensor& out) {
  for_each_block(out.size(0), out.size(1), [&](int64_t row, int64_t, int64_t first, int64_t count) {
    kernels_.soft_cap(x.row<float>(row) + first, cap, count, out.row<float>(row) + first);
  });
}

const ExpSum* CpuBackend::exp_sums(const Tensor& x) {
  const int64_t rows = x.size(0), blocks = num_row_blocks(x.size(1));
  auto* const parts = row_partials_.reserve_as<ExpSum>(rows * blocks);
  for_each_block(rows, x.size(1), [&](int64_t row, int64_t block, int64_t first, int64_t count) {
    parts[row * blocks + block] = kernels_.exp_sum(x.row<float>(row) + first, count);
  });
  auto* const totals = row_totals_.reserve_as<ExpSum>(rows);
  for_each_row(rows, blocks * kExpElements, [&](int64_t row) {
    totals[row] = kernels_.combine_exp_sums(parts + row * blocks, blocks);
  });
  return totals;
}

void CpuBackend::do_log_sum_exp(const Tensor& x, std::span<float> out) {
  const ExpSum* const totals = exp_sums(x);
  for (int64_t row = 0; row < x.size(0); ++row) {
    out[static_cast<size_t>(row)] = kernels_.log_sum(totals[row]);
  }
}

std::unique_ptr<Backend> make_cpu_backend(Isa isa, ThreadPool& threads, Memory& memory) {
  return std::make_unique<CpuBackend>(isa, threads, memory);
}

}  // namespace paceline
