#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "bench/gpu/checks.h"
#include "bench/gpu/row_check.h"
#include "tests/kernels/mixture_inputs.h"
#include "tests/kernels/op_inputs.h"

namespace paceline {
namespace {

void check_products(RowCheck& rows, size_t every) {
  Memory& memory = rows.memory();
  const std::vector<WeightType>& types = weight_types();
  for (size_t i = 0; i < types.size(); i += every) {
    const WeightType& type = types[i];
    const int64_t k = type.row_length(1100), n = 21;
    const OwnedTensor x = random_tensor(memory, DType::f32, {rows.num_rows(), k}, 1);
    const OwnedTensor bias = random_tensor(memory, DType::f32, {n}, 2);
    const OwnedTensor out = allocate_tensor(memory, DType::f32, {rows.num_rows(), n});
    const PackedMatrix w = random_matrix(memory, rows.threads(), type, n, k, 3);
    rows.check("matmul " + type.name, out.view, [&](RowRange range) {
      rows.backend().matmul(x.view.slice(0, range.begin, range.end), w, &bias.view,
                            out.view.slice(0, range.begin, range.end));
    });
  }
}

void check_mixtures(RowCheck& rows, size_t every) {
  const std::vector<WeightType>& types = weight_types();
  for (size_t i = 0; i < types.size(); i += 4 * every) {
    const MixtureInputs in(types[i], {.rows = rows.num_rows(), .inputs = 64}, rows.threads(),
                           rows.memory());
    rows.check("mix_experts " + types[i].name, in.out.view, [&](RowRange range) {
      const auto part = [range](const Tensor& x) { return x.slice(0, range.begin, range.end); };
      const Routing routing = in.routing();
      rows.backend().mix_experts(in.experts, {part(routing.experts), part(routing.weights)},
                                 part(in.x.view), part(in.out.view));
    });
  }
}

// Segments of few rows and of many have kernels of their own.
void check_adapters(RowCheck& rows) {
  constexpr int64_t kInputs = 1300, kRank = 20, kColumns = 70, kWidth = 80;
  Memory& memory = rows.memory();
  const OwnedTensor x = random_tensor(memory, DType::f32, {rows.num_rows(), kInputs}, 1);
  const OwnedTensor base = random_tensor(memory, DType::f32, {rows.num_rows(), kWidth}, 2);
  const OwnedTensor out = allocate_tensor(memory, DType::f32, {rows.num_rows(), kWidth});
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const PackedMatrix a = random_matrix(memory, rows.threads(), dtype, kRank, kInputs, 3);
    const PackedMatrix b = random_matrix(memory, rows.threads(), dtype, kColumns, kRank, 4);
    rows.check("add_lora " + std::string(dtype_name(dtype)), out.view, [&](RowRange range) {
      const Tensor part = out.view.slice(0, range.begin, range.end);
      rows.backend().scale(base.view.slice(0, range.begin, range.end), std::array{1.0f}, part);
      const LoraSegment segment{
          .num_rows = range.end - range.begin, .a = &a, .b = &b, .first_column = 5};
      rows.backend().add_lora(x.view.slice(0, range.begin, range.end), std::span(&segment, 1),
                              part);
    });
  }
}

void check_norms(RowCheck& rows) {
  constexpr int64_t kWidth = 1300;
  Memory& memory = rows.memory();
  const OwnedTensor x = random_tensor(memory, DType::f32, {rows.num_rows(), kWidth}, 1);
  const OwnedTensor weight = random_tensor(memory, DType::f32, {kWidth}, 2);
  const OwnedTensor out = allocate_tensor(memory, DType::f32, {rows.num_rows(), kWidth});
  rows.check("rms_norm", out.view, [&](RowRange range) {
    rows.backend().rms_norm(x.view.slice(0, range.begin, range.end), weight.view, 1e-5f,
                            out.view.slice(0, range.begin, range.end));
  });
  const OwnedTensor y = random_tensor(memory, DType::f32, {rows.num_rows(), kWidth}, 3);
  const OwnedTensor sum = allocate_tensor(memory, DType::f32, {rows.num_rows(), kWidth});
  rows.check("add_rms_norm", out.view, [&](RowRange range) {
    const auto part = [range](const OwnedTensor& all) {
      return all.view.slice(0, range.begin, range.end);
    };
    const RmsNormWeights norm{weight.view, 1e-5f};
    rows.backend().scale(part(y), std::array{1.0f}, part(sum));
    rows.backend().add_rms_norm(part(sum), part(x), &norm, norm, part(out));
  });
  rows.check("layer_norm", out.view, [&](RowRange range) {
    rows.backend().layer_norm(x.view.slice(0, range.begin, range.end), weight.view, nullptr, 1e-5f,
                              out.view.slice(0, range.begin, range.end));
  });
}

// Heads in place, and what is stored of them: each row has a block of the store to itself, so that
// its keys and its values are each one piece.
void check_placed_heads(RowCheck& rows) {
  constexpr int64_t kHeads = 6, kKvHeads = 2, kHeadDim = 96;
  const int64_t count = rows.num_rows();
  Memory& memory = rows.memory();
  const OwnedTensor q = random_tensor(memory, DType::f32, {count, kHeads, kHeadDim}, 1);
  const OwnedTensor k = random_tensor(memory, DType::f32, {count, kKvHeads, kHeadDim}, 2);
  const OwnedTensor v = random_tensor(memory, DType::f32, {count, kKvHeads, kHeadDim}, 3);
  const OwnedTensor table = random_tensor(memory, DType::f32, {count, kHeadDim / 2, 2}, 4);
  const OwnedTensor weight = random_tensor(memory, DType::f32, {kHeadDim}, 5);
  const OwnedTensor placed = allocate_tensor(memory, DType::f32, q.view.shape());
  std::vector<int64_t> slots(static_cast<size_t>(count));
  std::iota(slots.begin(), slots.end(), 0);
  for (const DType dtype : {DType::f32, DType::bf16, DType::i8}) {
    const OwnedStore stored(memory, dtype, count, kKvHeads, kHeadDim, 1);
    const auto place = [&](RowRange range) {
      const auto part = [range](const OwnedTensor& all) {
        return all.view.slice(0, range.begin, range.end);
      };
      const Tensor table_part = part(table);
      const RmsNormWeights norm{weight.view, 1e-5f};
      std::copy_n(part(q).elements<float>(), part(q).num_elements(),
                  part(placed).elements<float>());
      rows.backend().place_heads(
          {.q_norm = norm, .k_norm = norm, .rope_table = &table_part}, part(placed), part(k),
          part(v),
          std::span(slots).subspan(static_cast<size_t>(range.begin),
                                   static_cast<size_t>(range.end - range.begin)),
          stored.view());
    };
    const std::string name = "place_heads " + std::string(dtype_name(dtype));
    rows.check(name, placed.view, place);
    const auto check_stored = [&](std::string_view what, const OwnedTensor& part) {
      if (part.view.raw() == nullptr) return;
      const auto words = static_cast<int64_t>(part.view.size_bytes() / sizeof(float));
      rows.check(name + std::string(what),
                 Tensor(part.view.raw(), DType::f32, {count, words / count}), place);
    };
    check_stored(", keys", stored.keys);
    check_stored(", values", stored.values);
    check_stored(", scales of keys", stored.key_scales);
    check_stored(", scales of values", stored.value_scales);
  }
}

// A prompt in one piece, in chunks and token by token.
void check_attention(RowCheck& rows, size_t every) {
  size_t index = 0;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i8}) {
    for (const int64_t window : {0, 70}) {
      if (index++ % every != 0) continue;
      const AttentionShape shape{.heads = 6,
                                 .head_dim = 64,
                                 .dtype = dtype,
                                 .params = {.scale = 0.2f, .window = window},
                                 .slices = {{0, rows.num_rows()}}};
      const AttentionInputs in(shape, 1, 2, rows.memory());
      const OwnedTensor out = allocate_tensor(rows.memory(), DType::f32, in.q.view.shape());
      rows.check(shape.name(), out.view, [&](RowRange range) {
        const AttentionSlice slice{0, range.end - range.begin, range.begin, in.block_tables[0]};
        rows.backend().attention(in.q.view.slice(0, range.begin, range.end), in.store(),
                                 std::span(&slice, 1), shape.params,
                                 out.view.slice(0, range.begin, range.end));
      });
    }
  }
}

}  // namespace

void check_rows(cuda::CudaDevice& device, const CheckOptions& options, CheckReport& report) {
  RowCheck rows("rows", device, options, report);
  check_norms(rows);
  check_placed_heads(rows);
  check_attention(rows, options.every);
  check_products(rows, options.every);
  check_mixtures(rows, options.every);
  check_adapters(rows);
}

}  // namespace paceline
