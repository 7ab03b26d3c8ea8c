#include "tests/kernels/op_cases.h"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "tests/kernels/gradient_cases.h"
#include "tests/kernels/kv_cases.h"
#include "tests/kernels/lora_cases.h"
#include "tests/kernels/matrix_cases.h"
#include "tests/kernels/mixture_cases.h"
#include "tests/kernels/op_inputs.h"
#include "tests/kernels/op_instance.h"
#include "tests/kernels/recurrent_cases.h"

namespace paceline {
namespace {

// Inputs [rows, width] and an output like them, for ops that take a row to a row.
struct Rows {
  Rows(Memory& memory, int64_t rows, int64_t width, float size)
      : x(random_tensor(memory, DType::f32, {rows, width}, kCaseSeed, size)),
        y(random_tensor(memory, DType::f32, {rows, width}, kCaseSeed + 1, size)),
        weight(random_tensor(memory, DType::f32, {width}, kCaseSeed + 2)),
        sum(allocate_tensor(memory, DType::f32, {rows, width})),
        out(allocate_tensor(memory, DType::f32, {rows, width})) {}

  OwnedTensor x, y, weight, sum, out;
};

// The sum of x, or its norm, and y; then the norm of it.
void add_norm(Backend& backend, Rows& rows, bool has_branch_norm) {
  const RmsNormWeights branch_norm{rows.weight.view, 1e-6f}, norm{rows.weight.view, 1e-5f};
  backend.scale(rows.y.view, std::array{1.0f}, rows.sum.view);
  backend.add_rms_norm(rows.sum.view, rows.x.view, has_branch_norm ? &branch_norm : nullptr, norm,
                       rows.out.view);
}

struct RowOp {
  const char* name;
  double tolerance;
  int64_t passes;  // over rows, read or written
  std::function<void(Backend&, Rows&)> run;
  float size = 1.0f;  // of the inputs
};

const std::vector<RowOp>& row_ops() {
  static const std::vector<RowOp> ops = {
      {"rms_norm", 1e-6, 2,
       [](Backend& b, Rows& r) { b.rms_norm(r.x.view, r.weight.view, 1e-5f, r.out.view); }},
      {"add_rms_norm", 1e-6, 4, [](Backend& b, Rows& r) { add_norm(b, r, false); }},
      {"add_rms_norm of a norm", 1e-6, 4, [](Backend& b, Rows& r) { add_norm(b, r, true); }},
      {"add_rms_norm, the sum", 1e-6, 4,
       [](Backend& b, Rows& r) {
         add_norm(b, r, true);
         b.scale(r.sum.view, std::array{1.0f}, r.out.view);
       }},
      {"layer_norm", 1e-6, 2,
       [](Backend& b, Rows& r) {
         b.layer_norm(r.x.view, r.weight.view, nullptr, 1e-5f, r.out.view);
       }},
      {"layer_norm with a bias", 1e-6, 2,
       [](Backend& b, Rows& r) {
         const Tensor bias = r.y.view.slice(0, 0, 1).reshape({r.y.view.size(1)});
         b.layer_norm(r.x.view, r.weight.view, &bias, 1e-5f, r.out.view);
       }},
      {"silu", 1e-6, 2,
       [](Backend& b, Rows& r) { b.activation(Activation::silu, r.x.view, r.out.view); }, 8.0f},
      {"gelu_tanh", 1e-6, 2,
       [](Backend& b, Rows& r) { b.activation(Activation::gelu_tanh, r.x.view, r.out.view); },
       5.0f},
      {"gelu_erf", 1e-6, 2,
       [](Backend& b, Rows& r) { b.activation(Activation::gelu_erf, r.x.view, r.out.view); }, 5.0f},
      {"scale", 0.0, 2,
       [](Backend& b, Rows& r) {
         std::vector<float> factors;
         for (int64_t row = 0; row < r.x.view.size(0); ++row) {
           factors.push_back(0.3f * static_cast<float>(row + 1));
         }
         b.scale(r.x.view, factors, r.out.view);
       }},
      {"silu_gate", 1e-6, 3,
       [](Backend& b, Rows& r) {
         b.gated_activation(Activation::silu, r.x.view, r.y.view, r.out.view);
       },
       8.0f},
      {"gelu_tanh_gate", 1e-6, 3,
       [](Backend& b, Rows& r) {
         b.gated_activation(Activation::gelu_tanh, r.x.view, r.y.view, r.out.view);
       },
       5.0f},
      {"gelu_erf_gate", 1e-6, 3,
       [](Backend& b, Rows& r) {
         b.gated_activation(Activation::gelu_erf, r.x.view, r.y.view, r.out.view);
       },
       5.0f},
      {"relu_gate", 1e-6, 3,
       [](Backend& b, Rows& r) {
         b.gated_activation(Activation::relu, r.x.view, r.y.view, r.out.view);
       },
       5.0f},
      {"clamped_swiglu", 1e-6, 3,
       [](Backend& b, Rows& r) {
         b.gated_activation(Activation::clamped_swiglu, r.x.view, r.y.view, r.out.view);
       },
       12.0f},
      {"apply_sinks", 1e-6, 2,
       [](Backend& b, Rows& r) {  // the rows' first elements are sums, those of the weight sinks
         const int64_t rows = r.x.view.size(0), width = r.x.view.size(1);
         const int64_t heads = width % 4 == 0 ? 4 : 1;
         copy_elements(r.y.view, r.out.view);
         b.apply_sinks(
             r.x.view.slice(1, 0, heads), r.weight.view.slice(0, 0, heads),
             r.out.view.as_strided({rows, heads, width / heads}, {width, width / heads, 1}));
       },
       8.0f},
      {"add", 0.0, 3, [](Backend& b, Rows& r) { b.add(r.x.view, r.y.view, r.out.view); }},
      {"soft_cap", 5e-7, 2, [](Backend& b, Rows& r) { b.soft_cap(r.x.view, 30.0f, r.out.view); },
       100.0f},
      {"log_sum_exp", 1e-6, 1,
       [](Backend& b, Rows& r) {
         b.log_sum_exp(r.x.view,
                       {r.out.view.elements<float>(), static_cast<size_t>(r.x.view.size(0))});
       },
       10.0f},
  };
  return ops;
}

// The first row of the output becomes the pooled rows of x, from position 5 on.
void pool_in_two_calls(Backend& backend, RowPooling how, Rows& rows) {
  const Tensor& x = rows.x.view;
  const int64_t half = x.size(0) / 2;
  std::vector<double> pooled(static_cast<size_t>(x.size(1)), how == RowPooling::max ? -1e9 : 0.5);
  backend.pool_rows(how, x.slice(0, 0, half), 5, pooled);
  backend.pool_rows(how, x.slice(0, half, x.size(0)), 5 + half, pooled);
  for (size_t i = 0; i < pooled.size(); ++i) {
    rows.out.view.row<float>(0)[i] = static_cast<float>(pooled[i]);
  }
}

// Ops that move or inspect rows, and transfers of elements to the CPU and back.
const std::vector<RowOp>& moving_ops() {
  static const std::vector<RowOp> ops = {
      {"gather_rows", 0.0, 2,
       [](Backend& b, Rows& r) {
         std::vector<int32_t> rows;  // every second one, the last first, and then the first again
         const int64_t num_rows = r.x.view.size(0);
         for (int64_t i = 0; i < num_rows; ++i) {
           rows.push_back(static_cast<int32_t>((num_rows - 1) * (i + 1) % num_rows));
         }
         b.gather_rows(r.x.view, rows, r.out.view);
       }},
      {"clear", 0.0, 1,
       [](Backend& b, Rows& r) {  // the first columns; the others stay as they are
         copy_elements(r.x.view, r.out.view);
         b.clear(r.out.view.slice(1, 0, (r.out.view.size(1) + 1) / 2));
       }},
      {"add_scaled_rows", 1e-6, 3,
       [](Backend& b, Rows& r) {  // several to most rows, in turn, and none to the last one
         const int64_t num_rows = r.x.view.size(0);
         std::vector<int32_t> rows;
         std::vector<float> weights;
         for (int64_t i = 0; i < num_rows; ++i) {
           rows.push_back(static_cast<int32_t>(i * 5 % std::max<int64_t>(1, num_rows / 2)));
           weights.push_back(static_cast<float>(i % 7) - 2.5f);
         }
         copy_elements(r.y.view, r.out.view);
         b.add_scaled_rows(r.x.view, rows, weights, r.out.view);
       }},
      {"finite_rows", 0.0, 1,
       [](Backend& b, Rows& r) {
         const int64_t num_rows = r.x.view.size(0), width = r.x.view.size(1);
         const float spoilt[] = {std::numeric_limits<float>::quiet_NaN(),
                                 -std::numeric_limits<float>::infinity(),
                                 std::numeric_limits<float>::max()};
         for (int64_t i = 0; i < num_rows; i += 2) {  // each at another column; the last is finite
           r.x.view.row<float>(i)[i * 7 % width] = spoilt[i / 2 % 3];
         }
         std::vector<uint8_t> finite(static_cast<size_t>(num_rows), 2);
         b.finite_rows(r.x.view, finite);
         std::copy(finite.begin(), finite.end(), r.out.view.elements<float>());
       }},
      {"pool_rows sum", 0.0, 1,
       [](Backend& b, Rows& r) { pool_in_two_calls(b, RowPooling::sum, r); }},
      {"pool_rows weighted", 0.0, 1,
       [](Backend& b, Rows& r) { pool_in_two_calls(b, RowPooling::weighted_sum, r); }},
      {"pool_rows max", 0.0, 1,
       [](Backend& b, Rows& r) { pool_in_two_calls(b, RowPooling::max, r); }},
      {"read and write", 0.0, 2,
       [](Backend& b, Rows& r) {
         std::vector<float> staging;
         b.write(b.read(r.x.view, staging), r.out.view);
       }},
  };
  return ops;
}

OpCase row_case(const RowOp& op, int64_t rows, int64_t width, CaseSize size) {
  return {.name = fmt::format("{} {}x{}", op.name, rows, width),
          .size = size,
          .tolerance = op.tolerance,
          .bytes = static_cast<double>(op.passes * rows * width * 4),
          .make = [op, rows, width](ThreadPool&, Memory& memory) {
            return instance(std::make_shared<Rows>(memory, rows, width, op.size), op.run);
          }};
}

struct RopeInputs {
  OwnedTensor x, inv_freq, table, out;
  std::vector<int32_t> positions;
};

// The table, then the rotation of every head by it.
OpCase rope_case(RopePairs pairs, int64_t rows, int64_t heads, int64_t head_dim, int64_t half,
                 CaseSize size) {
  return {.name = fmt::format("rope {} {}x{}x{} half {}",
                              pairs == RopePairs::halves ? "halves" : "neighbours", rows, heads,
                              head_dim, half),
          .size = size,
          .tolerance = 1e-6,
          .bytes = static_cast<double>(2 * rows * heads * head_dim * 4),
          .make = [=](ThreadPool&, Memory& memory) {
            auto inputs = std::make_shared<RopeInputs>();
            const Extents shape = {rows, heads, head_dim};
            inputs->x = random_tensor(memory, DType::f32, shape, kCaseSeed, 3.0f);
            inputs->out = allocate_tensor(memory, DType::f32, shape);
            inputs->inv_freq = allocate_tensor(memory, DType::f32, {half});
            inputs->table = allocate_tensor(memory, DType::f32, {rows, half, 2});
            Draws draws(kCaseSeed);
            for (int64_t i = 0; i < half; ++i) {
              const double exponent = -static_cast<double>(i) / static_cast<double>(half);
              inputs->inv_freq.view.elements<float>()[i] =
                  static_cast<float>(std::pow(10000.0, exponent));
            }
            for (int64_t r = 0; r < rows; ++r) {
              inputs->positions.push_back(static_cast<int32_t>(draws.below(200000)));
            }
            return instance(inputs, [pairs](Backend& backend, RopeInputs& in) {
              copy_elements(in.x.view, in.out.view);
              backend.rope_table(in.positions, in.inv_freq.view, 1.2f, in.table.view);
              backend.rope(in.table.view, pairs, in.out.view);
            });
          }};
}

void add_row_cases(std::vector<OpCase>& cases) {
  for (const RowOp& op : moving_ops()) {
    for (const auto& [rows, width] : {std::pair{1, 1}, {3, 7}, {5, 33}, {65, 640}}) {
      cases.push_back(row_case(op, rows, width, CaseSize::small));
    }
    cases.push_back(row_case(op, 512, 8192, CaseSize::large));
  }
  for (const RowOp& op : row_ops()) {
    for (const auto& [rows, width] :
         {std::pair{1, 1}, {3, 7}, {5, 16}, {2, 33}, {7, 100}, {4, 257}}) {
      cases.push_back(row_case(op, rows, width, CaseSize::small));
    }
    cases.push_back(row_case(op, 2, 20011, CaseSize::small));
    cases.push_back(row_case(op, 65, 640, CaseSize::small));
    cases.push_back(row_case(op, 512, 8192, CaseSize::large));
    cases.push_back(row_case(op, 1, 8192, CaseSize::large));
    cases.push_back(row_case(op, 1, 128256, CaseSize::large));
  }
}

void add_rope_cases(std::vector<OpCase>& cases) {
  for (const RopePairs pairs : {RopePairs::halves, RopePairs::neighbours}) {
    for (const auto& [head_dim, half] :
         {std::pair{32, 16}, {64, 32}, {20, 10}, {96, 24}, {256, 128}, {6, 1}, {18, 9}}) {
      cases.push_back(rope_case(pairs, 5, 3, head_dim, half, CaseSize::small));
    }
    cases.push_back(rope_case(pairs, 512, 40, 64, 32, CaseSize::large));
  }
}

}  // namespace

std::vector<OpCase> op_cases() {
  std::vector<OpCase> cases;
  for (const auto& more :
       {matrix_cases(), lora_cases(), mixture_cases(), kv_cases(), recurrent_cases()}) {
    cases.insert(cases.end(), more.begin(), more.end());
  }
  add_row_cases(cases);
  add_rope_cases(cases);
  const std::vector<OpCase> gradients = gradient_cases();
  cases.insert(cases.end(), gradients.begin(), gradients.end());
  return cases;
}

}  // namespace paceline
