// Element-wise operations along a row. A tail runs the same vector code, so an element's bits don't
// depend on its position.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/vec_math.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

struct Silu {
  PL_INLINE Vec apply(Vec x) { return x / (1.0f + exp(-x)); }
};

struct Sigmoid {
  PL_INLINE Vec apply(Vec x) { return 1.0f / (1.0f + exp(-x)); }
};

// NaN stays NaN.
struct Relu {
  PL_INLINE Vec apply(Vec x) { return x < 0.0f ? Vec{} : x; }
};

// Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016): the tanh form and the exact one.
struct GeluTanh {
  PL_INLINE Vec apply(Vec x) {
    const Vec cubic = fma(x * x * x, splat(0.044715f), x);
    return x * 0.5f * (1.0f + tanh(cubic * 0.7978845608f));
  }
};
struct GeluErf {
  PL_INLINE Vec apply(Vec x) { return x * 0.5f * (1.0f + erf(x * 0.7071067812f)); }
};

template <class Activation>
void gated_activation(const float* gate, const float* up, int64_t width, float* out) {
  for_each_vector(width, [&](int64_t i, int64_t count) {
    const Vec activated = Activation::apply(load_upto(gate + i, count));
    store_upto(out + i, activated * load_upto(up + i, count), count);
  });
}

// gpt-oss's (transformers' GptOssExperts._apply_gate). NaN stays NaN: min and max return their
// second argument beside it.
void clamped_swiglu(const float* gate, const float* up, int64_t width, float* out) {
  const Vec limit = splat(7.0f);
  for_each_vector(width, [&](int64_t i, int64_t count) {
    const Vec x = min(limit, load_upto(gate + i, count));
    const Vec y = min(limit, max(-limit, load_upto(up + i, count)));
    store_upto(out + i, x / (1.0f + exp(x * -1.702f)) * (y + 1.0f), count);
  });
}

template <class Activation>
void activation(const float* x, int64_t width, float* out) {
  for_each_vector(width, [&](int64_t i, int64_t count) {
    store_upto(out + i, Activation::apply(load_upto(x + i, count)), count);
  });
}

// exp(x) - 1 - x: near 0, where the difference would leave few bits, its series.
PL_INLINE Vec exp_beyond_linear(Vec x) {
  constexpr float kTerms[] = {1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f};
  Vec series = splat(1.0f / 40320);
  for (const float term : kTerms) series = fma(series, x, splat(term));
  return x > -0.5f ? series * x * x : exp(x) - 1.0f - x;
}

// Between the limit and 0, exp(limit) - 1 takes the place of exp(x) - 1. NaN stays NaN.
void xielu(const float* x, const XieluWeights& weights, int64_t width, float* out) {
  const Vec limit = splat(weights.limit);
  const Vec of_limit = exp_beyond_linear(limit) + limit;
  for_each_vector(width, [&](int64_t i, int64_t count) {
    const Vec value = load_upto(x + i, count);
    const Vec below = value > limit ? of_limit - value : exp_beyond_linear(value);
    const Vec curve = value > 0.0f ? value * value * weights.positive : below * weights.negative;
    store_upto(out + i, fma(value, splat(weights.linear), curve), count);
  });
}

// Comparisons with NaN are false, so it stays.
void clamp(const float* x, float limit, int64_t width, float* out) {
  const Vec high = splat(limit), low = splat(-limit);
  for_each_vector(width, [&](int64_t i, int64_t count) {
    const Vec value = load_upto(x + i, count);
    const Vec below = value > high ? high : value;
    store_upto(out + i, below < low ? low : below, count);
  });
}

void scale(const float* x, float factor, int64_t width, float* out) {
  for_each_vector(width, [&](int64_t i, int64_t count) {
    store_upto(out + i, load_upto(x + i, count) * factor, count);
  });
}

void add(const float* x, const float* y, int64_t width, float* out) {
  for_each_vector(width, [&](int64_t i, int64_t count) {
    store_upto(out + i, load_upto(x + i, count) + load_upto(y + i, count), count);
  });
}

void soft_cap(const float* x, float cap, int64_t width, float* out) {
  for_each_vector(width, [&](int64_t i, int64_t count) {
    store_upto(out + i, tanh(load_upto(x + i, count) / cap) * cap, count);
  });
}

}  // namespace

void add_elementwise_kernels(KernelTable& table) {
  table.gated_activation[0] = gated_activation<Silu>;
  table.gated_activation[1] = gated_activation<GeluTanh>;
  table.gated_activation[2] = gated_activation<GeluErf>;
  table.activation[0] = activation<Silu>;
  table.activation[1] = activation<GeluTanh>;
  table.activation[2] = activation<GeluErf>;
  table.gated_activation[3] = gated_activation<Sigmoid>;
  table.activation[3] = activation<Sigmoid>;
  table.gated_activation[4] = gated_activation<Relu>;
  table.activation[4] = activation<Relu>;
  table.gated_activation[5] = clamped_swiglu;
  table.xielu = xielu;
  table.clamp = clamp;
  table.scale = scale;
  table.add = add;
  table.soft_cap = soft_cap;
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
