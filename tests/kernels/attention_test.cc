// The bits of attention depend on a row's own query and its sequence's keys and values alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "tests/kernels/every_isa.h"
#include "tests/kernels/op_inputs.h"
#include "tests/test_scale.h"

namespace paceline {
namespace {

constexpr uint64_t kSeed = 11;

class Attention : public IsaTest {
 protected:
  std::vector<float> attend(Backend& backend, const AttentionInputs& inputs, const Tensor& q) {
    const OwnedTensor out =
        allocate_tensor(memory_, DType::f32, {q.size(0), q.size(1), inputs.shape.value_dim()});
    backend.attention(q, inputs.store(), inputs.slices, inputs.shape.params, out.view);
    return to_vector(out.view);
  }
  std::vector<float> attend(Backend& backend, const AttentionInputs& inputs) {
    return attend(backend, inputs, inputs.q.view);
  }

  std::vector<float> attend_in_place(Backend& backend, const AttentionInputs& inputs) {
    const OwnedTensor q = allocate_tensor(memory_, DType::f32, inputs.q.view.shape());
    copy_elements(inputs.q.view, q.view);
    const Tensor out = q.view.slice(2, 0, inputs.shape.value_dim());
    backend.attention(q.view, inputs.store(), inputs.slices, inputs.shape.params, out);
    return to_vector(out);
  }

  // Rows [begin, end) of the only slice, on a store where nothing beyond them exists yet.
  std::vector<float> attend_piece(const AttentionShape& shape, const Tensor& q, int64_t begin,
                                  int64_t end) {
    AttentionShape piece = shape;
    piece.slices = {{shape.slices.at(0).first_position + begin, end - begin}};
    const AttentionInputs inputs(piece, kSeed, static_cast<uint64_t>(100 + begin), memory_);
    return attend(backend(), inputs, q.slice(0, begin, end));
  }
};

// Every feature that changes which keys a row sees, or how it uses them; under a sanitizer every
// fourth combination.
std::vector<AttentionShape> shapes() {
  std::vector<AttentionShape> shapes;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i8}) {
    for (const int64_t window : {0, 1, 10, 64, 100}) {
      AttentionShape shape = {.heads = 6, .kv_heads = 2, .head_dim = 40, .dtype = dtype};
      shape.params = {.scale = 0.2f, .soft_cap = window == 10 ? 4.0f : 0.0f, .window = window};
      shapes.push_back(shape);
      shape.params.chunked = true;
      if (window > 1) shapes.push_back(shape);
    }
  }
  for (const DType dtype : {DType::bf16, DType::i8}) {
    shapes.push_back({.heads = 1, .kv_heads = 1, .head_dim = 64, .dtype = dtype});
    shapes.push_back({.heads = 16, .kv_heads = 2, .head_dim = 128, .dtype = dtype});
  }
  return cases_to_run(shapes, 0, 4);
}

// Values that are the first elements of their keys, of one kv head and of two.
std::vector<AttentionShape> shared_shapes() {
  std::vector<AttentionShape> shapes;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i8}) {
    shapes.push_back({.heads = 6,
                      .kv_heads = 1,
                      .head_dim = 44,
                      .dtype = dtype,
                      .params = {.scale = 0.2f, .window = dtype == DType::f16 ? 70 : 0},
                      .values_in_keys = 37});
    shapes.push_back({.heads = 6,
                      .kv_heads = 2,
                      .head_dim = 80,
                      .dtype = dtype,
                      .params = {.scale = 0.2f, .soft_cap = dtype == DType::f32 ? 4.0f : 0.0f},
                      .values_in_keys = 64});
  }
  return shapes;
}

// So many query heads that tasks have a part of them.
AttentionShape wide_shared_shape() {
  return {.heads = 70,
          .kv_heads = 1,
          .head_dim = 576,
          .dtype = DType::bf16,
          .params = {.scale = 0.04f},
          .slices = {{63, 2}, {200, 1}, {0, 5}},
          .values_in_keys = 512};
}

std::vector<AttentionShape> all_shapes() {
  std::vector<AttentionShape> all = shapes();
  for (const AttentionShape& shape : shared_shapes()) all.push_back(shape);
  return all;
}

TEST_P(Attention, PrefillInPiecesGivesTheSameBits) {
  constexpr int64_t kRows = 203;
  for (AttentionShape shape : all_shapes()) {
    const int64_t row_elements = shape.heads * shape.value_dim();
    for (const int64_t first : {0, 37}) {
      shape.slices = {{first, kRows}};
      const AttentionInputs whole(shape, kSeed, 1, memory_);
      const std::vector<float> expected = attend(backend(), whole);
      for (const int64_t rows : {1, 7, 64, 100}) {
        // Of the smallest pieces only some: each makes a store of its own.
        const int64_t step = rows < 10 ? rows * 9 : rows;
        for (int64_t begin = 0; begin < kRows; begin += step) {
          const int64_t end = std::min(begin + rows, kRows);
          const std::vector<float> part(expected.begin() + begin * row_elements,
                                        expected.begin() + end * row_elements);
          EXPECT_SAME_BITS(attend_piece(shape, whole.q.view, begin, end), part)
              << shape.name() << " rows " << begin << " to " << end;
        }
      }
    }
  }
}

TEST_P(Attention, BlockSizeAndPlacementChangeNoBit) {
  for (AttentionShape shape : all_shapes()) {
    shape.slices = {{20, 150}, {333, 1}, {0, 3}, {63, 2}};
    const AttentionInputs first(shape, kSeed, 1, memory_);
    const std::vector<float> expected = attend(backend(), first);
    uint64_t placement_seed = 2;
    for (const int64_t block_size : {1, 3, 16, 24, 64, 256}) {
      shape.block_size = block_size;
      const AttentionInputs inputs(shape, kSeed, placement_seed++, memory_);
      EXPECT_SAME_BITS(attend(backend(), inputs), expected) << shape.name();
    }
  }
}

TEST_P(Attention, ThreadsAndPlaceChangeNoBit) {
  std::vector<AttentionShape> all = all_shapes();
  all.push_back(wide_shared_shape());
  // One long sequence on one kv head: its chunks are shared out.
  for (const DType dtype : {DType::bf16, DType::i8}) {
    for (const int64_t rows : {1, 3}) {
      AttentionShape shape = {.heads = 3, .kv_heads = 1, .head_dim = 48, .dtype = dtype};
      shape.slices = {{3000, rows}};
      all.push_back(shape);
      shape.params.window = 1500;
      all.push_back(shape);
    }
  }
  for (AttentionShape& shape : all) {
    if (shape.slices.empty()) shape.slices = {{5, 90}, {400, 1}, {130, 20}};
    const AttentionInputs inputs(shape, kSeed, 1, memory_);
    const std::vector<float> expected = attend(backend(), inputs);
    for (const auto& other : with_more_threads()) {
      EXPECT_SAME_BITS(attend(*other, inputs), expected) << shape.name();
      EXPECT_SAME_BITS(attend_in_place(*other, inputs), expected) << shape.name();
    }
  }
}

// Whole sequences, whose rows see keys behind their own.
TEST_P(Attention, BothWaysNothingAroundASequenceChangesABit) {
  for (AttentionShape shape : all_shapes()) {
    if (shape.params.chunked) continue;  // chunks see what is before alone
    shape.params.bidirectional = true;
    shape.slices = {{0, 1}, {0, 150}, {0, 64}, {0, 67}};
    const AttentionInputs batch(shape, kSeed, 1, memory_);
    const std::vector<float> together = attend(backend(), batch);
    const int64_t row_elements = shape.heads * shape.value_dim();
    for (const AttentionSlice& slice : batch.slices) {
      AttentionInputs alone(shape, kSeed, 1, memory_);
      alone.slices = {slice};
      alone.slices[0].first_row = 0;
      const int64_t end = slice.first_row + slice.num_rows;
      const Tensor q = batch.q.view.slice(0, slice.first_row, end);
      const std::vector<float> part(together.begin() + slice.first_row * row_elements,
                                    together.begin() + end * row_elements);
      EXPECT_SAME_BITS(attend(backend(), alone, q), part) << shape.name();
    }
    for (const auto& other : with_more_threads()) {
      EXPECT_SAME_BITS(attend(*other, batch), together) << shape.name();
      EXPECT_SAME_BITS(attend_in_place(*other, batch), together) << shape.name();
    }
    for (const int64_t block_size : {1, 24, 64}) {
      shape.block_size = block_size;
      const AttentionInputs inputs(shape, kSeed, 7, memory_);
      EXPECT_SAME_BITS(attend(backend(), inputs), together) << shape.name();
    }
  }
}

// Scores by distance, and of the embeddings of distances that queries and keys meet.
class AddedScores {
 public:
  static constexpr int64_t kReach = 129, kBuckets = 8;

  AddedScores(Memory& memory, int64_t rows, int64_t heads)
      : by_distance_(random_tensor(memory, DType::f32, {heads, kWidth}, 21, 4.0f)),
        of_queries_(random_tensor(memory, DType::f32, {rows, heads, kBuckets}, 22, 4.0f)),
        of_keys_(random_tensor(memory, DType::f32, {rows, heads, kBuckets}, 23, 4.0f)) {
    for (int64_t i = 0; i < kWidth; ++i) buckets_.push_back(static_cast<int32_t>(i % kBuckets));
  }

  // Those of the rows from `first` on.
  PositionScores of_rows(int64_t first, bool with_terms) const {
    PositionScores scores{.by_distance = by_distance_.view, .reach = kReach, .reach_ahead = kReach};
    if (!with_terms) return scores;
    const int64_t rows = of_queries_.view.size(0);
    scores.of_queries = of_queries_.view.slice(0, first, rows);
    scores.of_keys = of_keys_.view.slice(0, first, rows);
    scores.buckets = buckets_;
    return scores;
  }

 private:
  static constexpr int64_t kWidth = 2 * kReach + kPositionScorePadding;
  OwnedTensor by_distance_, of_queries_, of_keys_;
  std::vector<int32_t> buckets_;
};

TEST_P(Attention, PositionScoresAreTheReferences) {
  const auto reference = make_reference_backend();
  for (const DType dtype : {DType::f32, DType::bf16, DType::i8}) {
    for (const bool with_terms : {false, true}) {
      AttentionShape shape = {.heads = 6, .kv_heads = 2, .head_dim = 40, .dtype = dtype};
      shape.params = {.scale = 0.2f, .window = with_terms ? 0 : 70, .bidirectional = true};
      shape.slices = {{0, 1}, {0, 67}, {0, 130}};
      const AddedScores added(memory_, shape.num_rows(), shape.heads);
      const PositionScores scores = added.of_rows(0, with_terms);
      shape.params.position_scores = &scores;
      const AttentionInputs inputs(shape, kSeed, 1, memory_);
      const std::vector<float> expected = attend(*reference, inputs);
      const std::vector<float> found = attend(backend(), inputs);
      float largest = 0.0f;
      for (size_t i = 0; i < found.size(); ++i) {
        largest = std::max(largest, std::abs(found[i] - expected[i]));
      }
      EXPECT_LE(largest, 4e-6f) << shape.name();
      for (const auto& other : with_more_threads()) {
        EXPECT_SAME_BITS(attend_in_place(*other, inputs), found) << shape.name();
      }
      const AttentionSlice& last = inputs.slices.back();
      AttentionInputs alone(shape, kSeed, 1, memory_);
      alone.slices = {last};
      alone.slices[0].first_row = 0;
      const PositionScores of_last = added.of_rows(last.first_row, with_terms);
      alone.shape.params.position_scores = &of_last;
      const Tensor q = inputs.q.view.slice(0, last.first_row, last.first_row + last.num_rows);
      const std::vector<float> part(
          found.begin() + last.first_row * shape.heads * shape.value_dim(), found.end());
      EXPECT_SAME_BITS(attend(backend(), alone, q), part) << shape.name();
    }
  }
}

// Of decoders: by distance and by position, from any position on.
TEST_P(Attention, PositionScoresOfWhatIsBeforeAreTheReferences) {
  constexpr int64_t kReach = 300, kWidth = kReach + kPositionScorePadding, kHeads = 6;
  const auto reference = make_reference_backend();
  const OwnedTensor table = random_tensor(memory_, DType::f32, {kHeads, kWidth}, 21, 4.0f);
  for (const bool by_position : {false, true}) {
    const PositionScores scores{
        .by_distance = table.view, .by_position = by_position, .reach = kReach};
    AttentionShape shape = {.heads = kHeads, .kv_heads = 2, .head_dim = 40, .dtype = DType::bf16};
    shape.params = {.scale = 0.2f, .window = by_position ? 70 : 0, .position_scores = &scores};
    shape.slices = {{0, 1}, {63, 70}, {300, 1}, {5, 2}};
    const AttentionInputs inputs(shape, kSeed, 1, memory_);
    const std::vector<float> expected = attend(*reference, inputs);
    const std::vector<float> found = attend(backend(), inputs);
    for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 4e-6f);
    shape.slices = {{37, 100}};
    const AttentionInputs whole(shape, kSeed, 1, memory_);
    const std::vector<float> all = attend(backend(), whole);
    for (const int64_t begin : {0, 26, 27, 99}) {
      const std::vector<float> part(all.begin() + begin * kHeads * 40, all.end());
      EXPECT_SAME_BITS(attend_piece(shape, whole.q.view, begin, 100), part) << begin;
    }
  }
}

TEST_P(Attention, ChunksOfTheContextAreTheReferences) {
  const auto reference = make_reference_backend();
  for (const int64_t chunk : {1, 7, 64, 100}) {
    AttentionShape shape = {.heads = 6, .kv_heads = 2, .head_dim = 40, .dtype = DType::f32};
    shape.params = {.scale = 0.2f, .window = chunk, .chunked = true};
    shape.slices = {{0, 1}, {60, 80}, {199, 2}, {300, 1}};
    const AttentionInputs inputs(shape, kSeed, 1, memory_);
    const std::vector<float> expected = attend(*reference, inputs);
    const std::vector<float> found = attend(backend(), inputs);
    for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 4e-6f) << chunk;
  }
}

TEST_P(Attention, SequencesOfABatchDontMeet) {
  for (AttentionShape shape : all_shapes()) {
    shape.slices = {{0, 5}, {70, 1}, {64, 30}, {190, 1}};
    const AttentionInputs batch(shape, kSeed, 1, memory_);
    const std::vector<float> together = attend(backend(), batch);
    for (const AttentionSlice& slice : batch.slices) {
      // The slice alone, in a batch of one.
      AttentionInputs alone(shape, kSeed, 1, memory_);
      alone.slices = {slice};
      alone.slices[0].first_row = 0;
      const Tensor q = batch.q.view.slice(0, slice.first_row, slice.first_row + slice.num_rows);
      const int64_t row_elements = shape.heads * shape.value_dim();
      const auto begin = together.begin() + slice.first_row * row_elements;
      const std::vector<float> expected(begin, begin + slice.num_rows * row_elements);
      EXPECT_SAME_BITS(attend(backend(), alone, q), expected) << shape.name();
    }
  }
}

TEST_P(Attention, StridedQueriesAndOutputs) {
  AttentionShape shape = {.heads = 4, .kv_heads = 2, .head_dim = 24, .slices = {{3, 80}}};
  const AttentionInputs inputs(shape, kSeed, 1, memory_);
  // Queries inside rows that also hold keys and values, as a fused projection leaves them.
  const OwnedTensor fused = allocate_tensor(memory_, DType::f32, {80, 4 * 24 + 50});
  const Tensor q = fused.view.as_strided({80, 4, 24}, {4 * 24 + 50, 24, 1}, 10);
  copy_elements(inputs.q.view, q);
  const OwnedTensor wide = allocate_tensor(memory_, DType::f32, {80, 4, 31});
  std::fill_n(wide.view.elements<float>(), wide.view.num_elements(), 5.0f);
  const Tensor out = wide.view.slice(2, 2, 26);
  backend().attention(q, inputs.store(), inputs.slices, shape.params, out);
  EXPECT_SAME_BITS(to_vector(out), attend(backend(), inputs));
  const std::vector<float> all = to_vector(wide.view);
  EXPECT_EQ(std::count(all.begin(), all.end(), 5.0f), 80 * 4 * 7);
}

TEST_P(Attention, LaterKeysThatAreInfiniteDontReachEarlierRows) {
  const auto check = [&](DType dtype, int64_t heads) {
    const AttentionShape shape = {
        .heads = heads, .kv_heads = 1, .head_dim = 16, .dtype = dtype, .slices = {{0, 100}}};
    AttentionInputs inputs(shape, kSeed, 1, memory_);
    const std::vector<float> before = attend(backend(), inputs);
    const int64_t position = 77;
    const OwnedTensor infinite = allocate_tensor(memory_, DType::f32, {1, 1, 16});
    std::fill_n(infinite.view.elements<float>(), 16, std::numeric_limits<float>::infinity());
    const int64_t slot = inputs.block_tables[0][position / 16] * 16 + position % 16;
    backend().store_kv(infinite.view, infinite.view, std::vector<int64_t>{slot}, inputs.store());
    std::vector<float> after = attend(backend(), inputs);
    EXPECT_TRUE(after.back() != after.back()) << dtype_name(dtype);
    const int64_t num_before = position * heads * 16;
    after.resize(num_before);
    EXPECT_SAME_BITS(after, std::vector<float>(before.begin(), before.begin() + num_before))
        << dtype_name(dtype) << ", " << heads << " heads";
  };
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i8}) {
    for (const int64_t heads : {2, 20}) check(dtype, heads);
  }
}

// Rows whose rounding is a matter of the last bit, and rows that no scale can hold.
void fill_with_specials(const Tensor& rows) {
  const float special[] = {std::numeric_limits<float>::infinity(),
                           -0.0f,
                           1e-40f,
                           65519.99f,
                           65520.0f,
                           3.0e38f,
                           std::numeric_limits<float>::quiet_NaN(),
                           6e-8f,
                           2.98e-8f,
                           1.0f + 0x1p-8f,
                           1.0f + 0x1.8p-7f,
                           0x1.ffep-15f};
  std::copy(std::begin(special), std::end(special), rows.elements<float>());
}

TEST_P(Attention, StoredKeysAreWhatTheReferenceStores) {
  const auto reference = make_reference_backend();
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i8}) {
    const OwnedTensor k = random_tensor(memory_, DType::f32, {4, 2, 37}, 5, 70000.0f);
    const OwnedTensor v = random_tensor(memory_, DType::f32, {4, 2, 37}, 6, 1e-6f);
    fill_with_specials(k.view);
    const std::vector<int64_t> slots = {14, 15, 16, 3};
    std::vector<std::vector<float>> stored;
    for (Backend* const each : {reference.get(), &backend()}) {
      const OwnedStore store(memory_, dtype, 2, 2, 37, 16);
      each->store_kv(k.view, v.view, slots, store.view());
      stored.push_back(store.elements());
    }
    EXPECT_SAME_BITS(stored[0], stored[1]) << dtype_name(dtype);
  }
}

TEST_P(Attention, ValuesInKeysAreReadAsTheReferenceReadsThem) {
  const auto reference = make_reference_backend();
  std::vector<AttentionShape> all = shared_shapes();
  all.push_back(wide_shared_shape());
  for (AttentionShape& shape : all) {
    if (shape.slices.empty()) shape.slices = {{0, 70}, {200, 1}, {63, 2}};
    const AttentionInputs inputs(shape, kSeed, 1, memory_);
    const std::vector<float> expected = attend(*reference, inputs);
    const std::vector<float> found = attend(backend(), inputs);
    float largest = 0.0f;
    for (size_t i = 0; i < found.size(); ++i) {
      largest = std::max(largest, std::abs(found[i] - expected[i]));
    }
    EXPECT_LE(largest, 4e-6f) << shape.name();
  }
}

// A key's first elements have a scale of their own.
TEST_P(Attention, ValuesInKeysAreStoredOnce) {
  const auto reference = make_reference_backend();
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i8}) {
    const OwnedTensor k = random_tensor(memory_, DType::f32, {4, 2, 37}, 5, 70.0f);
    fill_with_specials(k.view);
    const std::vector<int64_t> slots = {14, 15, 16, 3};
    std::vector<OwnedStore> stores;
    for (Backend* const each : {reference.get(), &backend()}) {
      stores.emplace_back(memory_, dtype, 2, 2, 37, 16, 20);
      each->store_kv(k.view, Tensor(), slots, stores.back().view());
    }
    const Tensor expected = stores[0].keys.view, found = stores[1].keys.view;
    EXPECT_EQ(std::memcmp(expected.raw(), found.raw(), expected.size_bytes()), 0);
    if (dtype != DType::i8) continue;
    for (const auto tensor : {&OwnedStore::key_scales, &OwnedStore::value_scales}) {
      EXPECT_SAME_BITS(to_vector((stores[1].*tensor).view), to_vector((stores[0].*tensor).view));
    }
    EXPECT_NE(to_vector(stores[1].key_scales.view), to_vector(stores[1].value_scales.view));
  }
}

// int8: every code and scale, for rows of any magnitude, up to the ends of float32.
TEST_P(Attention, CodesAndScalesAreWhatTheReferenceStores) {
  const auto reference = make_reference_backend();
  constexpr int64_t kRows = 64, kHeadDim = 21;
  const OwnedTensor k = random_tensor(memory_, DType::f32, {kRows, 1, kHeadDim}, 7);
  const OwnedTensor v = allocate_tensor(memory_, DType::f32, {kRows, 1, kHeadDim});
  std::vector<int64_t> slots;
  for (int64_t r = 0; r < kRows; ++r) {
    slots.push_back(r);
    auto* const keys = k.view.row<float>(r);
    auto* const values = v.view.row<float>(r);
    for (int64_t d = 0; d < kHeadDim; ++d) {
      keys[d] = std::ldexp(keys[d], static_cast<int>(4 * r) - 149);  // from the denormal ones up
      // Halves of a step: ties. The largest is 127 steps.
      values[d] = d == 0 ? -127.0f : static_cast<float>((r * kHeadDim + d) % 509 - 254) / 2.0f;
    }
    if (r == 5) std::fill_n(values, kHeadDim, 0.0f);
    if (r == 9) values[kHeadDim - 1] = std::numeric_limits<float>::quiet_NaN();
  }
  const OwnedStore expected(memory_, DType::i8, 4, 1, kHeadDim, 16);
  const OwnedStore found(memory_, DType::i8, 4, 1, kHeadDim, 16);
  reference->store_kv(k.view, v.view, slots, expected.view());
  backend().store_kv(k.view, v.view, slots, found.view());
  for (const auto tensor : {&OwnedStore::keys, &OwnedStore::values}) {
    const auto* const a = (expected.*tensor).view.elements<int8_t>();
    const auto* const b = (found.*tensor).view.elements<int8_t>();
    EXPECT_TRUE(std::equal(a, a + (expected.*tensor).view.num_elements(), b));
  }
  for (const auto tensor : {&OwnedStore::key_scales, &OwnedStore::value_scales}) {
    EXPECT_SAME_BITS(to_vector((found.*tensor).view), to_vector((expected.*tensor).view));
  }
  const auto* const codes = found.values.view.elements<int8_t>();
  const auto* const scales = found.value_scales.view.elements<float>();
  EXPECT_EQ(scales[0], 1.0f);
  EXPECT_EQ(codes[0], -127);
  EXPECT_EQ(codes[1], -126);  // -126.5: the even one
  EXPECT_EQ(scales[5], 0.0f);
  EXPECT_TRUE(std::isnan(scales[9]));
}

// No element is off by more than half a step, and so no score by more than the steps allow.
TEST_P(Attention, CodesAreWithinHalfAStep) {
  const OwnedTensor k = random_tensor(memory_, DType::f32, {48, 3, 64}, 8, 5.0f);
  const OwnedTensor v = random_tensor(memory_, DType::f32, {48, 3, 64}, 9, 0.01f);
  const OwnedStore store(memory_, DType::i8, 1, 3, 64, 48);
  const OwnedStore exact(memory_, DType::f32, 1, 3, 64, 48);
  std::vector<int64_t> slots(48);
  std::iota(slots.begin(), slots.end(), 0);
  backend().store_kv(k.view, v.view, slots, store.view());
  backend().store_kv(k.view, v.view, slots, exact.view());
  const std::vector<float> found = store.elements(), expected = exact.elements();
  for (size_t i = 0; i < found.size(); ++i) {
    const float largest = i < found.size() / 2 ? 5.0f : 0.01f;
    EXPECT_LE(std::abs(found[i] - expected[i]), largest / 127.0f * 0.5001f) << i;
  }
}

PL_TEST_EVERY_ISA(Attention);

}  // namespace
}  // namespace paceline
