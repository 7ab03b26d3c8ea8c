// The backend's kernels give the same bits in every order of threads, and need each barrier that
// they have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/divide_up.h"
#include "kernels/cuda/make_cuda_backend.h"
#include "kernels/gradients.h"
#include "kernels/recurrent.h"
#include "tests/cuda/every_order.h"
#include "tests/cuda/older_device.h"
#include "tests/kernels/op_inputs.h"

namespace paceline::cuda {
namespace {

constexpr int64_t kRows = 3;

// Results of operations, as bytes.
class Results {
 public:
  explicit Results(Backend& backend) : backend_(backend) {}

  void keep(const Tensor& out) {
    std::vector<float> staging;
    append(std::as_bytes(backend_.read(out, staging)));
  }
  void append(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  Backend& backend_;
  std::vector<std::byte> bytes_;
};

// Elements uniform in [-size, size) in the backend's memory, which the CPU can't touch.
OwnedTensor random_on_device(Backend& backend, Extents shape, uint64_t seed, float size = 4.0f) {
  Memory memory;
  const OwnedTensor made = random_tensor(memory, DType::f32, shape, seed, size);
  OwnedTensor tensor = allocate_tensor(backend.memory(), DType::f32, shape);
  backend.write({made.view.elements<float>(), static_cast<size_t>(made.view.num_elements())},
                tensor.view);
  return tensor;
}

// Operations that reduce a row.
std::vector<std::byte> reduce_rows(CudaDevice& device) {
  ThreadPool threads(1);
  const auto backend = make_cuda_backend(device, threads);
  Results results(*backend);
  const OwnedTensor x = random_on_device(*backend, {kRows, 700}, 1);
  const OwnedTensor weight = random_on_device(*backend, {700}, 2);
  const OwnedTensor out = allocate_tensor(backend->memory(), DType::f32, {kRows, 700});
  backend->rms_norm(x.view, weight.view, 1e-5f, out.view);
  results.keep(out.view);
  backend->layer_norm(x.view, weight.view, nullptr, 1e-5f, out.view);
  results.keep(out.view);
  const RmsNormWeights norm{weight.view, 1e-5f};
  backend->add_rms_norm(x.view, out.view, &norm, norm, out.view);
  results.keep(out.view);
  std::vector<float> sums(kRows);
  backend->log_sum_exp(x.view, sums);
  results.append(std::as_bytes(std::span(sums)));
  std::vector<uint8_t> finite(kRows);
  backend->finite_rows(x.view, finite);
  results.append(std::as_bytes(std::span(finite)));
  return results.take();
}

std::vector<std::byte> choose_experts(CudaDevice& device) {
  ThreadPool threads(1);
  const auto backend = make_cuda_backend(device, threads);
  Results results(*backend);
  const RoutingParams params{.num_experts = 72,
                             .experts_per_token = 5,
                             .normalise = true,
                             .num_groups = 36,
                             .groups_kept = 9,
                             .shared = SharedExpert::gated};
  const OwnedTensor logits = random_on_device(*backend, {kRows, params.num_logits()}, 3);
  const OwnedTensor weights =
      allocate_tensor(backend->memory(), DType::f32, {kRows, params.num_slots()});
  const OwnedTensor experts =
      allocate_tensor(backend->memory(), DType::i32, {kRows, params.num_slots()});
  backend->route(logits.view, params, nullptr, {experts.view, weights.view});
  results.keep(weights.view);
  results.keep(Tensor(experts.view.raw(), DType::f32, experts.view.shape()));
  return results.take();
}

// Heads that are normalised, rotated and stored.
std::vector<std::byte> place(CudaDevice& device, DType dtype, int64_t head_dim) {
  constexpr int64_t kBlocks = 2;
  ThreadPool threads(1);
  const auto backend = make_cuda_backend(device, threads);
  Results results(*backend);
  const OwnedStore stored(backend->memory(), dtype, kBlocks, 2, head_dim, 2);
  const OwnedTensor q = random_on_device(*backend, {kRows, 3, head_dim}, 1);
  const OwnedTensor k = random_on_device(*backend, {kRows, 2, head_dim}, 2);
  const OwnedTensor v = random_on_device(*backend, {kRows, 2, head_dim}, 3);
  const OwnedTensor table = random_on_device(*backend, {kRows, head_dim / 2, 2}, 4);
  const OwnedTensor weight = random_on_device(*backend, {head_dim}, 5);
  const HeadPlacement placement{.q_norm = RmsNormWeights{weight.view, 1e-5f},
                                .k_norm = RmsNormWeights{weight.view, 1e-5f},
                                .rope_table = &table.view};
  backend->place_heads(placement, q.view, k.view, v.view, std::vector<int64_t>{2, 0, 3},
                       stored.view());
  results.keep(q.view);
  for (const OwnedTensor* part :
       {&stored.keys, &stored.values, &stored.key_scales, &stored.value_scales}) {
    if (part->view.raw() == nullptr) continue;
    const auto words = static_cast<int64_t>(part->view.size_bytes() / sizeof(float));
    results.keep(Tensor(part->view.raw(), DType::f32, {words}));
  }
  return results.take();
}

// Positions, stored and attended to by their last rows.
std::vector<std::byte> attend(CudaDevice& device, DType dtype, int64_t head_dim, int64_t rows,
                              int64_t positions = 130) {
  constexpr int64_t kHeads = 2, kBlockSize = 16;
  const int64_t num_blocks = divide_up(positions, kBlockSize);
  ThreadPool threads(1);
  const auto backend = make_cuda_backend(device, threads);
  Results results(*backend);
  const OwnedStore stored(backend->memory(), dtype, num_blocks, 1, head_dim, kBlockSize);
  const OwnedTensor k = random_on_device(*backend, {positions, 1, head_dim}, 4);
  const OwnedTensor v = random_on_device(*backend, {positions, 1, head_dim}, 5);
  std::vector<int64_t> slots;
  for (int64_t i = 0; i < positions; ++i) slots.push_back(i);
  backend->store_kv(k.view, v.view, slots, stored.view());
  const OwnedTensor q = random_on_device(*backend, {rows, kHeads, head_dim}, 6);
  const OwnedTensor out = allocate_tensor(backend->memory(), DType::f32, q.view.shape());
  const OwnedTensor sums = allocate_tensor(backend->memory(), DType::f32, {rows, kHeads});
  std::vector<int32_t> table;
  for (int64_t i = 0; i < num_blocks; ++i) table.push_back(static_cast<int32_t>(i));
  const AttentionSlice slice{0, rows, positions - rows, table};
  backend->attention(q.view, stored.view(), std::span(&slice, 1), {.scale = 0.1f}, out.view,
                     &sums.view);
  results.keep(out.view);
  results.keep(sums.view);
  return results.take();
}

std::vector<std::byte> multiply(CudaDevice& device, const WeightType& type, int64_t rows,
                                int64_t least_k = 1100) {
  ThreadPool threads(1);
  const auto backend = make_cuda_backend(device, threads);
  Results results(*backend);
  const int64_t k = type.row_length(least_k), n = 37;
  Memory memory;
  const OwnedTensor weights = random_tensor(memory, DType::f32, {n, k}, 7);
  PackedMatrix w;
  if (type.groups) {
    const auto weight_rows = random_rows(type.groups->grouping, n, k, 7);
    const GroupedRows* const part = weight_rows.get();
    w = backend->pack_groups(std::span(&part, 1), type.groups->activations);
  } else {
    w = backend->pack_matrix(std::span(&weights.view, 1), type.dtype);
  }
  const OwnedTensor x = random_on_device(*backend, {rows, k}, 8);
  const OwnedTensor out = allocate_tensor(backend->memory(), DType::f32, {rows, n});
  backend->matmul(x.view, w, nullptr, out.view);
  results.keep(out.view);
  return results.take();
}

void expect_needed(const testing::DeviceRun& run) {
  EXPECT_FALSE(testing::same_in_every_order(run).empty());
  EXPECT_THAT(testing::needless_syncs(run), ::testing::IsEmpty());
}

TEST(CudaThreadOrders, RowsAreReducedAlike) { expect_needed(reduce_rows); }

TEST(CudaThreadOrders, HeadsArePlacedAlike) {
  for (const DType dtype : {DType::bf16, DType::i8}) {
    expect_needed([dtype](CudaDevice& device) { return place(device, dtype, 40); });
  }
}

// Heads that fill a warp's part of shared memory.
TEST(CudaThreadOrders, TheLargestHeadsArePlacedAlike) {
  const auto place_largest = [](CudaDevice& device) { return place(device, DType::bf16, 512); };
  EXPECT_FALSE(testing::same_in_every_order(place_largest).empty());
}

TEST(CudaThreadOrders, ExpertsAreChosenAlike) { expect_needed(choose_experts); }

TEST(CudaThreadOrders, AttentionIsTheSame) {
  for (const DType dtype : {DType::bf16, DType::i8}) {
    expect_needed([dtype](CudaDevice& device) { return attend(device, dtype, 40, 3); });
  }
}

// By a warp whose chunks are merged apart, and by four, as on GPUs without warpgroups' products.
TEST(CudaThreadOrders, AttentionInTilesIsTheSame) {
  for (const DType dtype : {DType::bf16, DType::i8}) {
    expect_needed([dtype](CudaDevice& device) {
      OlderDevice older(device);
      std::vector<std::byte> bytes = attend(older, dtype, 32, 3);
      const std::vector<std::byte> more = attend(older, dtype, 32, 70);
      bytes.insert(bytes.end(), more.begin(), more.end());
      return bytes;
    });
  }
}

// More chunks than the ring holds, of heads whose queries stand in registers, and in shared memory.
TEST(CudaThreadOrders, AttentionByWarpgroupsIsTheSame) {
  for (const auto& [dtype, head_dim] :
       {std::pair{DType::bf16, 128}, {DType::i8, 128}, {DType::bf16, 192}}) {
    expect_needed([dtype = dtype, head_dim = head_dim](CudaDevice& device) {
      return attend(device, dtype, head_dim, 40, 400);
    });
  }
}

TEST(CudaThreadOrders, ProductsAreTheSame) {
  for (const WeightType& type : weight_types()) {
    if (type.groups && type.name != "q4x32" && type.name != "q3x32") continue;
    expect_needed([&type](CudaDevice& device) { return multiply(device, type, 11); });
  }
}

TEST(CudaThreadOrders, ProductsOfFewAndManyRowsAreTheSame) {
  const WeightType bf16{"bfloat16", DType::bf16, {}};
  for (const int64_t rows : {5, 70}) {
    expect_needed([&](CudaDevice& device) { return multiply(device, bf16, rows); });
  }
  // More segments than a block has at once.
  expect_needed([&](CudaDevice& device) { return multiply(device, bf16, 2, 9 * 1024 + 20); });
}

// A feed-forward network whose gate and up are multiplied together.
std::vector<std::byte> run_mlp(CudaDevice& device, int64_t rows, int64_t inputs = 1060) {
  constexpr int64_t kWidth = 64;
  ThreadPool threads(1);
  const auto backend = make_cuda_backend(device, threads);
  Results results(*backend);
  Memory memory;
  const auto pack = [&](int64_t n, int64_t k, uint64_t seed) {
    const OwnedTensor weights = random_tensor(memory, DType::f32, {n, k}, seed);
    return backend->pack_matrix(std::span(&weights.view, 1), DType::bf16);
  };
  const PackedMatrix gate_up = pack(2 * kWidth, inputs, 1), down = pack(20, kWidth, 2);
  const OwnedTensor x = random_on_device(*backend, {rows, inputs}, 3);
  const OwnedTensor out = allocate_tensor(backend->memory(), DType::f32, {rows, 20});
  backend->gated_mlp(
      {.gate = {&gate_up, 0, kWidth}, .up = {&gate_up, kWidth, kWidth}, .down = {&down, 0, 20}},
      x.view, out.view);
  results.keep(out.view);
  return results.take();
}

// A sequence with a state in two slices, whose second saves one.
std::vector<std::byte> advance_state(CudaDevice& device) {
  constexpr int64_t kPositions = 37, kCut = 20, kHeads = 2;
  ThreadPool threads(1);
  const auto backend = make_cuda_backend(device, threads);
  RecurrentOps& ops = *backend->recurrent();
  Results results(*backend);
  const DeltaShape shape{.key_heads = 1, .value_heads = kHeads, .key_dim = 12, .value_dim = 40};
  const auto inputs = [&](uint64_t seed, Extents extents) {
    return random_on_device(*backend, extents, seed, 0.4f);
  };
  const OwnedTensor q = inputs(1, {kPositions, 1, 12}), k = inputs(2, {kPositions, 1, 12});
  const OwnedTensor v = inputs(3, {kPositions, kHeads, 40});
  const OwnedTensor decay = inputs(4, {kPositions, kHeads}), beta = inputs(5, {kPositions, kHeads});
  const OwnedTensor out = allocate_tensor(backend->memory(), DType::f32, v.view.shape());
  const auto blocks_of = [&](int64_t elements) {
    return allocate_tensor(backend->memory(), DType::f32, {2, elements});
  };
  const OwnedTensor states = blocks_of(shape.state_elements());
  const OwnedTensor open_rows = blocks_of(shape.open_elements());
  const ConvolutionShape convolution{.channels = 40, .taps = 4};
  const OwnedTensor taps = inputs(6, {4, 40}), channels = inputs(7, {kPositions, 40});
  const OwnedTensor convolved = allocate_tensor(backend->memory(), DType::f32, {kPositions, 40});
  const OwnedTensor last_inputs = blocks_of(convolution.state_elements());
  const OwnedTensor open_inputs = blocks_of(convolution.open_elements());
  const StateSave save{.position = 32, .block = 1};
  for (const auto& [begin, end] : {std::pair{int64_t{0}, kCut}, {kCut, kPositions}}) {
    const StateSlice slice{
        .num_rows = end - begin, .first_position = begin, .num_saves = begin > 0 ? 1 : 0};
    const StateSlices slices{std::span(&slice, 1), std::span(&save, 1)};
    const auto part = [begin = begin, end = end](const OwnedTensor& all) {
      return all.view.slice(0, begin, end);
    };
    ops.delta_rule(
        shape,
        {.q = part(q), .k = part(k), .v = part(v), .log_decay = part(decay), .beta = part(beta)},
        slices, {.states = states.view, .open_rows = open_rows.view}, part(out));
    ops.short_convolution(convolution, part(channels), {.taps = taps.view}, slices,
                          {.states = last_inputs.view, .open_rows = open_inputs.view},
                          part(convolved));
  }
  results.keep(out.view);
  results.keep(convolved.view);
  results.keep(states.view.slice(0, 1, 2).slice(1, 0, 12 * shape.padded_value()));
  return results.take();
}

TEST(CudaThreadOrders, StatesAdvanceAlike) { expect_needed(advance_state); }

// Gradients of operations whose blocks have barriers, over two tiles of rows.
std::vector<std::byte> take_gradients(CudaDevice& device) {
  constexpr int64_t kRowsOfTwo = 20, kDim = 6;
  ThreadPool threads(1);
  const auto backend = make_cuda_backend(device, threads);
  GradientOps& ops = backend->gradients();
  Results results(*backend);
  const auto heads = [&](int64_t count, uint64_t seed) {
    return random_on_device(*backend, {kRowsOfTwo, count, kDim}, seed, 0.5f);
  };
  const OwnedTensor q = heads(2, 1), out = heads(2, 2), dout = heads(2, 3), dq = heads(2, 4);
  const OwnedTensor k = heads(1, 5), v = heads(1, 6), dk = heads(1, 7), dv = heads(1, 8);
  const OwnedTensor log_sums = random_on_device(*backend, {kRowsOfTwo, 2}, 9, 1.0f);
  const SequenceRows sequence{.first_row = 0, .num_rows = kRowsOfTwo};
  ops.attention_gradient({.q = q.view,
                          .k = k.view,
                          .v = v.view,
                          .out = out.view,
                          .log_sum_exp = log_sums.view,
                          .dout = dout.view},
                         std::span(&sequence, 1), {},
                         {.dq = dq.view, .dk = dk.view, .dv = dv.view});
  for (const OwnedTensor* const one : {&dq, &dk, &dv}) results.keep(one->view);

  const OwnedTensor x = random_on_device(*backend, {kRowsOfTwo, 300}, 10);
  const OwnedTensor dy = random_on_device(*backend, {kRowsOfTwo, 300}, 11);
  const OwnedTensor weight = random_on_device(*backend, {300}, 12);
  const OwnedTensor dweight = random_on_device(*backend, {300}, 13);
  const OwnedTensor dw = random_on_device(*backend, {300, 2}, 14);
  ops.matmul_weight_gradient(dy.view, x.view.slice(1, 0, 2), OperandRounding::none, dw.view);
  results.keep(dw.view);
  ops.layer_norm_gradient({.x = x.view, .weight = weight.view, .dy = dy.view}, 1e-5f, x.view,
                          &dweight.view, nullptr);
  results.keep(x.view);
  results.keep(dweight.view);
  const std::vector<int32_t> targets(kRowsOfTwo, 7);
  const std::vector<float> weights(kRowsOfTwo, 0.5f);
  std::vector<float> losses(kRowsOfTwo);
  ops.cross_entropy_gradient(targets, weights, dy.view, losses);
  results.keep(dy.view);
  results.append(std::as_bytes(std::span(losses)));
  return results.take();
}

TEST(CudaThreadOrders, GradientsAreTheSame) { expect_needed(take_gradients); }

TEST(CudaThreadOrders, FeedForwardNetworksAreTheSame) {
  for (const int64_t rows : {2, 11, 70}) {
    expect_needed([rows](CudaDevice& device) { return run_mlp(device, rows); });
  }
  expect_needed([](CudaDevice& device) { return run_mlp(device, 2, 4 * 1024 + 20); });
}

}  // namespace
}  // namespace paceline::cuda
