#include "tests/kernels/gradient_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/gradients.h"
#include "tests/kernels/attention_pass.h"
#include "tests/kernels/op_inputs.h"

namespace paceline {
namespace {

constexpr uint64_t kGradientSeed = 20250718;

template <class Inputs, class Run>
OpInstance gradient_instance(std::shared_ptr<Inputs> inputs, Run run) {
  return {[inputs, run](Backend& backend) { run(backend.gradients(), *inputs); },
          [inputs] { return inputs->results(); }, inputs};
}

// The types whose gradients the benchmark measures.
bool is_measured(const WeightType& type) {
  return type.name == "bfloat16" || type.name == "q4x64" || type.name == "q8x64";
}

struct InputGradientInputs {
  OwnedTensor dy, dx;
  PackedMatrix w;

  std::vector<float> results() const { return to_vector(dx.view); }
};

OpCase input_gradient_case(const WeightType& type, int64_t rows, int64_t n, int64_t least_k,
                           CaseSize size) {
  const int64_t k = type.row_length(least_k);
  return {.name = fmt::format("matmul_input_gradient {} {}x{}x{}", type.name, rows, n, k),
          .size = size,
          .tolerance = 8e-7 * std::sqrt(static_cast<double>(n)),
          .rounded_tolerance = 1e-6 * std::sqrt(static_cast<double>(n)),  // sums are truncated
          .flops = 2.0 * static_cast<double>(rows * n * k),
          .make = [=](ThreadPool& threads, Memory& memory) {
            auto inputs = std::make_shared<InputGradientInputs>();
            inputs->dy = random_tensor(memory, DType::f32, {rows, n}, kGradientSeed);
            inputs->dx = allocate_tensor(memory, DType::f32, {rows, k});
            inputs->w = random_matrix(memory, threads, type, n, k, kGradientSeed + 1);
            return gradient_instance(inputs, [](GradientOps& ops, InputGradientInputs& in) {
              ops.matmul_input_gradient(in.dy.view, in.w, in.dx.view);
            });
          }};
}

OpCase add_input_gradient_case(const WeightType& type, int64_t rows, int64_t n, int64_t least_k) {
  OpCase one = input_gradient_case(type, rows, n, least_k, CaseSize::small);
  const int64_t k = type.row_length(least_k);
  one.name = "add_" + one.name;
  one.make = [=](ThreadPool& threads, Memory& memory) {
    auto inputs = std::make_shared<InputGradientInputs>();
    inputs->dy = random_tensor(memory, DType::f32, {rows, n}, kGradientSeed);
    inputs->dx = allocate_tensor(memory, DType::f32, {rows, k});
    inputs->w = random_matrix(memory, threads, type, n, k, kGradientSeed + 1);
    return gradient_instance(inputs, [](GradientOps& ops, InputGradientInputs& in) {
      std::fill_n(in.dx.view.elements<float>(), in.dx.view.num_elements(), 0.75f);
      ops.add_matmul_input_gradient(in.dy.view, in.w, in.dx.view);
    });
  };
  return one;
}

void add_input_gradient_cases(std::vector<OpCase>& cases) {
  for (const WeightType& type : weight_types()) {
    cases.push_back(add_input_gradient_case(type, 5, 8, 300));
    cases.push_back(add_input_gradient_case(type, 13, 1025, 33));
  }
  struct Shape {
    int64_t rows, n, k;
  };
  for (const WeightType& type : weight_types()) {
    for (const auto& [rows, n, k] : std::initializer_list<Shape>{{1, 1, 1},
                                                                 {2, 31, 2},
                                                                 {3, 33, 5},
                                                                 {5, 64, 300},
                                                                 {13, 1025, 33},
                                                                 {37, 2100, 97},
                                                                 {300, 70, 129}}) {
      cases.push_back(input_gradient_case(type, rows, n, k, CaseSize::small));
    }
    if (!is_measured(type)) continue;
    for (const int64_t rows : {512, 2048}) {
      for (const auto& [n, k] : {std::pair{2048, 2048}, {8192, 2048}, {2048, 8192}}) {
        cases.push_back(input_gradient_case(type, rows, n, k, CaseSize::large));
      }
    }
  }
}

struct WeightGradientInputs {
  OwnedTensor dy, x, before, dw;

  std::vector<float> results() const { return to_vector(dw.view); }
};

OpCase weight_gradient_case(OperandRounding rounding, int64_t rows, int64_t n, int64_t k,
                            CaseSize size) {
  const bool is_rounded = rounding == OperandRounding::bfloat16;
  return {.name = fmt::format("matmul_weight_gradient {} {}x{}x{}",
                              is_rounded ? "bfloat16" : "float32", rows, n, k),
          .size = size,
          .tolerance = 8e-7 * std::sqrt(static_cast<double>(rows)),
          .flops = 2.0 * static_cast<double>(rows * n * k),
          .make = [=](ThreadPool&, Memory& memory) {
            auto inputs = std::make_shared<WeightGradientInputs>();
            inputs->dy = random_tensor(memory, DType::f32, {rows, n}, kGradientSeed);
            inputs->x = random_tensor(memory, DType::f32, {rows, k}, kGradientSeed + 1);
            inputs->before = random_tensor(memory, DType::f32, {n, k}, kGradientSeed + 2);
            inputs->dw = allocate_tensor(memory, DType::f32, {n, k});
            return gradient_instance(inputs, [=](GradientOps& ops, WeightGradientInputs& in) {
              if (size == CaseSize::small) copy_elements(in.before.view, in.dw.view);
              ops.matmul_weight_gradient(in.dy.view, in.x.view, rounding, in.dw.view);
            });
          }};
}

void add_weight_gradient_cases(std::vector<OpCase>& cases) {
  struct Shape {
    int64_t rows, n, k;
  };
  for (const OperandRounding rounding : {OperandRounding::none, OperandRounding::bfloat16}) {
    for (const auto& [rows, n, k] : std::initializer_list<Shape>{{1, 1, 1},
                                                                 {2, 3, 31},
                                                                 {7, 33, 5},
                                                                 {31, 9, 64},
                                                                 {256, 40, 33},
                                                                 {257, 17, 100},
                                                                 {700, 66, 129},
                                                                 {2500, 20, 40},
                                                                 {700, 100, 8},
                                                                 {2500, 70, 16},
                                                                 {5, 4200, 34}}) {
      cases.push_back(weight_gradient_case(rounding, rows, n, k, CaseSize::small));
    }
    for (const auto& [n, k] : {std::pair{2048, 2048}, {8192, 2048}, {2048, 8192}}) {
      cases.push_back(weight_gradient_case(rounding, 2048, n, k, CaseSize::large));
    }
    cases.push_back(weight_gradient_case(rounding, 512, 2048, 2048, CaseSize::large));
    cases.push_back(weight_gradient_case(rounding, 2048, 8192, 8, CaseSize::large));
  }
}

struct AttentionGradientOp {
  AttentionPass pass;

  std::vector<float> results() const { return pass.gradients(); }
};

OpCase attention_gradient_case(const AttentionPassShape& shape, CaseSize size) {
  double pairs = 0.0;
  for (const int64_t length : shape.lengths) {
    for (int64_t row = 0; row < length; ++row) {
      pairs += static_cast<double>(shape.window > 0 ? std::min(shape.window, row + 1) : row + 1);
    }
  }
  return {.name = "attention_gradient " + shape.name(),
          .size = size,
          .tolerance = shape.rounding == OperandRounding::bfloat16 ? 2e-2 : 5e-6,
          .flops = 10.0 * pairs * static_cast<double>(shape.head_dim * shape.heads),
          .make = [shape](ThreadPool& threads, Memory& memory) {
            auto op = std::make_shared<AttentionGradientOp>(
                AttentionGradientOp{AttentionPass(shape, kGradientSeed, memory)});
            op->pass.forward(*make_cpu_backend(choose_isa(), threads, memory));
            return OpInstance{[op](Backend& backend) { op->pass.backward(backend); },
                              [op] { return op->results(); }, op};
          }};
}

void add_attention_gradient_cases(std::vector<OpCase>& cases) {
  const auto add_sizes = [&](AttentionPassShape shape, CaseSize size) {
    for (const OperandRounding rounding : {OperandRounding::none, OperandRounding::bfloat16}) {
      shape.rounding = rounding;
      cases.push_back(attention_gradient_case(shape, size));
    }
  };
  const auto add = [&](const AttentionPassShape& shape) { add_sizes(shape, CaseSize::small); };
  const std::vector<int64_t> mixed = {70, 1, 130, 64};
  for (const int64_t head_dim : {1, 16, 20, 64, 80, 128}) {
    add({.head_dim = head_dim, .lengths = mixed});
  }
  for (const int64_t group : {1, 3, 8}) add({.heads = 2 * group, .lengths = mixed});
  for (const int64_t window : {1, 2, 63, 64, 65, 100}) add({.window = window, .lengths = mixed});
  add({.soft_cap = 2.0f, .lengths = mixed});
  add({.soft_cap = 1.0f, .window = 90, .lengths = {200, 3}});
  add({.heads = 1, .kv_heads = 1, .head_dim = 32, .lengths = {400}});
  for (const int64_t head_dim : {64, 128}) {
    for (const std::vector<int64_t>& lengths :
         {std::vector<int64_t>{2048}, {512, 512, 512, 512}, {512}}) {
      add_sizes({.heads = 32, .kv_heads = 8, .head_dim = head_dim, .lengths = lengths},
                CaseSize::large);
    }
  }
}

// Inputs [rows, width] of gradients of operations on rows, and what they may write.
struct RowGradientInputs {
  RowGradientInputs(Memory& memory, int64_t rows, int64_t width, float size) {
    const Extents shape = {rows, width};
    x = random_tensor(memory, DType::f32, shape, kGradientSeed, size);
    y = random_tensor(memory, DType::f32, shape, kGradientSeed + 1);
    dy = random_tensor(memory, DType::f32, shape, kGradientSeed + 2);
    weight = random_tensor(memory, DType::f32, {width}, kGradientSeed + 3);
    before = random_tensor(memory, DType::f32, {width}, kGradientSeed + 4);
    dx = allocate_tensor(memory, DType::f32, shape);
    dw = allocate_tensor(memory, DType::f32, {rows + 1, width});
    Draws draws(kGradientSeed);
    for (int64_t r = 0; r < rows; ++r) {
      ids.push_back(static_cast<int32_t>(draws.below(std::min(rows + 1, width))));
      weights.push_back(r % 4 == 3 ? 0.0f : draws.uniform(-1.0f, 1.0f));
    }
    losses.resize(ids.size());
  }

  std::vector<float> results() const {
    std::vector<float> all = to_vector(dx.view);
    const std::vector<float> more = to_vector(dw.view);
    all.insert(all.end(), more.begin(), more.end());
    all.insert(all.end(), losses.begin(), losses.end());
    return all;
  }

  OwnedTensor x, y, dy, weight, before, dx;
  OwnedTensor dw;  // [rows + 1, width]
  std::vector<int32_t> ids;
  std::vector<float> weights, losses;
};

struct RowGradientOp {
  const char* name;
  int64_t passes;  // over rows, read or written
  std::function<void(GradientOps&, RowGradientInputs&)> run;
  float size = 1.0f;
  double tolerance = 5e-6;
};

RowGradientOp gate_gradient(const char* name, Activation kind) {
  return {
      name, 5,
      [kind](GradientOps& ops, RowGradientInputs& in) {
        const Tensor dup = in.dw.view.slice(0, 0, in.x.view.size(0));
        ops.gated_activation_gradient(kind, {in.x.view, in.y.view, in.dy.view}, in.dx.view, dup);
      },
      6.0f};
}

std::vector<RowGradientOp> row_gradient_ops() {
  return {
      {"rms_norm_gradient", 3,
       [](GradientOps& ops, RowGradientInputs& in) {
         const int64_t width = in.x.view.size(1);
         const Tensor dweight = in.dw.view.slice(0, 0, 1).reshape({width});
         copy_elements(in.before.view, dweight);
         ops.rms_norm_gradient({in.x.view, in.weight.view, in.dy.view}, 1e-2f, in.dx.view,
                               &dweight);
       }},
      {"bias_gradient", 1,
       [](GradientOps& ops, RowGradientInputs& in) {
         const int64_t width = in.x.view.size(1);
         const Tensor dbias = in.dw.view.slice(0, 0, 1).reshape({width});
         copy_elements(in.before.view, dbias);
         ops.bias_gradient(in.dy.view, dbias);
       }},
      {"layer_norm_gradient", 3,
       [](GradientOps& ops, RowGradientInputs& in) {
         const int64_t width = in.x.view.size(1);
         const Tensor dweight = in.dw.view.slice(0, 0, 1).reshape({width});
         const Tensor dbias = in.dw.view.slice(0, 1, 2).reshape({width});
         copy_elements(in.before.view, dweight);
         copy_elements(in.before.view, dbias);
         ops.layer_norm_gradient({in.x.view, in.weight.view, in.dy.view}, 1e-2f, in.dx.view,
                                 &dweight, &dbias);
       },
       1.0f, 6e-6},
      {"gelu_tanh_alone_gradient", 3,
       [](GradientOps& ops, RowGradientInputs& in) {
         ops.activation_gradient(Activation::gelu_tanh, in.x.view, in.dy.view, in.dx.view);
       },
       6.0f},
      gate_gradient("silu_gradient", Activation::silu),
      gate_gradient("gelu_tanh_gradient", Activation::gelu_tanh),
      gate_gradient("gelu_erf_gradient", Activation::gelu_erf),
      gate_gradient("relu_gradient", Activation::relu),
      {"clamped_swiglu_gradient", 5,
       [](GradientOps& ops, RowGradientInputs& in) {
         const Tensor dup = in.dw.view.slice(0, 0, in.x.view.size(0));
         ops.gated_activation_gradient(Activation::clamped_swiglu,
                                       {in.x.view, in.x.view, in.dy.view}, in.dx.view, dup);
       },
       9.0f},
      {"soft_cap_gradient", 3,
       [](GradientOps& ops, RowGradientInputs& in) {
         ops.soft_cap_gradient(in.x.view, 30.0f, in.dy.view, in.dx.view);
       },
       100.0f},
      {"embedding_gradient", 3,
       [](GradientOps& ops, RowGradientInputs& in) {
         std::fill_n(in.dw.view.elements<float>(), in.dw.view.num_elements(), 0.5f);
         ops.embedding_gradient(in.ids, 1.7f, in.dy.view, in.dw.view);
       }},
      {"cross_entropy_gradient", 4,
       [](GradientOps& ops, RowGradientInputs& in) {
         copy_elements(in.x.view, in.dx.view);
         ops.cross_entropy_gradient(in.ids, in.weights, in.dx.view, in.losses);
       },
       10.0f},
  };
}

OpCase row_gradient_case(const RowGradientOp& op, int64_t rows, int64_t width, CaseSize size) {
  return {.name = fmt::format("{} {}x{}", op.name, rows, width),
          .size = size,
          .tolerance = op.tolerance,
          .bytes = static_cast<double>(op.passes * rows * width * 4),
          .make = [=](ThreadPool&, Memory& memory) {
            return gradient_instance(
                std::make_shared<RowGradientInputs>(memory, rows, width, op.size), op.run);
          }};
}

void add_row_gradient_cases(std::vector<OpCase>& cases) {
  for (const RowGradientOp& op : row_gradient_ops()) {
    for (const auto& [rows, width] :
         {std::pair{1, 1}, {3, 7}, {5, 16}, {2, 33}, {7, 100}, {4, 257}, {300, 64}, {2, 9011}}) {
      cases.push_back(row_gradient_case(op, rows, width, CaseSize::small));
    }
    cases.push_back(row_gradient_case(op, 2048, 8192, CaseSize::large));
  }
}

}  // namespace

std::vector<OpCase> gradient_cases() {
  std::vector<OpCase> cases;
  add_input_gradient_cases(cases);
  add_weight_gradient_cases(cases);
  add_attention_gradient_cases(cases);
  add_row_gradient_cases(cases);
  return cases;
}

}  // namespace paceline
