#include "tests/kernels/kv_cases.h"

#include <fmt/format.h>

#include <cmath>

#include "tests/kernels/op_inputs.h"
#include "tests/kernels/op_instance.h"

namespace paceline {
namespace {

constexpr DType kKvTypes[] = {DType::f32, DType::f16, DType::bf16, DType::i8};

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

struct PlacedShape {
  DType dtype = DType::f32;
  int64_t head_dim = 64;
  int64_t half = 32;  // 0: nothing rotates
  RopePairs pairs = RopePairs::halves;
  bool has_norms = true;
};

struct PlacedInputs {
  PlacedInputs(const PlacedShape& shape, Memory& memory);

  HeadPlacement placement(const PlacedShape& shape) const;

  OwnedTensor q, k, v, placed_q, placed_k, norm, table;
  OwnedStore stored;
  std::vector<int64_t> slots;
};

constexpr int64_t kPlacedRows = 5, kPlacedHeads = 3, kPlacedKvHeads = 2, kPlacedBlock = 16;

PlacedInputs::PlacedInputs(const PlacedShape& shape, Memory& memory)
    : q(random_tensor(memory, DType::f32, {kPlacedRows, kPlacedHeads, shape.head_dim}, kCaseSeed,
                      2.0f)),
      k(random_tensor(memory, DType::f32, {kPlacedRows, kPlacedKvHeads, shape.head_dim},
                      kCaseSeed + 1, 2.0f)),
      v(random_tensor(memory, DType::f32, k.view.shape(), kCaseSeed + 2, 2.0f)),
      placed_q(allocate_tensor(memory, DType::f32, q.view.shape())),
      placed_k(allocate_tensor(memory, DType::f32, k.view.shape())),
      norm(random_tensor(memory, DType::f32, {shape.head_dim}, kCaseSeed + 3)),
      table(random_tensor(memory, DType::f32, {kPlacedRows, std::max<int64_t>(shape.half, 1), 2},
                          kCaseSeed + 4)),
      stored(memory, shape.dtype, 2, kPlacedKvHeads, shape.head_dim, kPlacedBlock) {
  for (int64_t row = 0; row < kPlacedRows; ++row) slots.push_back((row * 7 + 3) % 32);
}

HeadPlacement PlacedInputs::placement(const PlacedShape& shape) const {
  HeadPlacement placement{.rope_table = shape.half > 0 ? &table.view : nullptr,
                          .pairs = shape.pairs};
  if (shape.has_norms) {
    placement.q_norm = {norm.view, 1e-5f};
    placement.k_norm = {norm.view, 1e-6f};
  }
  return placement;
}

// What another last place in float32 changes where it is rounded to the type.
double placed_tolerance(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 1e-3;
    case DType::bf16:
      return 8e-3;
    case DType::i8:
      return 5e-2;
    default:
      return 2e-6;
  }
}

// The placed queries, then the stored keys and values.
OpCase place_case(const PlacedShape& shape) {
  return {.name = fmt::format("place_heads {} {}x({}+2x{})x{} half {}{}{}", dtype_name(shape.dtype),
                              kPlacedRows, kPlacedHeads, kPlacedKvHeads, shape.head_dim, shape.half,
                              shape.pairs == RopePairs::neighbours ? " neighbours" : "",
                              shape.has_norms ? " norms" : ""),
          .tolerance = placed_tolerance(shape.dtype),
          .make = [shape](ThreadPool&, Memory& memory) {
            auto inputs = std::make_shared<PlacedInputs>(shape, memory);
            return OpInstance{[inputs, shape](Backend& backend) {
                                copy_elements(inputs->q.view, inputs->placed_q.view);
                                copy_elements(inputs->k.view, inputs->placed_k.view);
                                backend.place_heads(inputs->placement(shape), inputs->placed_q.view,
                                                    inputs->placed_k.view, inputs->v.view,
                                                    inputs->slots, inputs->stored.view());
                              },
                              [inputs] {
                                std::vector<float> all = to_vector(inputs->placed_q.view);
                                const std::vector<float> stored = inputs->stored.elements();
                                all.insert(all.end(), stored.begin(), stored.end());
                                return all;
                              },
                              inputs};
          }};
}

void add_place_cases(std::vector<OpCase>& cases) {
  for (const DType dtype : kKvTypes) {
    cases.push_back(place_case({.dtype = dtype}));
    cases.push_back(place_case({.dtype = dtype, .half = 0, .has_norms = false}));
    cases.push_back(place_case({.dtype = dtype, .head_dim = 20, .half = 10}));
    cases.push_back(place_case({.dtype = dtype,
                                .head_dim = 300,
                                .half = 70,
                                .pairs = RopePairs::neighbours,
                                .has_norms = dtype != DType::f16}));
  }
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

void add_store_cases(std::vector<OpCase>& cases) {
  for (const DType dtype : kKvTypes) {
    for (const int64_t block_size : {1, 3, 16, 64}) {
      cases.push_back(store_case(dtype, 83, 2, 24, block_size, CaseSize::small));
    }
    cases.push_back(store_case(dtype, 1, 3, 17, 16, CaseSize::small));
    for (const int64_t block_size : {1, 16}) cases.push_back(copy_case(dtype, block_size));
  }
  cases.push_back(store_case(DType::bf16, 512, 8, 64, 16, CaseSize::large));
  cases.push_back(store_case(DType::i8, 512, 8, 64, 16, CaseSize::large));
}

}  // namespace

std::vector<OpCase> kv_cases() {
  std::vector<OpCase> cases;
  add_attention_cases(cases);
  add_store_cases(cases);
  add_place_cases(cases);
  return cases;
}

}  // namespace paceline
