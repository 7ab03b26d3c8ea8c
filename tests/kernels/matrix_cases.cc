#include "tests/kernels/matrix_cases.h"

#include <fmt/format.h>

#include <array>

#include "tests/kernels/op_inputs.h"
#include "tests/kernels/op_instance.h"

namespace paceline {
namespace {

const WeightType kBf16 = {"bfloat16", DType::bf16, {}};

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

void add_embedding_cases(std::vector<OpCase>& cases) {
  for (const WeightType& type : weight_types()) {
    cases.push_back(embedding_case(type, 9, 77, 50, CaseSize::small));
    cases.push_back(embedding_case(type, 3, 40, 1027, CaseSize::small));
  }
  cases.push_back(embedding_case(kBf16, 512, 128256, 2048, CaseSize::large));
}

}  // namespace

std::vector<OpCase> matrix_cases() {
  std::vector<OpCase> cases;
  add_matmul_cases(cases);
  add_gated_mlp_cases(cases);
  add_square_cases(cases);
  add_pack_cases(cases);
  add_embedding_cases(cases);
  return cases;
}

}  // namespace paceline
