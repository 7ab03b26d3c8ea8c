// Gradients of operations on rows in plain loops.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "kernels/reference/reference_gradients.h"

namespace paceline {
namespace {

// Row `index` of rows of heads, all heads of a row counted in turn.
float* nth_row(const Tensor& tensor, int64_t index) {
  if (tensor.rank() == 2) return tensor.row<float>(index);
  const int64_t heads = tensor.size(1);
  return tensor.row<float>(index / heads) + index % heads * tensor.stride(1);
}

struct ValueAndSlope {
  double value;
  double slope;
};

ValueAndSlope activation_slope(Activation kind, double x) {
  switch (kind) {
    case Activation::silu: {
      const double sigmoid = 1.0 / (1.0 + std::exp(-x));
      return {x * sigmoid, sigmoid + x * sigmoid * (1.0 - sigmoid)};
    }
    case Activation::gelu_tanh: {
      const double root = std::sqrt(2.0 / std::numbers::pi);
      const double bent = std::tanh(root * (x + 0.044715 * x * x * x));
      const double inner_slope = root * (1.0 + 3.0 * 0.044715 * x * x);
      return {0.5 * x * (1.0 + bent),
              0.5 * (1.0 + bent) + 0.5 * x * (1.0 - bent * bent) * inner_slope};
    }
    case Activation::gelu_erf: {
      const double cumulative = 0.5 * (1.0 + std::erf(x / std::numbers::sqrt2));
      const double density = std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::numbers::pi);
      return {x * cumulative, cumulative + x * density};
    }
    case Activation::sigmoid: {
      const double sigmoid = 1.0 / (1.0 + std::exp(-x));
      return {sigmoid, sigmoid * (1.0 - sigmoid)};
    }
    case Activation::relu:
      return {x < 0.0 ? 0.0 : x, x > 0.0 ? 1.0 : 0.0};
    case Activation::clamped_swiglu: {  // of the clamped gate
      constexpr double kSteepness = 1.702;
      const double sigmoid = 1.0 / (1.0 + std::exp(-kSteepness * x));
      return {x * sigmoid, sigmoid + kSteepness * x * sigmoid * (1.0 - sigmoid)};
    }
  }
  return {0.0, 0.0};
}

struct GateGradient {
  double gate;
  double up;
};

// A clamped input has no gradient.
GateGradient clamped_gradient(double gate, double up, double dout) {
  constexpr double kLimit = 7.0;
  const auto [value, slope] = activation_slope(Activation::clamped_swiglu, std::min(gate, kLimit));
  const double offset_up = std::min(std::max(up, -kLimit), kLimit) + 1.0;
  return {.gate = gate > kLimit ? 0.0 : dout * offset_up * slope,
          .up = std::abs(up) > kLimit ? 0.0 : dout * value};
}

GateGradient gate_gradient(Activation kind, double gate, double up, double dout) {
  if (kind == Activation::clamped_swiglu) return clamped_gradient(gate, up, dout);
  const auto [value, slope] = activation_slope(kind, gate);
  return {.gate = dout * up * slope, .up = dout * value};
}

}  // namespace

void ReferenceGradients::do_rms_norm_gradient(const NormGradientInputs& in, float eps,
                                              const Tensor& dx, const Tensor* dweight) {
  const int64_t width = in.x.size(-1);
  const float* const weight = in.weight.elements<float>();
  std::vector<double> sums(static_cast<size_t>(width));
  for (int64_t r = 0; r < in.x.num_elements() / width; ++r) {
    const float* const x = nth_row(in.x, r);
    const float* const dy = nth_row(in.dy, r);
    float* const out = nth_row(dx, r);
    double squares = 0.0, products = 0.0;
    for (int64_t i = 0; i < width; ++i) {
      squares += double{x[i]} * double{x[i]};
      products += double{weight[i]} * double{dy[i]} * double{x[i]};
    }
    const auto count = static_cast<double>(width);
    const double scale = 1.0 / std::sqrt(squares / count + double{eps});
    for (int64_t i = 0; i < width; ++i) {
      const auto value = double{x[i]}, gradient = double{dy[i]};
      sums[static_cast<size_t>(i)] += gradient * value * scale;
      out[i] = static_cast<float>(
          scale * (double{weight[i]} * gradient - value * scale * scale * products / count));
    }
  }
  for (int64_t i = 0; dweight != nullptr && i < width; ++i) {
    float& element = dweight->elements<float>()[i];
    element = static_cast<float>(double{element} + sums[static_cast<size_t>(i)]);
  }
}

void ReferenceGradients::do_bias_gradient(const Tensor& dy, const Tensor& dbias) {
  for (int64_t i = 0; i < dy.size(1); ++i) {
    double sum = 0.0;
    for (int64_t r = 0; r < dy.size(0); ++r) sum += double{dy.row<float>(r)[i]};
    float& element = dbias.elements<float>()[i];
    element = static_cast<float>(double{element} + sum);
  }
}

void ReferenceGradients::do_layer_norm_gradient(const NormGradientInputs& in, float eps,
                                                const Tensor& dx, const Tensor* dweight,
                                                const Tensor* dbias) {
  const int64_t width = in.x.size(-1);
  const auto count = static_cast<double>(width);
  const float* const weight = in.weight.elements<float>();
  std::vector<double> weight_sums(static_cast<size_t>(width)), bias_sums(weight_sums);
  std::vector<double> z(static_cast<size_t>(width));  // the row, normed
  for (int64_t r = 0; r < in.x.num_elements() / width; ++r) {
    const float* const x = nth_row(in.x, r);
    const float* const dy = nth_row(in.dy, r);
    float* const out = nth_row(dx, r);
    double sum = 0.0, squares = 0.0;
    for (int64_t i = 0; i < width; ++i) sum += double{x[i]};
    const double mean = sum / count;
    for (int64_t i = 0; i < width; ++i) squares += (double{x[i]} - mean) * (double{x[i]} - mean);
    const double scale = 1.0 / std::sqrt(squares / count + double{eps});
    double gradients = 0.0, products = 0.0;
    for (size_t i = 0; i < z.size(); ++i) {
      z[i] = (double{x[i]} - mean) * scale;
      weight_sums[i] += double{dy[i]} * z[i];
      bias_sums[i] += double{dy[i]};
      gradients += double{weight[i]} * double{dy[i]};
      products += double{weight[i]} * double{dy[i]} * z[i];
    }
    for (size_t i = 0; i < z.size(); ++i) {
      const double gradient = double{weight[i]} * double{dy[i]};
      out[i] = static_cast<float>(scale * (gradient - gradients / count - z[i] * products / count));
    }
  }
  for (const auto& [to, sums] : {std::pair{dweight, &weight_sums}, {dbias, &bias_sums}}) {
    for (size_t i = 0; to != nullptr && i < sums->size(); ++i) {
      float& element = to->elements<float>()[i];
      element = static_cast<float>(double{element} + (*sums)[i]);
    }
  }
}

void ReferenceGradients::do_activation_gradient(Activation kind, const Tensor& x,
                                                const Tensor& dout, const Tensor& dx) {
  for (int64_t r = 0; r < dx.size(0); ++r) {
    for (int64_t i = 0; i < dx.size(1); ++i) {
      const double slope = activation_slope(kind, double{x.row<float>(r)[i]}).slope;
      dx.row<float>(r)[i] = static_cast<float>(double{dout.row<float>(r)[i]} * slope);
    }
  }
}

void ReferenceGradients::do_gated_activation_gradient(Activation kind,
                                                      const GatedGradientInputs& in,
                                                      const Tensor& dgate, const Tensor& dup) {
  for (int64_t r = 0; r < dgate.size(0); ++r) {
    for (int64_t i = 0; i < dgate.size(1); ++i) {
      const GateGradient gradient =
          gate_gradient(kind, double{in.gate.row<float>(r)[i]}, double{in.up.row<float>(r)[i]},
                        double{in.dout.row<float>(r)[i]});
      dgate.row<float>(r)[i] = static_cast<float>(gradient.gate);
      dup.row<float>(r)[i] = static_cast<float>(gradient.up);
    }
  }
}

void ReferenceGradients::do_soft_cap_gradient(const Tensor& x, float cap, const Tensor& dy,
                                              const Tensor& dx) {
  for (int64_t r = 0; r < dx.size(0); ++r) {
    for (int64_t i = 0; i < dx.size(1); ++i) {
      const double bent = std::tanh(double{x.row<float>(r)[i]} / double{cap});
      dx.row<float>(r)[i] = static_cast<float>(double{dy.row<float>(r)[i]} * (1.0 - bent * bent));
    }
  }
}

void ReferenceGradients::do_embedding_gradient(std::span<const int32_t> ids, float scale,
                                               const Tensor& dout, const Tensor& dtable) {
  const int64_t hidden = dout.size(1);
  std::vector<double> sums(static_cast<size_t>(dtable.size(0) * hidden));
  for (int64_t r = 0; r < dout.size(0); ++r) {
    const int64_t id = ids[static_cast<size_t>(r)];
    for (int64_t i = 0; i < hidden; ++i) {
      sums[static_cast<size_t>(id * hidden + i)] += double{dout.row<float>(r)[i]} * double{scale};
    }
  }
  for (const int32_t id : ids) {
    for (int64_t i = 0; i < hidden; ++i) {
      double& sum = sums[static_cast<size_t>(id * hidden + i)];
      float& element = dtable.row<float>(id)[i];
      element = static_cast<float>(double{element} + sum);
      sum = 0.0;  // an id may stand more than once
    }
  }
}

void ReferenceGradients::do_cross_entropy_gradient(std::span<const int32_t> targets,
                                                   std::span<const float> weights,
                                                   const Tensor& logits, std::span<float> losses) {
  const int64_t width = logits.size(1);
  for (int64_t r = 0; r < logits.size(0); ++r) {
    const auto index = static_cast<size_t>(r);
    float* const row = logits.row<float>(r);
    losses[index] = 0.0f;
    if (weights[index] == 0.0f) {
      std::fill_n(row, width, 0.0f);
      continue;
    }
    const auto max = double{*std::max_element(row, row + width)};
    double sum = 0.0;
    for (int64_t i = 0; i < width; ++i) sum += std::exp(double{row[i]} - max);
    const double log_sum = std::log(sum) + max;
    losses[index] = static_cast<float>(log_sum - double{row[targets[index]]});
    for (int64_t i = 0; i < width; ++i) {
      const double is_target = i == targets[index] ? 1.0 : 0.0;
      row[i] = static_cast<float>((std::exp(double{row[i]} - log_sum) - is_target) *
                                  double{weights[index]});
    }
  }
}

void ReferenceGradients::do_copy_rounded(const Tensor& x, DType dtype, const Tensor& out) {
  const int64_t width = x.size(-1), rows = x.num_elements() / width;
  with_float_dtype(dtype, [&]<class T>() {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < width; ++i) {
        nth_row(out, r)[i] = to_float(from_float<T>(nth_row(x, r)[i]));
      }
    }
  });
}

}  // namespace paceline
