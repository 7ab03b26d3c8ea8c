// Operations that take each element of a row by itself: rows along x of the grid, columns along y.
#pragma once

#include "kernels/cuda/code/activations.h"
#include "kernels/cuda/code/rows.h"

namespace paceline::cuda {

constexpr uint32_t kElementThreads = 256;

struct NoShared {};

struct ElementParams {
  ConstRows x;
  ConstRows y;  // of operations with two inputs
  Rows out;     // may be an input
  int64_t width = 0;
  float number = 0.0f;  // a cap, or the factor of all rows
  ActivationKind activation = ActivationKind::silu;
  const float* factors = nullptr;  // of each row
};

// Calls body(column) for the columns of this thread.
template <class Body>
PL_DEVICE void for_each_column(int64_t width, Body&& body) {
  const int64_t step = int64_t{grid_size().y} * kElementThreads;
  const int64_t first = int64_t{block_index().y} * kElementThreads + thread_index();
  for (int64_t i = first; i < width; i += step) body(i);
}

struct Add {
  static constexpr std::string_view kName = "add";
  static constexpr uint32_t kThreads = kElementThreads;
  using Params = ElementParams;
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const float* const x = p.x.row(block_index().x);
    const float* const y = p.y.row(block_index().x);
    float* const out = p.out.row(block_index().x);
    for_each_column(p.width, [=](int64_t i) { out[i] = x[i] + y[i]; });
  }
};

struct Multiply {
  static constexpr std::string_view kName = "multiply";
  static constexpr uint32_t kThreads = kElementThreads;
  using Params = ElementParams;
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const float* const x = p.x.row(block_index().x);
    const float* const y = p.y.row(block_index().x);
    float* const out = p.out.row(block_index().x);
    for_each_column(p.width, [=](int64_t i) { out[i] = x[i] * y[i]; });
  }
};

struct Clear {
  static constexpr std::string_view kName = "clear";
  static constexpr uint32_t kThreads = kElementThreads;
  using Params = ElementParams;
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    float* const out = p.out.row(block_index().x);
    for_each_column(p.width, [=](int64_t i) { out[i] = 0.0f; });
  }
};

struct Scale {
  static constexpr std::string_view kName = "scale";
  static constexpr uint32_t kThreads = kElementThreads;
  using Params = ElementParams;
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const float* const x = p.x.row(block_index().x);
    float* const out = p.out.row(block_index().x);
    const float factor = p.factors != nullptr ? p.factors[block_index().x] : p.number;
    for_each_column(p.width, [=](int64_t i) { out[i] = x[i] * factor; });
  }
};

struct SoftCap {
  static constexpr std::string_view kName = "soft_cap";
  static constexpr uint32_t kThreads = kElementThreads;
  using Params = ElementParams;
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const float* const x = p.x.row(block_index().x);
    float* const out = p.out.row(block_index().x);
    const float cap = p.number;
    for_each_column(p.width, [=](int64_t i) { out[i] = hyperbolic_tangent(x[i] / cap) * cap; });
  }
};

struct Activate {
  static constexpr std::string_view kName = "activate";
  static constexpr uint32_t kThreads = kElementThreads;
  using Params = ElementParams;
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const float* const x = p.x.row(block_index().x);
    float* const out = p.out.row(block_index().x);
    const ActivationKind kind = p.activation;
    for_each_column(p.width, [=](int64_t i) { out[i] = activate(kind, x[i]); });
  }
};

// x is the gate, y what it multiplies.
struct ActivateGate {
  static constexpr std::string_view kName = "activate_gate";
  static constexpr uint32_t kThreads = kElementThreads;
  using Params = ElementParams;
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const float* const gate = p.x.row(block_index().x);
    const float* const up = p.y.row(block_index().x);
    float* const out = p.out.row(block_index().x);
    const ActivationKind kind = p.activation;
    for_each_column(p.width, [=](int64_t i) { out[i] = activate_gate(kind, gate[i], up[i]); });
  }
};

}  // namespace paceline::cuda
