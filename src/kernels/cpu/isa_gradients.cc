// Gradients of operations on rows.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/row_sum.h"
#include "kernels/cpu/vec_math.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

// An activation's value and its derivative.
struct Slope {
  Vec value;
  Vec slope;
};

struct SiluSlope {
  PL_INLINE Slope at(Vec x) {
    const Vec sigmoid = 1.0f / (1.0f + exp(-x));
    return {x * sigmoid, sigmoid * fma(x, 1.0f - sigmoid, splat(1.0f))};
  }
};

struct GeluTanhSlope {
  PL_INLINE Slope at(Vec x) {
    const Vec bent = tanh(fma(x * x * x, splat(0.044715f), x) * 0.7978845608f);
    const Vec inner_slope = fma(x * x, splat(3.0f * 0.044715f), splat(1.0f)) * 0.7978845608f;
    const Vec half = x * 0.5f;
    return {half * (1.0f + bent),
            fma(half * (1.0f - bent * bent), inner_slope, (1.0f + bent) * 0.5f)};
  }
};

struct GeluErfSlope {
  PL_INLINE Slope at(Vec x) {
    const Vec twice_cumulative = 1.0f + erf(x * 0.7071067812f);
    const Vec density = exp(x * x * -0.5f) * 0.3989422804f;
    return {x * 0.5f * twice_cumulative, fma(x, density, twice_cumulative * 0.5f)};
  }
};

struct SigmoidSlope {
  PL_INLINE Slope at(Vec x) {
    const Vec sigmoid = 1.0f / (1.0f + exp(-x));
    return {sigmoid, sigmoid * (1.0f - sigmoid)};
  }
};

struct ReluSlope {
  PL_INLINE Slope at(Vec x) { return {x < 0.0f ? Vec{} : x, x > 0.0f ? splat(1.0f) : Vec{}}; }
};

template <class Activation>
void activation_gradient(const float* x, const float* dout, int64_t width, float* dx) {
  for_each_vector(width, [&](int64_t i, int64_t count) {
    const Slope at = Activation::at(load_upto(x + i, count));
    store_upto(dx + i, load_upto(dout + i, count) * at.slope, count);
  });
}

template <class Activation>
void gated_gradient(const GatedGradientTask& task) {
  for_each_vector(task.width, [&](int64_t i, int64_t count) {
    const Slope gated = Activation::at(load_upto(task.gate + i, count));
    const Vec up = load_upto(task.up + i, count), dout = load_upto(task.dout + i, count);
    store_upto(task.dgate + i, dout * up * gated.slope, count);
    store_upto(task.dup + i, dout * gated.value, count);
  });
}

// Beyond a limit the clamped value doesn't change; NaN stays NaN.
void clamped_swiglu_gradient(const GatedGradientTask& task) {
  const Vec limit = splat(7.0f);
  for_each_vector(task.width, [&](int64_t i, int64_t count) {
    const Vec gate = load_upto(task.gate + i, count), up = load_upto(task.up + i, count);
    const Vec dout = load_upto(task.dout + i, count);
    const Vec x = min(limit, gate);
    const Vec y = min(limit, max(-limit, up));
    const Vec sigmoid = 1.0f / (1.0f + exp(x * -1.702f));
    const Vec slope = sigmoid * fma(x * 1.702f, 1.0f - sigmoid, splat(1.0f));
    const Vec of_gate = dout * (y + 1.0f) * slope, of_up = dout * (x * sigmoid);
    const Vec within = up > limit ? Vec{} : of_up;
    store_upto(task.dgate + i, gate > limit ? Vec{} : of_gate, count);
    store_upto(task.dup + i, up < -limit ? Vec{} : within, count);
  });
}

void soft_cap_gradient(const float* x, float cap, const float* dy, int64_t width, float* dx) {
  for_each_vector(width, [&](int64_t i, int64_t count) {
    const Vec bent = tanh(load_upto(x + i, count) / cap);
    store_upto(dx + i, load_upto(dy + i, count) * (1.0f - bent * bent), count);
  });
}

float norm_scale(const float* x, float eps, int64_t width) {
  const float squares = sum_of(width, [&](int64_t i, int64_t count) {
    const Vec value = load_upto(x + i, count);
    return value * value;
  });
  return 1.0f / __builtin_sqrtf(squares / static_cast<float>(width) + eps);
}

// With s = scale: dx = s (w dy - x s^2 mean(w dy x)).
void rms_norm_gradient(const NormGradientTask& task) {
  const float products = sum_of(task.width, [&](int64_t i, int64_t count) {
    return load_upto(task.weight + i, count) * load_upto(task.dy + i, count) *
           load_upto(task.x + i, count);
  });
  const float mean = products / static_cast<float>(task.width);
  const Vec factor = splat(mean * task.scale * task.scale);
  for_each_vector(task.width, [&](int64_t i, int64_t count) {
    const Vec scaled = load_upto(task.weight + i, count) * load_upto(task.dy + i, count);
    const Vec rest = fma(-load_upto(task.x + i, count), factor, scaled);
    store_upto(task.dx + i, rest * task.scale, count);
  });
}

// x - mean in the first `count` lanes, 0 in the others.
PL_INLINE Vec centred(const float* x, float mean, int64_t count) {
  const Vec value = load_upto(x, count) - mean;
  return lane_indices() < static_cast<int32_t>(count) ? value : Vec{};
}

NormRow layer_norm_row(const float* x, float eps, int64_t width) {
  const auto count_of = static_cast<float>(width);
  const float sum =
      sum_of(width, [&](int64_t i, int64_t count) { return load_upto(x + i, count); });
  const float mean = sum / count_of;
  const float squares = sum_of(width, [&](int64_t i, int64_t count) {
    const Vec value = centred(x + i, mean, count);
    return value * value;
  });
  return {.mean = mean, .scale = 1.0f / __builtin_sqrtf(squares / count_of + eps)};
}

// With s = scale, z = (x - mean) s and g = w dy: dx = s (g - mean(g) - z mean(g z)).
void layer_norm_gradient(const NormGradientTask& task) {
  const auto count_of = static_cast<float>(task.width);
  const auto scaled = [&](int64_t i, int64_t count) {
    return load_upto(task.weight + i, count) * load_upto(task.dy + i, count);
  };
  const float gradients = sum_of(task.width, scaled);
  const float products = sum_of(task.width, [&](int64_t i, int64_t count) {
    return scaled(i, count) * centred(task.x + i, task.mean, count);
  });
  const Vec mean = splat(gradients / count_of);
  const Vec factor = splat(products / count_of * task.scale * task.scale);
  for_each_vector(task.width, [&](int64_t i, int64_t count) {
    const Vec rest = fma(-centred(task.x + i, task.mean, count), factor, scaled(i, count) - mean);
    store_upto(task.dx + i, rest * task.scale, count);
  });
}

void add_norm_weights(const float* x, float mean, float scale, const float* dy, int64_t width,
                      float* sums) {
  for_each_vector(width, [&](int64_t i, int64_t count) {
    const Vec normed = (load_upto(x + i, count) - mean) * scale;
    store_upto(sums + i, fma(normed, load_upto(dy + i, count), load_upto(sums + i, count)), count);
  });
}

void add_scaled(const float* x, float scale, int64_t width, float* sums) {
  for_each_vector(width, [&](int64_t i, int64_t count) {
    store_upto(sums + i, fma(load_upto(x + i, count), splat(scale), load_upto(sums + i, count)),
               count);
  });
}

void cross_entropy_gradient(float* logits, int64_t width, float log_sum, float weight) {
  for_each_vector(width, [&](int64_t i, int64_t count) {
    store_upto(logits + i, exp(load_upto(logits + i, count) - log_sum) * weight, count);
  });
}

float target_gradient(float logit, float log_sum, float weight) {
  return (exp_one(logit - log_sum) - 1.0f) * weight;
}

}  // namespace

void add_gradient_kernels(KernelTable& table) {
  table.gated_gradient[0] = gated_gradient<SiluSlope>;
  table.gated_gradient[1] = gated_gradient<GeluTanhSlope>;
  table.gated_gradient[2] = gated_gradient<GeluErfSlope>;
  table.gated_gradient[3] = gated_gradient<SigmoidSlope>;
  table.gated_gradient[4] = gated_gradient<ReluSlope>;
  table.gated_gradient[5] = clamped_swiglu_gradient;
  table.activation_gradient[0] = activation_gradient<SiluSlope>;
  table.activation_gradient[1] = activation_gradient<GeluTanhSlope>;
  table.activation_gradient[2] = activation_gradient<GeluErfSlope>;
  table.activation_gradient[3] = activation_gradient<SigmoidSlope>;
  table.activation_gradient[4] = activation_gradient<ReluSlope>;
  table.soft_cap_gradient = soft_cap_gradient;
  table.norm_scale = norm_scale;
  table.rms_norm_gradient = rms_norm_gradient;
  table.layer_norm_row = layer_norm_row;
  table.layer_norm_gradient = layer_norm_gradient;
  table.add_norm_weights = add_norm_weights;
  table.add_scaled = add_scaled;
  table.cross_entropy_gradient = cross_entropy_gradient;
  table.target_gradient = target_gradient;
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
