// Gradients of operations on rows.
#include <algorithm>

#include "kernels/cpu/cpu_gradients.h"
#include "kernels/cpu/row_split.h"

namespace paceline {
namespace {

// Columns of an embedding's gradient that one thread adds up.
constexpr int64_t kTableColumns = 256;

// Row `index` of rows of heads, all heads of a row counted in turn.
float* flat_row(const Tensor& tensor, int64_t index) {
  if (tensor.rank() == 2) return tensor.row<float>(index);
  const int64_t heads = tensor.size(1);
  return tensor.row<float>(index / heads) + index % heads * tensor.stride(1);
}

}  // namespace

// The sums of all segments of rows, beside each other, then their sum.
template <class AddRow>
void CpuGradients::add_row_sums(int64_t rows, int64_t width, AddRow&& add_row, float* to) {
  const int64_t segments = divide_up(rows, kGradientRows), blocks = num_row_blocks(width);
  auto* const sums = panels_.reserve_as<float>(segments * width);
  std::fill_n(sums, segments * width, 0.0f);
  const int64_t block_elements = std::min(rows, kGradientRows) * std::min(width, kRowBlock);
  split_rows(threads_, segments * blocks, block_elements, [&](int64_t unit) {
    const int64_t segment = unit / blocks, first = unit % blocks * kRowBlock;
    const int64_t count = std::min(kRowBlock, width - first);
    const int64_t end = std::min(rows, (segment + 1) * kGradientRows);
    for (int64_t row = segment * kGradientRows; row < end; ++row) {
      add_row(row, first, count, sums + segment * width + first);
    }
  });
  for (int64_t segment = 0; segment < segments; ++segment) {
    kernels_.add(to, sums + segment * width, width, to);
  }
}

void CpuGradients::do_bias_gradient(const Tensor& dy, const Tensor& dbias) {
  add_row_sums(
      dy.size(0), dy.size(1),
      [&](int64_t row, int64_t first, int64_t count, float* sums) {
        kernels_.add(sums, dy.row<float>(row) + first, count, sums);
      },
      dbias.elements<float>());
}

void CpuGradients::add_norm_weights(const NormGradientInputs& in, const NormRow* norms,
                                    float* dweight) {
  const int64_t width = in.x.size(-1);
  add_row_sums(
      in.x.num_elements() / width, width,
      [&](int64_t row, int64_t first, int64_t count, float* sums) {
        kernels_.add_norm_weights(flat_row(in.x, row) + first, norms[row].mean, norms[row].scale,
                                  flat_row(in.dy, row) + first, count, sums);
      },
      dweight);
}

template <class RowNorm>
const NormRow* CpuGradients::norm_rows(const Tensor& x, RowNorm&& row_norm) {
  const int64_t width = x.size(-1), rows = x.num_elements() / width;
  auto* const norms = row_numbers_.reserve_as<NormRow>(rows);
  split_rows(threads_, rows, width, [&](int64_t row) { norms[row] = row_norm(flat_row(x, row)); });
  return norms;
}

void CpuGradients::write_norm_gradients(void (*kernel)(const NormGradientTask& task),
                                        const NormGradientInputs& in, const NormRow* norms,
                                        const Tensor& dx) {
  const int64_t width = in.x.size(-1);
  split_rows(threads_, in.x.num_elements() / width, width, [&](int64_t row) {
    kernel({.x = flat_row(in.x, row),
            .mean = norms[row].mean,
            .weight = in.weight.elements<float>(),
            .scale = norms[row].scale,
            .dy = flat_row(in.dy, row),
            .width = width,
            .dx = flat_row(dx, row)});
  });
}

// A segment's rows in one pass while they are in the caches; dx may be dy, which is read first.
void CpuGradients::rms_norm_segment(const NormGradientInputs& in, float eps, const Tensor& dx,
                                    int64_t segment, float* weight_sums) {
  const int64_t width = in.x.size(-1), rows = in.x.num_elements() / width;
  const int64_t end = std::min(rows, (segment + 1) * kGradientRows);
  for (int64_t row = segment * kGradientRows; row < end; ++row) {
    const float* const x = flat_row(in.x, row);
    const float* const dy = flat_row(in.dy, row);
    const float scale = kernels_.norm_scale(x, eps, width);
    kernels_.add_norm_weights(x, 0.0f, scale, dy, width, weight_sums);
    kernels_.rms_norm_gradient({.x = x,
                                .weight = in.weight.elements<float>(),
                                .scale = scale,
                                .dy = dy,
                                .width = width,
                                .dx = flat_row(dx, row)});
  }
}

void CpuGradients::do_rms_norm_gradient(const NormGradientInputs& in, float eps, const Tensor& dx,
                                        const Tensor* dweight) {
  const int64_t width = in.x.size(-1);
  const int64_t segments = divide_up(in.x.num_elements() / width, kGradientRows);
  if (dweight != nullptr && segments >= threads_.num_threads()) {
    auto* const sums = panels_.reserve_as<float>(segments * width);
    std::fill_n(sums, segments * width, 0.0f);
    split_rows(threads_, segments, kGradientRows * width, [&](int64_t segment) {
      rms_norm_segment(in, eps, dx, segment, sums + segment * width);
    });
    auto* const to = dweight->elements<float>();
    for (int64_t i = 0; i < segments; ++i) kernels_.add(to, sums + i * width, width, to);
    return;
  }
  const NormRow* const norms = norm_rows(in.x, [&](const float* x) {
    return NormRow{.mean = 0.0f, .scale = kernels_.norm_scale(x, eps, width)};
  });
  if (dweight != nullptr) add_norm_weights(in, norms, dweight->elements<float>());
  write_norm_gradients(kernels_.rms_norm_gradient, in, norms, dx);
}

void CpuGradients::do_layer_norm_gradient(const NormGradientInputs& in, float eps, const Tensor& dx,
                                          const Tensor* dweight, const Tensor* dbias) {
  const int64_t width = in.x.size(-1);
  const NormRow* const norms =
      norm_rows(in.x, [&](const float* x) { return kernels_.layer_norm_row(x, eps, width); });
  if (dweight != nullptr) add_norm_weights(in, norms, dweight->elements<float>());
  if (dbias != nullptr) {
    add_row_sums(
        in.x.num_elements() / width, width,
        [&](int64_t row, int64_t first, int64_t count, float* sums) {
          kernels_.add_scaled(flat_row(in.dy, row) + first, 1.0f, count, sums);
        },
        dbias->elements<float>());
  }
  write_norm_gradients(kernels_.layer_norm_gradient, in, norms, dx);
}

void CpuGradients::do_activation_gradient(Activation kind, const Tensor& x, const Tensor& dout,
                                          const Tensor& dx) {
  const auto kernel = kernels_.activation_gradient[static_cast<size_t>(kind)];
  split_row_blocks(threads_, dx.size(0), dx.size(1),
                   [&](int64_t row, int64_t, int64_t first, int64_t count) {
                     kernel(x.row<float>(row) + first, dout.row<float>(row) + first, count,
                            dx.row<float>(row) + first);
                   });
}

void CpuGradients::do_gated_activation_gradient(Activation kind, const GatedGradientInputs& in,
                                                const Tensor& dgate, const Tensor& dup) {
  const auto kernel = kernels_.gated_gradient[static_cast<size_t>(kind)];
  split_row_blocks(threads_, dgate.size(0), dgate.size(1),
                   [&](int64_t row, int64_t, int64_t first, int64_t count) {
                     kernel({.gate = in.gate.row<float>(row) + first,
                             .up = in.up.row<float>(row) + first,
                             .dout = in.dout.row<float>(row) + first,
                             .width = count,
                             .dgate = dgate.row<float>(row) + first,
                             .dup = dup.row<float>(row) + first});
                   });
}

void CpuGradients::do_soft_cap_gradient(const Tensor& x, float cap, const Tensor& dy,
                                        const Tensor& dx) {
  split_row_blocks(
      threads_, dx.size(0), dx.size(1), [&](int64_t row, int64_t, int64_t first, int64_t count) {
        kernels_.soft_cap_gradient(x.row<float>(row) + first, cap, dy.row<float>(row) + first,
                                   count, dx.row<float>(row) + first);
      });
}

void CpuGradients::do_embedding_gradient(std::span<const int32_t> ids, float scale,
                                         const Tensor& dout, const Tensor& dtable) {
  const int64_t rows = dout.size(0), hidden = dout.size(1);
  const int64_t blocks = divide_up(hidden, kTableColumns);
  split_rows(threads_, blocks, rows * std::min(hidden, kTableColumns), [&](int64_t block) {
    const int64_t first = block * kTableColumns, count = std::min(kTableColumns, hidden - first);
    for (int64_t row = 0; row < rows; ++row) {
      kernels_.add_scaled(dout.row<float>(row) + first, scale, count,
                          dtable.row<float>(ids[static_cast<size_t>(row)]) + first);
    }
  });
}

void CpuGradients::do_cross_entropy_gradient(std::span<const int32_t> targets,
                                             std::span<const float> weights, const Tensor& logits,
                                             std::span<float> losses) {
  const int64_t rows = logits.size(0), width = logits.size(1), blocks = num_row_blocks(width);
  const auto counts = [&](int64_t row) { return weights[static_cast<size_t>(row)] != 0.0f; };
  auto* const parts = panels_.reserve_as<ExpSum>(rows * blocks);
  split_row_blocks(
      threads_, rows, width, [&](int64_t row, int64_t block, int64_t first, int64_t n) {
        if (counts(row)) {
          parts[row * blocks + block] = kernels_.exp_sum(logits.row<float>(row) + first, n);
        }
      });
  auto* const log_sums = row_numbers_.reserve_as<float>(rows);
  for (int64_t row = 0; row < rows; ++row) {
    float& loss = losses[static_cast<size_t>(row)];
    loss = 0.0f;
    if (!counts(row)) continue;
    log_sums[row] = kernels_.log_sum(kernels_.combine_exp_sums(parts + row * blocks, blocks));
    loss = log_sums[row] - logits.row<float>(row)[targets[static_cast<size_t>(row)]];
  }
  split_row_blocks(threads_, rows, width, [&](int64_t row, int64_t, int64_t first, int64_t n) {
    float* const block = logits.row<float>(row) + first;
    if (!counts(row)) {
      std::fill_n(block, n, 0.0f);
      return;
    }
    const float weight = weights[static_cast<size_t>(row)];
    const int64_t target = targets[static_cast<size_t>(row)] - first;
    const bool has_target = target >= 0 && target < n;
    const float logit = has_target ? block[target] : 0.0f;
    kernels_.cross_entropy_gradient(block, n, log_sums[row], weight);
    if (has_target) block[target] = kernels_.target_gradient(logit, log_sums[row], weight);
  });
}

void CpuGradients::do_copy_rounded(const Tensor& x, DType dtype, const Tensor& out) {
  const int64_t width = x.size(-1), of_row = x.num_elements() / x.size(0) / width;
  with_float_dtype(dtype, [&]<class T>() {
    split_rows(threads_, x.size(0), of_row * width, [&](int64_t row) {
      for (int64_t i = row * of_row; i < (row + 1) * of_row; ++i) {
        const float* const from = flat_row(x, i);
        float* const to = flat_row(out, i);
        for (int64_t k = 0; k < width; ++k) to[k] = to_float(from_float<T>(from[k]));
      }
    });
  });
}

}  // namespace paceline
