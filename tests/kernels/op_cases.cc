#include "tests/kernels/op_cases.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "tests/kernels/gradient_cases.h"
#include "tests/kernels/lora_cases.h"
#include "tests/kernels/mixture_cases.h"
#include "tests/kernels/op_inputs.h"

namespace paceline {
namespace {

constexpr uint64_t kCaseSeed = 20240611;
constexpr DType kKvTypes[] = {DType::f32, DType::f16, DType::bf16, DType::i8};
const WeightType kBf16 = {"bfloat16", DType::bf16, {}};

// Inputs [rows, width] and an output like them, for ops that take a row to a row.
struct Rows {
  Rows(Memory& memory, int64_t rows, int64_t width, float size)
      : x(random_tensor(memory, DType::f32, {rows, width}, kCaseSeed, size)),
        y(random_tensor(memory, DType::f32, {rows, width}, kCaseSeed + 1, size)),
        weight(random_tensor(memory, DType::f32, {width}, kCaseSeed + 2)),
        out(allocate_tensor(memory, DType::f32, {rows, width})) {}

  OwnedTensor x, y, weight, out;
};

template <class Inputs, class Run>
OpInstance instance(std::shared_ptr<Inputs> inputs, Run run) {
  const Tensor out = inputs->out.view;
  return {[inputs, run](Backend& backend) { run(backend, *inputs); },
          [out] { return to_vector(out); }, inputs};
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

struct MatmulInputs {
  OwnedTensor x, bias, out;
  PackedMatrix w;
};

OpCase matmul_case(const WeightType& type, int64_t rows, int64_t n, int64_t least_k,
                   CaseSize size) {
  const int64_t k = type.row_length(least_k);
  const double weights = static_cast<double>(n * k) * type.bytes();
  const bool is_product = rows >= 16;
  return {.name = fmt::format("matmul {} {}x{}x{}", type.name, rows, n, k),
          .size = size,
          .tolerance = 8e-7 * std::sqrt(static_cast<double>(k)),
          .flops = is_product ? 2.0 * static_cast<double>(rows * n * k) : 0.0,
          .bytes = is_product ? 0.0 : weights,
          .make = [=](ThreadPool& threads, Memory& memory) {
            auto inputs = std::make_shared<MatmulInputs>();
            inputs->x = random_tensor(memory, DType::f32, {rows, k}, kCaseSeed);
            inputs->bias = random_tensor(memory, DType::f32, {n}, kCaseSeed + 1);
            inputs->out = allocate_tensor(memory, DType::f32, {rows, n});
            inputs->w = random_matrix(memory, threads, type, n, k, kCaseSeed + 2);
            const bool has_bias = n % 2 == 1;
            return instance(inputs, [has_bias](Backend& backend, MatmulInputs& in) {
              backend.matmul(in.x.view, in.w, has_bias ? &in.bias.view : nullptr, in.out.view);
            });
          }};
}

struct PackInputs {
  OwnedTensor x, weights, out;
  std::vector<std::unique_ptr<GroupedRows>> rows;
};

PackedMatrix pack_parts(Backend& backend, const WeightType& type, const PackInputs& in) {
  if (!type.groups) {
    const int64_t n = in.weights.view.size(0);
    const Tensor parts[] = {in.weights.view.slice(0, 0, n / 3), in.weights.view.slice(0, n / 3, n)};
    return backend.pack_matrix(parts, type.dtype);
  }
  const GroupedRows* const parts[] = {in.rows[0].get(), in.rows[1].get()};
  return backend.pack_groups(parts, type.groups->activations);
}

// Two parts packed as one matrix, some of its columns gathered, and a product with those.
OpCase pack_case(const WeightType& type, int64_t n, int64_t least_k) {
  const int64_t k = type.row_length(least_k), rows = 3;
  return {.name = fmt::format("pack and gather {} {}x{}", type.name, n, k),
          .tolerance = 8e-7 * std::sqrt(static_cast<double>(k)),
          .make = [=](ThreadPool&, Memory& memory) {
            auto inputs = std::make_shared<PackInputs>();
            const std::vector<int32_t> columns = {static_cast<int32_t>(n - 1), 0,
                                                  static_cast<int32_t>(n / 2), 0};
            inputs->x = random_tensor(memory, DType::f32, {rows, k}, kCaseSeed);
            inputs->out = allocate_tensor(memory, DType::f32, {rows, std::ssize(columns)});
            if (type.groups) {
              const Grouping& grouping = type.groups->grouping;
              inputs->rows.push_back(random_rows(grouping, n / 3, k, kCaseSeed + 1));
              inputs->rows.push_back(random_rows(grouping, n - n / 3, k, kCaseSeed + 2));
            } else {
              inputs->weights = random_tensor(memory, type.dtype, {n, k}, kCaseSeed + 1);
            }
            return instance(inputs, [type, columns](Backend& backend, PackInputs& in) {
              const PackedMatrix matrix = pack_parts(backend, type, in);
              const PackedMatrix gathered = backend.gather_columns(matrix, columns);
              backend.matmul(in.x.view, gathered, nullptr, in.out.view);
            });
          }};
}

struct GatedMlpInputs {
  OwnedTensor x, out;
  PackedMatrix gate_up, down;
};

OpCase gated_mlp_case(const WeightType& type, int64_t rows, int64_t hidden, int64_t width,
                      CaseSize size) {
  const double weights = static_cast<double>(3 * hidden * width);
  const bool is_product = rows >= 16;
  return {.name = fmt::format("gated_mlp {} {}x{}x{}", type.name, rows, hidden, width),
          .size = size,
          .tolerance = 1e-5,
          .flops = is_product ? 2.0 * static_cast<double>(rows) * weights : 0.0,
          .bytes = is_product ? 0.0 : weights * type.bytes(),
          .make = [=](ThreadPool& threads, Memory& memory) {
            auto inputs = std::make_shared<GatedMlpInputs>();
            inputs->x = random_tensor(memory, DType::f32, {rows, hidden}, kCaseSeed, 0.1f);
            inputs->out = allocate_tensor(memory, DType::f32, {rows, hidden});
            inputs->gate_up =
                random_matrix(memory, threads, type, 2 * width, hidden, kCaseSeed + 1);
            inputs->down = random_matrix(memory, threads, type, hidden, width, kCaseSeed + 2);
            return instance(inputs, [hidden, width](Backend& backend, GatedMlpInputs& in) {
              backend.gated_mlp({.activation = Activation::silu,
                                 .gate = {&in.gate_up, 0, width},
                                 .up = {&in.gate_up, width, width},
                                 .down = {&in.down, 0, hidden}},
                                in.x.view, in.out.view);
            });
          }};
}

OpCase embedding_case(const WeightType& type, int64_t rows, int64_t vocab, int64_t least_hidden,
                      CaseSize size) {
  const int64_t hidden = type.row_length(least_hidden);
  return {.name = fmt::format("embedding {} {} of {}x{}", type.name, rows, vocab, hidden),
          .size = size,
          .bytes = static_cast<double>(rows * hidden * 4),
          .make = [=](ThreadPool& threads, Memory& memory) {
            auto inputs = std::make_shared<MatmulInputs>();
            inputs->out = allocate_tensor(memory, DType::f32, {rows, hidden});
            inputs->w = random_matrix(memory, threads, type, vocab, hidden, kCaseSeed);
            Draws draws(kCaseSeed);
            std::vector<int32_t> ids;
            for (int64_t r = 0; r < rows; ++r)
              ids.push_back(static_cast<int32_t>(draws.below(vocab)));
            return instance(inputs, [ids](Backend& backend, MatmulInputs& in) {
              backend.embedding(in.w, ids, 1.7f, in.out.view);
            });
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

struct AttentionOp {
  AttentionInputs inputs;
  OwnedTensor out;
};

OpCase attention_case(AttentionShape shape, CaseSize size) {
  if (shape.params.scale == 1.0f) {
    shape.params.scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
  }
  double pairs = 0.0;
  for (const SliceShape& slice : shape.slices) {
    for (int64_t r = 0; r < slice.num_rows; ++r) {
      const int64_t visible = slice.first_position + r + 1;
      const int64_t window = shape.params.window;
      pairs += static_cast<double>(window > 0 ? std::min(window, visible) : visible);
    }
  }
  const bool is_decode = shape.num_rows() == static_cast<int64_t>(shape.slices.size());
  const double head_dim = static_cast<double>(shape.head_dim);
  const double key_bytes = head_dim * static_cast<double>(dtype_bytes(shape.dtype)) +
                           (shape.dtype == DType::i8 ? sizeof(float) : 0);
  return {.name = shape.name(),
          .size = size,
          .tolerance = 2e-6,
          .rounded_tolerance = shape.dtype == DType::bf16 || shape.dtype == DType::i8 ? 2e-2 : 0.0,
          .flops = is_decode ? 0.0 : 4.0 * pairs * head_dim * static_cast<double>(shape.heads),
          .bytes = is_decode ? 2.0 * pairs * key_bytes * static_cast<double>(shape.kv_heads) : 0.0,
          .make = [shape](ThreadPool&, Memory& memory) {
            auto op = std::make_shared<AttentionOp>(
                AttentionOp{AttentionInputs(shape, kCaseSeed, kCaseSeed + 1, memory), {}});
            op->out = allocate_tensor(memory, DType::f32, op->inputs.q.view.shape());
            return instance(op, [](Backend& backend, AttentionOp& in) {
              backend.attention(in.inputs.q.view, in.inputs.store(), in.inputs.slices,
                                in.inputs.shape.params, in.out.view);
            });
          }};
}

struct StoreInputs {
  OwnedTensor k, v;
  OwnedStore stored;
  std::vector<int64_t> slots;
};

OpCase store_case(DType dtype, int64_t rows, int64_t heads, int64_t head_dim, int64_t block_size,
                  CaseSize size) {
  const int64_t blocks = rows / block_size + 2;
  return {
      .name = fmt::format("store_kv {} {}x{}x{} block {}", dtype_name(dtype), rows, heads, head_dim,
                          block_size),
      .size = size,
      .bytes = static_cast<double>(2 * rows * heads * head_dim) *
               static_cast<double>(dtype_bytes(dtype) + 4),
      .make = [=](ThreadPool&, Memory& memory) {
        auto inputs = std::make_shared<StoreInputs>();
        inputs->k = random_tensor(memory, DType::f32, {rows, heads, head_dim}, kCaseSeed, 3.0f);
        inputs->v = random_tensor(memory, DType::f32, {rows, heads, head_dim}, kCaseSeed + 1, 3.0f);
        inputs->stored = OwnedStore(memory, dtype, blocks, heads, head_dim, block_size);
        // From the middle of a block on, with a jump in between.
        for (int64_t r = 0; r < rows; ++r) {
          inputs->slots.push_back(r + block_size / 2 + (r > rows / 2 ? 1 : 0));
        }
        return OpInstance{[inputs](Backend& backend) {
                            backend.store_kv(inputs->k.view, inputs->v.view, inputs->slots,
                                             inputs->stored.view());
                          },
                          [inputs] { return inputs->stored.elements(); }, inputs};
      }};
}

// Stored as above, then copied: a written block onto others, and one of the copies onwards.
OpCase copy_case(DType dtype, int64_t block_size) {
  OpCase stored = store_case(dtype, 4 * block_size, 2, 24, block_size, CaseSize::small);
  const auto make = stored.make;
  return {.name = fmt::format("copy_blocks {} block {}", dtype_name(dtype), block_size),
          .make = [make](ThreadPool& threads, Memory& memory) {
            OpInstance instance = make(threads, memory);
            const auto store = instance.run;
            const auto inputs = std::static_pointer_cast<StoreInputs>(instance.inputs);
            instance.run = [store, inputs](Backend& backend) {
              store(backend);
              const BlockMove moves[] = {
                  {.from = 1, .to = 5}, {.from = 2, .to = 1}, {.from = 5, .to = 0}};
              backend.copy_blocks(inputs->stored.view(), moves);
            };
            return instance;
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

void add_matmul_cases(std::vector<OpCase>& cases) {
  struct Shape {
    int64_t rows, n, k;
  };
  const Shape small[] = {
      {1, 1, 1},      {1, 31, 2},     {2, 33, 5},    {3, 64, 63},    {4, 100, 128}, {5, 32, 1024},
      {6, 129, 1025}, {7, 65, 2049},  {8, 96, 1023}, {11, 40, 33},   {12, 160, 64}, {13, 33, 1100},
      {25, 224, 31},  {37, 97, 1024}, {64, 64, 96},  {1, 300, 2500}, {530, 35, 40}};
  for (const WeightType& type : weight_types()) {
    for (const auto& [rows, n, k] : small) {
      cases.push_back(matmul_case(type, rows, n, k, CaseSize::small));
    }
  }
  // The products of Llama-3.2-1B.
  const Shape large[] = {{0, 3072, 2048}, {0, 2048, 2048}, {0, 16384, 2048}, {0, 2048, 8192}};
  for (const int64_t rows : {512, 1, 2, 8, 32}) {
    for (const auto& [_, n, k] : large) {
      cases.push_back(matmul_case(kBf16, rows, n, k, CaseSize::large));
    }
  }
  // Beside gradients of as many rows.
  for (const auto& [n, k] : {std::pair{2048, 2048}, {8192, 2048}, {2048, 8192}}) {
    cases.push_back(matmul_case(kBf16, 2048, n, k, CaseSize::large));
  }
  cases.push_back(matmul_case(kBf16, 1, 128256, 2048, CaseSize::large));
  cases.push_back(matmul_case(kBf16, 8, 128256, 2048, CaseSize::large));
  for (const WeightType& type : weight_types()) {
    if (!type.groups && type.dtype == DType::bf16) continue;
    cases.push_back(matmul_case(type, 512, 2048, 2048, CaseSize::large));
    cases.push_back(matmul_case(type, 1, 16384, 2048, CaseSize::large));
    cases.push_back(matmul_case(type, 8, 16384, 2048, CaseSize::large));
    cases.push_back(matmul_case(type, 32, 16384, 2048, CaseSize::large));
  }
}

void add_pack_cases(std::vector<OpCase>& cases) {
  for (const WeightType& type : weight_types()) {
    for (const auto& [n, k] : {std::pair{5, 40}, {70, 300}}) cases.push_back(pack_case(type, n, k));
  }
}

void add_gated_mlp_cases(std::vector<OpCase>& cases) {
  // Only types whose inputs aren't rounded: a difference in the last place could change a code.
  const WeightType& f32 = weight_types().front();
  for (const auto& [rows, hidden, width] : {std::array{1, 7, 33}, {5, 40, 300}, {33, 64, 129}}) {
    cases.push_back(gated_mlp_case(f32, rows, hidden, width, CaseSize::small));
  }
  for (const WeightType& type : weight_types()) {
    for (const int64_t rows : {512, 1}) {
      cases.push_back(gated_mlp_case(type, rows, 2048, 8192, CaseSize::large));
    }
  }
}

// Square ones of every type that a model comes in.
void add_square_cases(std::vector<OpCase>& cases) {
  for (const WeightType& type : weight_types()) {
    for (const int64_t size : {128, 256, 512, 1024, 2048, 4096}) {
      cases.push_back(matmul_case(type, size, size, size, CaseSize::large));
    }
  }
}

void add_bidirectional_cases(std::vector<OpCase>& cases) {
  const std::vector<SliceShape> whole = {{0, 70}, {0, 1}, {0, 200}, {0, 64}, {0, 65}};
  for (const DType dtype : kKvTypes) {
    for (const int64_t window : {0, 1, 2, 16, 63, 64, 65, 100}) {
      const AttentionParams params = {.scale = 0.2f, .window = window, .bidirectional = true};
      cases.push_back(attention_case(
          {.head_dim = 48, .dtype = dtype, .params = params, .slices = whole}, CaseSize::small));
    }
  }
}

void add_attention_cases(std::vector<OpCase>& cases) {
  add_bidirectional_cases(cases);
  const std::vector<SliceShape> mixed = {{0, 70}, {200, 1}, {63, 2}, {64, 1}, {0, 1}, {130, 33}};
  for (const DType dtype : kKvTypes) {
    for (const int64_t head_dim : {16, 32, 48, 64, 80, 96, 128, 256}) {
      cases.push_back(
          attention_case({.head_dim = head_dim, .dtype = dtype, .slices = mixed}, CaseSize::small));
    }
    for (const int64_t block_size : {1, 3, 16, 64, 256}) {
      cases.push_back(attention_case({.block_size = block_size, .dtype = dtype, .slices = mixed},
                                     CaseSize::small));
    }
  }
  for (const int64_t group : {1, 2, 3, 5, 7, 8}) {
    cases.push_back(attention_case({.heads = 2 * group, .slices = mixed}, CaseSize::small));
  }
  for (const DType dtype : {DType::f32, DType::i8}) {
    for (const int64_t window : {1, 2, 16, 63, 64, 65, 100}) {
      cases.push_back(attention_case(
          {.dtype = dtype, .params = {.scale = 0.2f, .window = window}, .slices = mixed},
          CaseSize::small));
    }
    cases.push_back(attention_case(
        {.dtype = dtype, .params = {.scale = 0.3f, .soft_cap = 5.0f}, .slices = mixed},
        CaseSize::small));
    cases.push_back(attention_case({.head_dim = 20,
                                    .dtype = dtype,
                                    .params = {.scale = 0.3f, .soft_cap = 3.0f, .window = 90},
                                    .slices = mixed},
                                   CaseSize::small));
  }
  cases.push_back(
      attention_case({.heads = 1, .kv_heads = 1, .slices = {{900, 1}}}, CaseSize::small));
  cases.push_back(
      attention_case({.heads = 3, .kv_heads = 1, .slices = {{700, 5}}}, CaseSize::small));

  for (const DType dtype : {DType::bf16, DType::i8}) {
    AttentionShape llama = {.heads = 32,
                            .kv_heads = 8,
                            .head_dim = 64,
                            .dtype = dtype,
                            .params = {.scale = 0.125f},
                            .slices = {{0, 512}}};
    cases.push_back(attention_case(llama, CaseSize::large));
    for (const SliceShape slice : {SliceShape{2048, 512}, {1000, 1}, {16000, 1}, {120000, 1}}) {
      llama.slices = {slice};
      cases.push_back(attention_case(llama, CaseSize::large));
    }
    llama.head_dim = 128;
    llama.slices = {{0, 512}};
    cases.push_back(attention_case(llama, CaseSize::large));
    llama.slices = {{16000, 1}};
    cases.push_back(attention_case(llama, CaseSize::large));
  }
}

}  // namespace

std::vector<OpCase> op_cases() {
  std::vector<OpCase> cases;
  add_matmul_cases(cases);
  add_gated_mlp_cases(cases);
  const std::vector<OpCase> loras = lora_cases();
  cases.insert(cases.end(), loras.begin(), loras.end());
  const std::vector<OpCase> mixtures = mixture_cases();
  cases.insert(cases.end(), mixtures.begin(), mixtures.end());
  add_square_cases(cases);
  add_attention_cases(cases);
  add_row_cases(cases);
  add_pack_cases(cases);
  for (const WeightType& type : weight_types()) {
    cases.push_back(embedding_case(type, 9, 77, 50, CaseSize::small));
    cases.push_back(embedding_case(type, 3, 40, 1027, CaseSize::small));
  }
  for (const DType dtype : kKvTypes) {
    for (const int64_t block_size : {1, 3, 16, 64}) {
      cases.push_back(store_case(dtype, 83, 2, 24, block_size, CaseSize::small));
    }
    cases.push_back(store_case(dtype, 1, 3, 17, 16, CaseSize::small));
    for (const int64_t block_size : {1, 16}) cases.push_back(copy_case(dtype, block_size));
  }
  for (const RopePairs pairs : {RopePairs::halves, RopePairs::neighbours}) {
    for (const auto& [head_dim, half] :
         {std::pair{32, 16}, {64, 32}, {20, 10}, {96, 24}, {256, 128}, {6, 1}, {18, 9}}) {
      cases.push_back(rope_case(pairs, 5, 3, head_dim, half, CaseSize::small));
    }
    cases.push_back(rope_case(pairs, 512, 40, 64, 32, CaseSize::large));
  }
  cases.push_back(embedding_case(kBf16, 512, 128256, 2048, CaseSize::large));
  cases.push_back(store_case(DType::bf16, 512, 8, 64, 16, CaseSize::large));
  cases.push_back(store_case(DType::i8, 512, 8, 64, 16, CaseSize::large));
  const std::vector<OpCase> gradients = gradient_cases();
  cases.insert(cases.end(), gradients.begin(), gradients.end());
  return cases;
}

}  // namespace paceline
